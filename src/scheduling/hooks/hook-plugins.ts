import type { Usage } from '../../core/types.js';
import { messageWithPlace } from '../../runtime/error-place.js';
import type { GatedScheduler, PickedEndpoint, Placement, Rejection, ScheduleInput, Waiting } from '../decision.js';
import type { PluginDefinition } from '../plugin.js';
import type { HookPluginSettings, MatchFormula } from '../program.js';
import { TOKEN_BYTES } from '../prompt-sizes.js';
import type { RequestHeaders } from '../request-headers.js';
import { type AnswerHead, AnswerHeaders, AnswerMetadata, PlacedHeaders } from './header-edits.js';
import { HookRequestRecord } from './hook-request-record.js';
import type {
  Denial,
  HookContext,
  HookPlugin,
  LocalAnswer,
  PluginCounter,
  PluginHistogram,
  PluginLog,
  RequestLine,
} from './hooks.js';
import { BUDGET_MS, PluginGuard } from './plugin-guard.js';
import type { PoolViews } from './pool-views.js';

/** A plugin's name and type, for metrics. */
export interface PluginIdentity {
  /** Configured name. */
  readonly name: string;
  readonly type: string;
}

/** Source of the chains of prompts. */
export interface HookPrompts {
  readonly blockTokens: number;
  /** Chain hashes of a finished scan, as RequestScanner.chainHashes. */
  chainHashes(scan: number, model: string): BigUint64Array;
}

/** Bound on the time for which a request is held, regardless of the plugin's promise. */
const HOLD_MS_MAX = 15_000;

/** Services of the shard for its hook plugins. */
export interface HookServices {
  readonly views: PoolViews;
  /** The thread's column with a number. */
  readonly column: (index: number) => Float32Array;
  /** Milliseconds of the pool clock, for the plugins. */
  readonly clock: () => number;
  /** Milliseconds of a monotonic clock, for their budgets. */
  readonly now: () => number;
  readonly random: () => number;
  readonly log: PluginLog;
  /** Counts a failure of a plugin. */
  readonly failed: (plugin: string) => void;
  /** Adds one to a counter for a plugin (HookContext.count). */
  readonly count: (plugin: PluginIdentity, counter: PluginCounter, labels: Readonly<Record<string, string>>) => void;
  /** Observes a value for a plugin (HookContext.observe). */
  readonly observe: (plugin: PluginIdentity, histogram: PluginHistogram, value: number) => void;
  readonly prompts: HookPrompts;
  /** Joins a plugin's instances on the other shards (HookContext.share). */
  readonly share: (plugin: string, receive: (message: unknown) => void) => (message: unknown) => void;
}

/** Hooks that run for every request. */
const SHARED_HOOKS = [
  'requestHeaders',
  'hold',
  'screen',
  'admit',
  'produce',
  'placed',
  'responseHeaders',
  'report',
  'respond',
  'ended',
] as const;
type SharedHook = (typeof SHARED_HOOKS)[number];

/** A plugin's instance on this shard. */
interface Instance {
  readonly plugin: HookPlugin;
  readonly guard: PluginGuard;
  readonly filterColumn: Float32Array | undefined;
  readonly scoreColumn: Float32Array | undefined;
  readonly matchColumns: readonly (MatchFormula & { readonly cells: Float32Array })[];
  readonly profiles: readonly string[];
}

const screenedOut: Rejection = {
  kind: 'rejected',
  code: 'ServiceUnavailable',
  message: 'screeners eliminated all endpoint candidates',
  reason: 'rejected-no-endpoints',
};

/** The context of the factory of a plugin. */
export function hookContext(plugin: PluginIdentity, services: HookServices): HookContext {
  const { clock, random, log } = services;
  const { name, type } = plugin;
  return {
    name,
    now: clock,
    random,
    log,
    count: (counter, labels) => services.count({ name, type }, counter, labels),
    observe: (histogram, value) => services.observe({ name, type }, histogram, value),
    share: (receive) => services.share(name, receive),
  };
}

