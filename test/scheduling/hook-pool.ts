import { CostModel } from '../../dist/src/adaptation/cost-model.js';
import { defaultAdaptation } from '../../dist/src/config/adaptation.js';
import { CostTable } from '../../dist/src/core/coefficients.js';
import { endpointColumns, hookColumn } from '../../dist/src/core/hook-columns.js';
import type { EndpointSignals } from '../../dist/src/core/index.js';
import type { Medium } from '../../dist/src/core/types.js';
import { compileScheduling, type ProfilePlugin } from '../../dist/src/scheduling/compile.js';
import type { GatedScheduler, Placement, Rejection, ScheduleInput } from '../../dist/src/scheduling/decision.js';
import { EndpointDirectory } from '../../dist/src/scheduling/endpoint-directory.js';
import { EndpointFactsTable } from '../../dist/src/scheduling/endpoint-facts.js';
import { CustomScheduler } from '../../dist/src/scheduling/hooks/custom-scheduler.js';
import { HookPlugins, HookScheduler, type HookServices } from '../../dist/src/scheduling/hooks/hook-plugins.js';
import type { HookRequestRecord } from '../../dist/src/scheduling/hooks/hook-request-record.js';
import { PoolViews } from '../../dist/src/scheduling/hooks/pool-views.js';
import { writeLabels } from '../../dist/src/scheduling/label-columns.js';
import { maxScorePicker } from '../../dist/src/scheduling/pickers/max-score-picker.js';
import type { PluginDefinition } from '../../dist/src/scheduling/plugin.js';
import { CoreScheduler } from '../../dist/src/scheduling/scheduler.js';
import { makePool } from '../core/pool.ts';
import { DECIDE } from '../serve/default-sections.ts';
import { singleProfile } from './single-profile.ts';

/** A plugin of a test's configuration: its definition with parameters, and a weight when a profile uses it. */
export interface Use {
  readonly definition: PluginDefinition;
  readonly parameters?: unknown;
  readonly name?: string;
  readonly weight?: number;
}

export interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  readonly subset?: readonly string[];
  readonly priority?: number;
  readonly fairnessId?: string;
  readonly promptBytes?: number;
  readonly media?: readonly Medium[];
  /** Default `m`. */
  readonly model?: string;
}

/** One shard's scheduling with hook plugins over a real core: endpoints 10.0.0.1 … in slots 0 …, named pod-0 …. */
export class HookPool {
  readonly directory = new EndpointDirectory();
  readonly failures: string[] = [];
  /** `counter{label values}` of every count of a plugin. */
  readonly counted: string[] = [];
  readonly logged: object[] = [];
  readonly plugins: HookPlugins;
  readonly scheduler: GatedScheduler;
  readonly pool: ReturnType<typeof makePool>;
  /** What endpoints have told of themselves. */
  readonly facts = new EndpointFactsTable();
  clock = 1_000;
  /** Chains of prompts by the number of their scan. */
  readonly chains: BigUint64Array[] = [];
  /** What `random` answers. */
  random = 0.5;
  /** Messages to the other shards. */
  readonly told: unknown[] = [];
  /** Plays another shard. */
  hear: (message: unknown) => void = () => {};

