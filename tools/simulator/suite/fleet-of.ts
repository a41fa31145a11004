import type { EndpointSettings, FleetSettings } from '../fleet/fleet-settings.js';
import { HARDWARE } from '../fleet/hardware.js';
import type { TierSettings } from '../fleet/kv-tiers.js';
import { recipeConstants } from '../fleet/recipe.js';
import { tableStepTime } from '../fleet/step-table.js';
import { fittedStepTime, type StepTime } from '../fleet/step-time.js';
import type { FleetText } from './schema.js';

type Engine = Pick<
  FleetText,
  | 'hardware'
  | 'constants'
  | 'recipe'
  | 'kvTokens'
  | 'maxBatchedTokens'
  | 'maxSequences'
  | 'longPrefillTokens'
  | 'tiers'
  | 'kvBytesPerToken'
>;

/** Hardware of a fleet that names none. */
const USUAL_HARDWARE = 'qwen3-32b-h100-tp2';
const USUAL_SEQUENCES = 256;

/**
 * The fleet that a suite describes.
 * @throws Error when a field is missing or asks for what there is not
 */
export function fleetOf(text: FleetText, blockTokens: number): FleetSettings {
  const groups =
    text.groups.length > 0
      ? text.groups
      : [{ count: text.endpoints, speed: 1, labels: {}, joinSeconds: 0, lies: false }];
  const endpoints = groups.flatMap(({ count, speed, labels, joinSeconds, lies, ...group }): EndpointSettings[] => {
    const settings: EndpointSettings = {
      ...engineOf({ ...text, ...defined(group) }, text.truth, blockTokens),
      speed,
      labels,
      lies,
      joinMs: joinSeconds * 1e3,
      leaveMs: 'leaveSeconds' in group && group.leaveSeconds !== undefined ? group.leaveSeconds * 1e3 : Infinity,
    };
    return Array.from({ length: count }, () => settings);
  });
  return {
    endpoints,
    incidents: text.incidents.map(({ kind, endpoint, atSeconds, forSeconds, factor }) => {
      if (endpoint >= endpoints.length) {
        throw new Error(`incidents: there is no endpoint ${endpoint}: the fleet has 0 to ${endpoints.length - 1}`);
      }
      return { kind, endpoint, atMs: atSeconds * 1e3, forMs: forSeconds * 1e3, factor };
    }),
    metrics: text.metrics,
    kvEvents: text.kvEvents,
    pickers: text.pickers,
    client: text.client,
    samples: text.labels ?? text.samples,
    pathMs: text.pathMs,
    stepNoise: text.stepNoise,
    pauseShare: text.pauseShare,
    pauseMs: text.pauseMs,
  };
}

function defined<Fields extends object>(fields: Fields): Partial<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields>;
}

function engineOf(engine: Engine, truth: FleetText['truth'], blockTokens: number) {
  const name = engine.hardware ?? USUAL_HARDWARE;
  const hardware = HARDWARE[name]!;
  const kvTokens = engine.kvTokens ?? hardware.kvTokens;
  return {
    stepTime: stepTimeOf(engine, name, truth),
    limits: {
      blockTokens,
      blocks: Math.max(1, Math.floor(kvTokens / blockTokens)),
      maxBatchedTokens: engine.maxBatchedTokens ?? hardware.maxBatchedTokens,
      maxSequences: engine.maxSequences ?? USUAL_SEQUENCES,
      longPrefillTokens: engine.longPrefillTokens ?? Number.MAX_SAFE_INTEGER,
      ...(engine.tiers !== undefined && { tiers: tiersOf(engine, engine.tiers, name, blockTokens) }),
    },
  };
}

function tiersOf(
  { kvBytesPerToken, recipe, constants }: Engine,
  tiers: NonNullable<Engine['tiers']>,
  hardware: string,
  blockTokens: number,
): TierSettings[] {
  const known = constants === undefined ? HARDWARE[hardware]!.kvBytesPerToken : undefined;
  const bytes = kvBytesPerToken ?? recipe?.kvBytesPerToken ?? known;
  if (bytes === undefined) throw new Error('fleet: tiers of an engine with constants need kvBytesPerToken');
  const places = tiers.map(({ place }) => place);
  const twice = places.find((place, i) => places.indexOf(place) !== i);
  if (twice !== undefined) throw new Error(`fleet: tiers: "${twice}" stands there twice: name each place once`);
  return tiers.map(({ place, tokens, bandwidthGBs }) => ({
    place,
    blocks: Math.max(1, Math.floor(tokens / blockTokens)),
    blockMs: (bytes * blockTokens) / (bandwidthGBs * 1e6),
  }));
}

function stepTimeOf(engine: Engine, name: string, truth: FleetText['truth']): StepTime {
  const { constants, recipe } = engine;
  if (constants !== undefined && recipe !== undefined)
    throw new Error('fleet: constants and recipe exclude each other');
  const own = constants ?? (recipe && recipeConstants(recipe));
  if (truth === 'formula') return fittedStepTime(own ?? HARDWARE[name]!.constants);
  if (own !== undefined) throw new Error('fleet: truth "table" takes no constants and no recipe: leave them out');
  const { table } = HARDWARE[name]!;
  if (table !== undefined) return tableStepTime(table);
  const known = Object.keys(HARDWARE).filter((other) => HARDWARE[other]!.table !== undefined);
  throw new Error(`fleet: there is no table of "${name}": use truth "formula", or one of ${known.join(', ')}`);
}