/** The guard of plugin `name`. */
export function guardOf(name: string, budgetMs: number | undefined, services: HookServices): PluginGuard {
  const { now, failed, log } = services;
  return new PluginGuard({ name, budgetMs: budgetMs ?? BUDGET_MS, now, failed, log });
}

/** All hook plugins of one shard, and all their calls from the request path. */
export class HookPlugins {
  readonly #services: HookServices;
  readonly #instances: readonly Instance[];
  readonly #hooked: ReadonlyMap<SharedHook, readonly Instance[]>;

  /** @throws with one line that names the faulty plugin */
  constructor(
    settings: readonly HookPluginSettings[],
    definitions: ReadonlyMap<string, PluginDefinition>,
    services: HookServices,
  ) {
    this.#services = services;
    this.#instances = settings.flatMap((each) => makeInstance(each, definitions.get(each.type), services));
    this.#hooked = new Map(
      SHARED_HOOKS.map((hook) => [hook, this.#instances.filter(({ plugin }) => plugin[hook] !== undefined)]),
    );
  }

  get count(): number {
    return this.#instances.length;
  }

  #with(hook: SharedHook): readonly Instance[] {
    return this.#hooked.get(hook)!;
  }

  /** Starts a request and runs the header processors. @param fairnessId named by the request; undefined = none */
  begin(headers: RequestHeaders, path: string, priority: number, fairnessId: string | undefined): HookRequestRecord {
    const request = new HookRequestRecord(headers, path, priority, fairnessId);
    for (const { plugin, guard } of this.#with('requestHeaders')) {
      guard.run('requestHeaders', () => plugin.requestHeaders!(request), undefined);
    }
    return request;
  }

  /**
   * Asks the plugins whether the request has to wait.
   * @returns a promise that resolves when the request may go on and never rejects; undefined = at once
   */
  hold(request: HookRequestRecord, input: HeldInput): Promise<void> | undefined {
    const holders = this.#with('hold');
    if (holders.length === 0) return undefined;
    const { views, prompts } = this.#services;
    request.understand(input);
    request.blockTokens = prompts.blockTokens;
    request.chain = () => (input.scan < 0 ? new BigUint64Array() : prompts.chainHashes(input.scan, input.targetModel));
    views.restrict(input.subset);
    const waits: Promise<void>[] = [];
    for (const { plugin, guard } of holders) {
      guard.run(
        'hold',
        () => void waits.push(...[plugin.hold!(request, views)].filter((wait) => wait !== undefined)),
        undefined,
      );
    }
    request.chain = undefined;
    return waits.length === 0 ? undefined : atMost(HOLD_MS_MAX, Promise.allSettled(waits));
  }

  /**
   * Asks screeners and admitters.
   * @returns the addresses that the request may use (undefined = all), or a rejection
   */
  allow(
    request: HookRequestRecord,
    subset: readonly string[] | undefined,
    input: UnderstoodInput,
  ): readonly string[] | undefined | Rejection {
    request.understand(input);
    const { views } = this.#services;
    const screeners = this.#with('screen');
    const admitters = this.#with('admit');
    if (screeners.length === 0 && admitters.length === 0) return subset;
    views.restrict(subset);
    const all = views.slots;
    let kept: readonly number[] = all;
    for (const { plugin, guard } of screeners) {
      const answer = guard.run('screen', () => plugin.screen!(request, views), undefined);
      if (answer !== undefined) kept = kept.filter((slot) => answer.includes(slot));
    }
    // The scheduler rejects a request without any endpoint.
    if (kept.length === 0 && all.length > 0) return screenedOut;
    views.slots = kept;
    for (const { plugin, guard } of admitters) {
      const denial = guard.run('admit', () => plugin.admit!(request, views), undefined);
      if (denial === undefined) continue;
      return refusal(denial, `request cannot be admitted: ${denial.message}`);
    }
    return kept === all ? subset : kept.map((slot) => views.at(slot)!.address);
  }