  constructor(
    uses: readonly Use[],
    signals: readonly EndpointSignals[],
    labels: readonly Record<string, string>[] = [],
  ) {
    const configured = uses.map(({ definition, parameters, name, weight }) => ({
      name: name ?? definition.type,
      definition,
      parameters: definition.parameters.parse(parameters ?? {}),
      weight: weight ?? 1,
    }));
    const picker: ProfilePlugin = {
      name: 'max-score-picker',
      definition: maxScorePicker,
      parameters: maxScorePicker.parameters.parse({}),
      weight: 1,
    };
    const hasPicker = configured.some(({ definition }) => definition.kinds.includes('picker'));
    const plugins = hasPicker ? configured : [...configured, picker];
    const compiled = compileScheduling([{ name: 'default', plugins }], [], configured);
    this.pool = makePool(compiled.profiles[0]!.operations, signals);
    const { core, decider } = this.pool;
    new CostTable(this.pool.control).write(new CostModel(defaultAdaptation().model).coefficients);
    const assignments = signals.map((_, slot) => ({ slot, generation: 1, endpoint: endpointOf(slot, labels[slot]) }));
    this.directory.apply(assignments, []);
    for (const [mask, { accepts }] of compiled.masks.entries()) {
      const slots = assignments.filter(({ endpoint }) => accepts(endpoint.labels)).map(({ slot }) => slot);
      this.pool.table.setMask(mask, slots);
    }
    writeLabels(this.pool.table, compiled.labels, assignments);
    const services: HookServices = {
      views: new PoolViews(this.directory, endpointColumns(core), this.facts),
      column: (index) => hookColumn(core, index),
      clock: () => this.clock,
      now: () => this.clock,
      random: () => this.random,
      log: { info: () => {}, warn: () => {}, error: (details) => this.logged.push(details) },
      failed: (plugin) => this.failures.push(plugin),
      count: (plugin, counter, labels) =>
        this.counted.push(`${counter}{${[plugin.name, ...Object.values(labels)].join()}}`),
      observe: (plugin, histogram, value) => this.counted.push(`${histogram}{${plugin.name}} ${value}`),
      prompts: { blockTokens: 64, chainHashes: (scan) => this.chains[scan] ?? new BigUint64Array() },
      share: (_plugin, receive) => {
        this.hear = receive;
        return (message) => this.told.push(message);
      },
    };
    const definitions = new Map(uses.map(({ definition }) => [definition.type, definition]));
    this.plugins = new HookPlugins(compiled.host, definitions, services);
    const profiles = new CoreScheduler({
      decider,
      directory: this.directory,
      prompts: { chain: () => ({ blocks: 0, tail: false }), noteBeginning: () => {} },
      blockTokens: 64,
      ...singleProfile,
      hookColumns: (input, profile) => this.plugins.fill(input, profile),
      decide: { ...DECIDE, emitScores: true },
      nowMs: () => this.clock,
      later: () => {},
      ejected: () => {},
    });
    const custom = compiled.host.find(({ type }) => definitions.get(type)?.scheduler !== undefined);
    const inner =
      custom === undefined ? profiles : new CustomScheduler(custom, definitions.get(custom.type)!, profiles, services);
    this.scheduler = new HookScheduler(inner, this.plugins);
  }

  begin({ headers = {}, priority = 0, fairnessId }: Asked = {}): HookRequestRecord {
    return this.plugins.begin({ get: (name) => headers[name] }, '/v1/completions', priority, fairnessId);
  }

  /** Decides a request as the ingress does. */
  schedule(asked: Asked = {}, hookRequest = this.begin(asked)): Placement | Rejection {
    const model = asked.model ?? 'm';
    const understood = { model, targetModel: model, promptBytes: asked.promptBytes ?? 0, media: asked.media };
    const subset = this.plugins.allow(hookRequest, asked.subset, understood);
    if (subset !== undefined && 'kind' in subset) return subset;
    const input: ScheduleInput = {
      scan: -1,
      ...understood,
      cacheSalt: undefined,
      maxOutputTokens: undefined,
      priority: hookRequest.priority,
      fairnessId: hookRequest.fairnessId ?? 'default-flow',
      subset,
      headers: hookRequest.headers,
      path: hookRequest.path,
      hookRequest,
    };
    const outcome = this.scheduler.schedule(input);
    if (outcome.kind === 'waiting') throw new Error('waiting without a gate');
    return outcome;
  }

  /** Decide, and release at once: the name of the endpoint, or the code of the rejection. */
  pick(asked: Asked = {}): string {
    const outcome = this.schedule(asked);
    if (outcome.kind === 'rejected') return outcome.code;
    outcome.charge.release();
    return outcome.endpoints[0]!.endpoint.name;
  }

  /** Names of `count` picks, each once, in order. */
  picks(asked: Asked = {}, count = 40): string[] {
    return [...new Set(Array.from({ length: count }, () => this.pick(asked)))].sort();
  }
}

export function endpointOf(slot: number, labels: Readonly<Record<string, string>> = {}) {
  const address = `10.0.0.${slot + 1}`;
  return { id: `default/pod-${slot}`, name: `pod-${slot}`, namespace: 'default', address, port: 8000, labels };
}

export const idle = (count: number): EndpointSignals[] =>
  Array.from({ length: count }, () => ({ waiting: 0, running: 0, kvUsage: 0 }));
