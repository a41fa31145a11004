import { BOUNDS_OF_LOAD } from '../../src/operations/why/refusal-text.js';
import type { RecentTraffic } from '../../src/operations/why/traffic-figures.js';
import { counted } from '../../src/runtime/counted.js';
import { type Condition, condition, durationText, named, type PickerReading } from './condition.js';

/** Decisions from which on their distribution is judged. */
const DECISIONS_MIN = 20;
/** Share of the traffic above which one endpoint has far too much in a pool of any size. */
const SHARE_MAX = 0.85;
/** Multiple of an even share above which an endpoint of a large pool has far too much. */
const SHARES_MAX = 3;
/** Multiple of the median of the others from which on an endpoint is slow, and the least difference. */
const SLOW_FACTOR = 4;
const SLOW_MS_MIN = 100;

/**
 * Where the requests of the last minute went: an endpoint with far more than its share, and one far slower than the
 * others.
 */
export function trafficConditions({ health }: PickerReading): readonly Condition[] {
  const traffic = health?.traffic;
  if (traffic === undefined) return [];
  const types = new Map((health?.plugins ?? []).map(({ name, type }) => [name, type]));
  return [...hot(traffic, types), ...slow(traffic), ...refused(traffic)];
}

function refused({ refused: counts, windowSeconds }: RecentTraffic): readonly Condition[] {
  const byLoad = Object.entries(counts).filter(([bound]) => BOUNDS_OF_LOAD.has(bound));
  if (byLoad.length === 0) return [];
  const sum = byLoad.reduce((all, [, count]) => all + count, 0);
  const bounds = byLoad.sort(([, a], [, b]) => b - a).map(([bound, count]) => `${bound} ${count}`);
  const text =
    `refused ${counted(sum, 'request')} in the last ${windowSeconds} s, because no endpoint had room ` +
    `(${named(bounds)})`;
  const remedy = 'add model servers, or have clients send less; pointsman why REQUEST names the bound of each';
  return [condition('warning', 'saturated pool', text, remedy)];
}

function hot(traffic: RecentTraffic, types: ReadonlyMap<string, string>): readonly Condition[] {
  const { decided, endpoints, windowSeconds } = traffic;
  const [most] = endpoints;
  if (most === undefined || endpoints.length < 2 || decided < DECISIONS_MIN) return [];
  const share = most.decided / decided;
  if (share < Math.min(SHARE_MAX, SHARES_MAX / endpoints.length)) return [];
  const where =
    `${most.endpoint} had ${most.decided} of ${decided} requests of the last ${windowSeconds} s, and there are ` +
    `${endpoints.length} endpoints`;
  const { reason, remedy } = reasonOf(traffic, types);
  return [condition('warning', 'hot endpoint', `${where}: ${reason}`, remedy)];
}

interface Reason {
  readonly reason: string;
  readonly remedy: string;
}

function reasonOf({ leaning, explained }: RecentTraffic, types: ReadonlyMap<string, string>): Reason {
  if (leaning === null && explained > 0) {
    const reason = 'no plugin prefers it: other endpoints scored as high in the decisions that have kept their scores';
    return { reason, remedy: 'pointsman why REQUEST says how ties are decided; one request at a time may look so' };
  }
  if (leaning === null) {
    const remedy =
      'keep the scores of the next ones, POST /debug/columns?model=NAME (docs/guides/why.md), and ask again; ' +
      '--decision-columns-every=1 keeps all';
    return { reason: 'no decision has kept its scores', remedy };
  }
  const { kind, name, matchedTokens, promptTokens } = leaning;
  const type = types.get(name) ?? name;
  if (type.startsWith('session-')) {
    const remedy =
      'see that the header or attribute that names the session differs between clients, or lower the weight of ' +
      `${name}`;
    return { reason: `${name} sends them there, because they name sessions that are bound to it`, remedy };
  }
  if (/prefix|cache-aware|precise/.test(type)) {
    const held = `it holds ${matchedTokens} of ${promptTokens} tokens of the median prompt`;
    const remedy =
      'if the others are idle, use marginal-cost-scorer in the place of the scorers of load and ' +
      'cache: it weighs what ' +
      'a prompt saves there against the requests in flight';
    return { reason: `${name} sends them there, because their prompts begin alike: ${held}`, remedy };
  }
  if (kind === 'scorer') {
    return {
      reason: `${name} scores it highest`,
      remedy: `check what ${name} reads (pointsman why), or lower its weight`,
    };
  }
  return filterReason(name);
}

function filterReason(name: string): Reason {
  if (name === 'subset hint of the proxy') {
    return { reason: 'the proxy names it alone as allowed', remedy: 'check the subset filter of the gateway' };
  }
  if (name === 'no room')
    return { reason: 'the others have no room', remedy: 'see /debug/flow-control for what closes them' };
  if (name === 'draining' || name === 'ejected' || name === 'not admitted') {
    return { reason: `the others are ${name}`, remedy: 'read the logs of the others' };
  }
  return { reason: `${name} removes the others`, remedy: `check the labels and parameters that ${name} compares` };
}

function slow({ endpoints }: RecentTraffic): readonly Condition[] {
  const timed = endpoints.filter((each) => each.medianMs !== null);
  return timed.flatMap(({ endpoint, medianMs, isWhole }) => {
    const alike = timed.filter((each) => each.isWhole === isWhole);
    const others = alike.filter((each) => each.endpoint !== endpoint).map((each) => each.medianMs!);
    if (others.length === 0) return [];
    const usual = [...others].sort((a, b) => a - b)[others.length >> 1]!;
    if (medianMs! < usual * SLOW_FACTOR || medianMs! - usual < SLOW_MS_MIN) return [];
    const text = `${endpoint} takes ${durationText(medianMs!)} to answer where the others take ${durationText(usual)}`;
    const remedy = 'look at its hardware and its log; drain it until it is as fast as the others';
    return [condition('warning', 'slow endpoint', text, remedy)];
  });
}
