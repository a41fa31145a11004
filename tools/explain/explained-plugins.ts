import { endpointColumns, hookColumn } from '../../src/core/hook-columns.js';
import type { CoreInstance } from '../../src/core/memory.js';
import type { UnderstoodRequest } from '../../src/request/understand.js';
import { seededRandom } from '../../src/runtime/seeded-random.js';
import type { Rejection, ScheduleInput } from '../../src/scheduling/decision.js';
import type { EndpointDirectory } from '../../src/scheduling/endpoint-directory.js';
import { HookPlugins, type UnderstoodInput } from '../../src/scheduling/hooks/hook-plugins.js';
import type { HookRequestRecord } from '../../src/scheduling/hooks/hook-request-record.js';
import { PoolViews } from '../../src/scheduling/hooks/pool-views.js';
import type { PluginDefinition } from '../../src/scheduling/plugin.js';
import type { CompiledScheduling } from '../../src/scheduling/program.js';
import type { RequestHeaders } from '../../src/scheduling/request-headers.js';

/** Plugins draw from a row of their own, as on a shard. */
const PLUGIN_SEED = 0x706c7567n;

/** The part of a request that profiles and plugins use. */
export type PluginBody = Pick<
  UnderstoodRequest,
  'model' | 'targetModel' | 'cacheSalt' | 'promptBytes' | 'media' | 'maxOutputTokens' | 'priority' | 'fairnessId'
>;

export interface ExplainedPluginsOptions {
  readonly core: CoreInstance;
  readonly directory: EndpointDirectory;
  readonly scheduling: CompiledScheduling;
  readonly registry: readonly PluginDefinition[];
  readonly seed: bigint;
  readonly nowMs: number;
  /**
   * Clock of the plugins' budgets; absent = it stands still, because a first call, which compiles, is often too slow.
   */
  readonly budgetClock?: () => number;
}

/** Hook plugins in an explanation: the same calls as on a shard, without shared state and counters. */
export class ExplainedPlugins {
  readonly #plugins: HookPlugins;
  /** One line for every call that failed. */
  readonly failures: string[] = [];
  /** Name of the scheduler that decides in the place of the profiles. */
  readonly scheduler: string | undefined;

  /** @throws with one line when a plugin does not start. */
  constructor(options: ExplainedPluginsOptions) {
    const { core, directory, scheduling, registry, seed, nowMs, budgetClock } = options;
    const definitions = new Map(registry.map((definition) => [definition.type, definition]));
    const random = seededRandom(seed + PLUGIN_SEED);
    this.#plugins = new HookPlugins(scheduling.host, definitions, {
      views: new PoolViews(directory, endpointColumns(core)),
      column: (index) => hookColumn(core, index),
      clock: () => nowMs,
      now: budgetClock ?? (() => 0),
      random,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      failed: (plugin) => this.failures.push(plugin),
      count: () => {},
      observe: () => {},
      prompts: { blockTokens: 64, chainHashes: () => new BigUint64Array() },
      share: () => () => {},
    });
    this.scheduler = scheduling.host.find(({ type }) => definitions.get(type)?.scheduler !== undefined)?.name;
  }

  /** The request, seen by the header processors. */
  begin(headers: RequestHeaders, path: string, priority: number, fairnessId: string | undefined): HookRequestRecord {
    return this.#plugins.begin(headers, path, priority, fairnessId);
  }

  /** Asks screeners and admitters. @returns addresses that are left (undefined = all), or the refusal */
  allow(
    request: HookRequestRecord,
    subset: readonly string[] | undefined,
    body: UnderstoodInput,
  ): readonly string[] | undefined | Rejection {
    return this.#plugins.allow(request, subset, body);
  }

  /** Request and pool that profiles run for. */
  input(
    hookRequest: HookRequestRecord,
    request: PluginBody,
    subset: readonly string[] | undefined,
    headers: RequestHeaders,
  ): ScheduleInput {
    const { model, targetModel, cacheSalt, promptBytes, media, maxOutputTokens, priority, fairnessId } = request;
    const body = { model, targetModel, cacheSalt, promptBytes, media, maxOutputTokens, priority, fairnessId };
    hookRequest.understand(body);
    return { ...body, scan: -1, subset, headers, path: hookRequest.path, hookRequest };
  }

  /** Fills the columns that the program of a profile reads. */
  fill(input: ScheduleInput, profile: string): void {
    this.#plugins.fill(input, profile);
  }

  close(): void {
    this.#plugins.close();
  }
}