  /** Fills the columns of the hook filters and scorers of a profile for the next decision. */
  fill(input: ScheduleInput, profile: string): void {
    const request = input.hookRequest;
    if (!(request instanceof HookRequestRecord)) return;
    request.understand(input);
    request.profile = profile;
    const views = this.#services.views.restrict(input.subset);
    this.#produce(request, views);
    for (const instance of this.#instances) this.#fillMatches(instance, request, input);
    for (const { plugin, guard, filterColumn, scoreColumn, profiles } of this.#instances) {
      if (!profiles.includes(profile)) continue;
      if (filterColumn !== undefined) {
        this.#fillColumn(guard, 'filter', filterColumn, 1, () =>
          plugin.filter!(request, this.#services.views, filterColumn),
        );
      }
      if (scoreColumn !== undefined) {
        this.#fillColumn(guard, 'score', scoreColumn, 0, () =>
          plugin.score!(request, this.#services.views, scoreColumn),
        );
      }
    }
    request.profile = '';
  }

  /** Runs the producers once per request, for any number of profiles. */
  #produce(request: HookRequestRecord, views: PoolViews): void {
    if (request.produced) return;
    request.produced = true;
    for (const { plugin, guard } of this.#with('produce')) {
      guard.run('produce', () => plugin.produce!(request, views), undefined);
    }
  }

  /** Converts a producer's shares to scores by the formula of every scorer that reads them. */
  #fillMatches({ plugin, guard, matchColumns }: Instance, request: HookRequestRecord, input: ScheduleInput): void {
    const { views } = this.#services;
    const promptTokens = input.promptBytes / TOKEN_BYTES;
    for (const { cells, lengthWeight, scaleTokens } of matchColumns) {
      this.#fillColumn(guard, 'match', cells, 0, () => plugin.match!(request, views, cells));
      if (lengthWeight === 0) continue;
      for (const slot of views.slots) {
        const share = cells[slot]!;
        const length = Math.min(1, (share * promptTokens) / scaleTokens);
        cells[slot] = (1 - lengthWeight) * share + lengthWeight * length * length;
      }
    }
  }

  #fillColumn(guard: PluginGuard, hook: string, column: Float32Array, neutral: number, call: () => void): void {
    const { views } = this.#services;
    const { cells } = views;
    column.fill(neutral, 0, cells);
    const filled = guard.run(
      hook,
      () => {
        const answer: unknown = call();
        for (const slot of views.slots) if (Number.isNaN(column[slot])) throw new Error(`slot ${slot} has NaN`);
        // A promise is passed on, so that the guard refuses it.
        return answer === undefined ? true : (answer as true);
      },
      false,
    );
    if (!filled) column.fill(neutral, 0, cells);
  }

  /** Reports a placement to the plugins. @returns the placement with the headers that they set */
  placed(request: HookRequestRecord, placement: Placement, subset: readonly string[] | undefined): Placement {
    const listeners = this.#with('placed');
    if (listeners.length === 0) return placement;
    const views = this.#services.views.restrict(subset);
    request.blockTokens = this.#services.prompts.blockTokens;
    const headers = new PlacedHeaders();
    for (const { plugin, guard } of listeners) {
      guard.run('placed', () => plugin.placed!(request, placement, views, headers), undefined);
    }
    if (headers.changed.size === 0) return placement;
    return { ...placement, headers: new Map([...placement.headers, ...headers.changed]) };
  }

  /** Headers that plugins add to an answer. @param served address of the answering endpoint, if the proxy reports it */
  responseHeaders(request: HookRequestRecord, placement: Placement, head: AnswerHead): ReadonlyMap<string, string> {
    const response = new AnswerHeaders(head, answeredBy(placement, head.served));
    for (const { plugin, guard } of this.#with('responseHeaders')) {
      guard.run('responseHeaders', () => plugin.responseHeaders!(request, response), undefined);
    }
    return response.added;
  }

  /** Metadata of the reporters for a finished answer, by namespace. */
  report(request: HookRequestRecord, usage: Readonly<Usage>): AnswerMetadata['namespaces'] {
    const metadata = new AnswerMetadata();
    for (const { plugin, guard } of this.#with('report')) {
      guard.run('report', () => plugin.report!(request, usage, metadata), undefined);
    }
    return metadata.namespaces;
  }

  /** Answer of a plugin to a request without a body; undefined = the request goes on. */
  respond(line: RequestLine): LocalAnswer | Rejection | undefined {
    const responders = this.#with('respond');
    if (responders.length === 0) return undefined;
    const views = this.#services.views.restrict(undefined);
    for (const { plugin, guard } of responders) {
      const answer = guard.run('respond', () => plugin.respond!(line, views), undefined);
      if (answer !== undefined) return 'kind' in answer ? answer : refusal(answer, answer.message);
    }
    return undefined;
  }

  /** A placed request is over. */
  ended(request: HookRequestRecord): void {
    for (const { plugin, guard } of this.#with('ended')) {
      guard.run('ended', () => plugin.ended!(request), undefined);
    }
  }

  /** Closes the plugins at the end of the shard. */
  close(): void {
    for (const { plugin, guard } of this.#instances) guard.run('close', () => plugin.close?.(), undefined);
  }
}

function refusal({ code, reason, retryAfterSeconds }: Denial, message: string): Rejection {
  return { kind: 'rejected', code, message, reason, retryAfterSeconds };
}

/** The part of a request that is known once its body is. */
export type UnderstoodInput = Pick<ScheduleInput, 'model' | 'targetModel' | 'promptBytes' | 'media'>;
/** The part of a request that `hold` uses. */
type HeldInput = UnderstoodInput & Pick<ScheduleInput, 'scan' | 'subset'>;

/** Settles with `waits`, or after `ms` milliseconds. */
function atMost(ms: number, waits: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    waits.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function answeredBy(placement: Placement, served: string | undefined): PickedEndpoint {
  return placement.endpoints.find(({ address }) => address === served) ?? placement.endpoints[0]!;
}

function makeInstance(
  { name, type, parameters, filterColumn, scoreColumn, matchColumns, profiles }: HookPluginSettings,
  definition: PluginDefinition | undefined,
  services: HookServices,
): readonly Instance[] {
  if (definition === undefined) throw new Error(`plugin "${name}": this thread knows no type "${type}"`);
  if (definition.host === undefined) return [];
  let plugin: HookPlugin;
  try {
    plugin = definition.host(parameters, hookContext({ name, type }, services));
  } catch (error) {
    throw new Error(`plugin "${name}" of type "${type}" does not start: ${messageWithPlace(error)}`);
  }
  if (filterColumn !== undefined) requireHook(plugin, 'filter', name);
  if (scoreColumn !== undefined) requireHook(plugin, 'score', name);
  if (matchColumns.length > 0) requireHook(plugin, 'match', name);
  return [
    {
      plugin,
      guard: guardOf(name, definition.budgetMs, services),
      filterColumn: filterColumn === undefined ? undefined : services.column(filterColumn),
      scoreColumn: scoreColumn === undefined ? undefined : services.column(scoreColumn),
      matchColumns: matchColumns.map(({ column, ...formula }) => ({ ...formula, cells: services.column(column) })),
      profiles,
    },
  ];
}

function requireHook(plugin: HookPlugin, hook: 'filter' | 'score' | 'match', name: string): void {
  if (plugin[hook] !== undefined) return;
  throw new Error(`plugin "${name}" stands in a profile, but has no ${hook}(): add it, or take the kind away`);
}

/**
 * A scheduler that reports its placements to hook plugins. Their filters and scores are in the columns of each profile.
 */
export class HookScheduler implements GatedScheduler {
  readonly #inner: GatedScheduler;
  readonly #plugins: HookPlugins;

  constructor(inner: GatedScheduler, plugins: HookPlugins) {
    this.#inner = inner;
    this.#plugins = plugins;
  }

  schedule(input: ScheduleInput): Placement | Rejection | Waiting {
    const request = input.hookRequest;
    if (!(request instanceof HookRequestRecord)) return this.#inner.schedule(input);
    request.understand(input);
    const outcome = this.#inner.schedule(input);
    return outcome.kind === 'placed' ? this.#plugins.placed(request, outcome, input.subset) : outcome;
  }
}
