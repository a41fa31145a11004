import type { Usage } from '../../core/types.js';
import type { PickedEndpoint, Placement, Rejection, RejectionCode, ScheduleInput, Scheduler } from '../decision.js';
import type { RequestHeaders } from '../request-headers.js';
import type { HookRequest } from './hook-request.js';

/**
 * The hooks of a hook plugin. All of them run on the thread of the shard that serves the request, between two messages
 * of its streams: while a hook runs, the shard does nothing else. So they are synchronous (a hook that returns a promise
 * has failed), take microseconds, and reach for the network only from timers of their own.
 *
 * A hook that throws, or takes longer than the plugin's budget, counts as failed: its result is dropped and the request
 * goes on as if the plugin had said nothing. See PluginDefinition.budgetMs and docs/plugins-howto.md.
 */

/**
 * What is known about the endpoints, as columns by slot. The columns are views of memory that other threads write:
 * read them, never write, and do not expect two reads to agree.
 */
export interface EndpointViews {
  /** Slots that the request may use: all of the pool, or those of the proxy's subset hint. Do not keep or change it. */
  readonly slots: readonly number[];
  /** Every slot of the pool, whatever the request may use; the same array until an endpoint comes or goes. */
  readonly all: readonly number[];
  /** Who sits in a slot; undefined = nobody. */
  at(slot: number): PickedEndpoint | undefined;
  /** Slot of the endpoint `namespace/name`, whether or not the request may use it; undefined = it is gone. */
  slotOf(id: string): number | undefined;
  /** Requests waiting and running in the engine at the last scrape; 0 where unknown. */
  readonly waiting: Float32Array;
  readonly running: Float32Array;
  /** Share of the KV cache in use, 0 … 1; 0 where unknown. */
  readonly kvUsage: Float32Array;
  /** Requests and uncached prompt tokens that this picker has in flight there. */
  readonly inflight: Uint32Array;
  readonly inflightTokens: Uint32Array;
  /**
   * Blocks at the beginning of the prompt that the prefix index says each slot held before this request. Only in `placed`,
   * and only for plugins that consume `prefix-match`.
   */
  readonly matchedBlocks: Uint32Array;
  /** Whether the engine's signal is known and fresh. */
  isKnown(slot: number, signal: 'waiting' | 'running' | 'kvUsage'): boolean;
}

/** Reads headers before anything is decided; may name the request's flow and leave attributes. */
export interface RequestHeaderProcessor {
  /** Once per request, before admission. The body may not be understood yet. */
  requestHeaders(request: HookRequest): void;
}

/** Narrows the endpoints before any profile runs. */
export interface Screener {
  /**
   * Slots that may be used, a subset of `endpoints.slots`; undefined = all of them. Every screener sees the same set, and
   * their answers are intersected. An empty intersection ends the request with 503.
   */
  screen(request: HookRequest, endpoints: EndpointViews): readonly number[] | undefined;
}

/** Why a request is turned away. */
export interface Denial {
  /** Decides the HTTP status: ResourceExhausted = 429, Forbidden = 403, ServiceUnavailable = 503, … */
  readonly code: RejectionCode;
  /** The client reads `request cannot be admitted: <message>`. */
  readonly message: string;
  /** Value of the drop-reason header. */
  readonly reason?: string | undefined;
  /** Seconds for a Retry-After header. */
  readonly retryAfterSeconds?: number | undefined;
}

/** May turn a request away. */
export interface Admitter {
  /** Once per request, after the screeners; undefined = admitted. The first denial counts. */
  admit(request: HookRequest, endpoints: EndpointViews): Denial | undefined;
}

/** Finds out something about a request for filters and scorers of other plugins. */
export interface DataProducer {
  /** Once per request, before any filter or scorer; what it finds goes to `request.attributes`. */
  produce(request: HookRequest, endpoints: EndpointViews): void;
}

/** Lets requests wait for others. */
export interface RequestHolder {
  /**
   * Once per request with a body, when it is understood and before admission: a promise holds the request until it
   * settles, at most 15 seconds. Undefined = it goes on at once.
   */
  hold(request: HookRequest, endpoints: EndpointViews): Promise<void> | undefined;
}

/** Says which share of a prompt each endpoint holds. Needs `hostsMatches`, and a prefix-cache-scorer that names it. */
export interface MatchTeller {
  /** Fill `column`, which has one cell per slot and holds 0 everywhere, with shares in 0 … 1. Called as `filter`. */
  match(request: HookRequest, endpoints: EndpointViews, column: Float32Array): void;
}

/** Keeps some of the endpoints. Needs the kind `filter`, and a reference in a profile. */
export interface HookFilter {
  /**
   * Fill `column`, which has one cell per slot and holds 1 everywhere: 0 drops the slot, anything above 0 keeps it. NaN
   * counts as a failure. Called once for each profile that names the plugin and runs, whatever other filters leave.
   */
  filter(request: HookRequest, endpoints: EndpointViews, column: Float32Array): void;
}

/** Scores endpoints. Needs the kind `scorer`, and a reference in a profile. */
export interface HookScorer {
  /**
   * Fill `column`, which has one cell per slot and holds 0 everywhere, with scores in 0 … 1, 1 = best; what is outside is
   * clamped, NaN counts as a failure. The profile's weight is applied afterwards. Called as `filter`.
   */
  score(request: HookRequest, endpoints: EndpointViews, column: Float32Array): void;
}

/** Headers of the request as the model server gets it. */
export interface OutgoingHeaders {
  /**
   * Set a header, or take out what the client sent (undefined). The last of several calls for a name counts.
   * @throws RangeError for what is no header name, is a pseudo header or `content-length`, or for control characters.
   */
  set(name: string, value: string | undefined): void;
}

/** Hears where a request was placed. */
export interface PlacementListener {
  /** Once per placed request, before the proxy is told. */
  placed(request: HookRequest, placement: Placement, endpoints: EndpointViews, headers: OutgoingHeaders): void;
}

/** Head of an answer as a plugin sees it. */
export interface HookResponse {
  /** HTTP status; undefined when the proxy names none. */
  readonly status: number | undefined;
  readonly headers: RequestHeaders;
  /** Who answered: the endpoint that the proxy names as the one that served, else the first pick. */
  readonly endpoint: PickedEndpoint;
  /** What the proxy names as the endpoint that served (`ip:port`), whether or not it was picked; undefined = nothing. */
  readonly served: string | undefined;
  /**
   * Set a header of the answer to the client; the last of several values for a name counts.
   * @throws RangeError for what is no header name, is a pseudo header or `content-length`, or for control characters.
   */
  setHeader(name: string, value: string): void;
}

/** Adds headers to an answer. */
export interface ResponseHeaderProcessor {
  /** Once per answer to a placed request, when its headers have come. */
  responseHeaders(request: HookRequest, response: HookResponse): void;
}

/** Where a reporter puts what it has to say: the proxy's dynamic metadata. */
export interface MetadataSink {
  /** Value under `namespace` and `key`; the last of several values counts. Numbers must be finite. */
  set(namespace: string, key: string, value: number | string | boolean): void;
}

/** Tells the proxy about a finished answer. */
export interface ResponseReporter {
  /** Once per answer with a body, at its end; unknown parts of `usage` are -1. Sent with the last piece of the body. */
  report(request: HookRequest, usage: Readonly<Usage>, metadata: MetadataSink): void;
}

/** What a plugin's factory returns: any of the hooks, and `close`. */
export interface HookPlugin
  extends Partial<RequestHeaderProcessor>,
    Partial<Screener>,
    Partial<Admitter>,
    Partial<RequestHolder>,
    Partial<DataProducer>,
    Partial<MatchTeller>,
    Partial<HookFilter>,
    Partial<HookScorer>,
    Partial<PlacementListener>,
    Partial<ResponseHeaderProcessor>,
    Partial<ResponseReporter> {
  /** The shard ends: stop timers, close connections. */
  close?(): void;
}

/** Where a plugin reports what its user should know. Never call it per request. */
export interface PluginLog {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/**
 * Counters that plugins may add to. `event` is for all: `pointsman_plugin_events_total` with the labels `plugin` and
 * `event`, the one that the plugin gives. Label values are bounded to 1,000 per counter and shard.
 */
export type PluginCounter =
  | 'event'
  | 'disaggregatedset_strict_header_no_match'
  | 'encoder_cache_queries'
  | 'encoder_cache_hits';

/** Histograms that plugins may add to. */
export type PluginHistogram = 'encoder_cache_hit_ratio';

/** What a plugin's factory is given. One call per shard, on the shard's thread, before its first request. */
export interface HookContext {
  /** Configured name of the plugin. */
  readonly name: string;
  /** Milliseconds of a monotonic clock, the same on every thread. */
  readonly now: () => number;
  /** Uniform in [0, 1); with `--seed` the same sequence in every run. */
  readonly random: () => number;
  readonly log: PluginLog;
  /** Add one to a counter of the metrics page (docs/plugins-howto.md names them). */
  readonly count: (counter: PluginCounter, labels: Readonly<Record<string, string>>) => void;
  /** Observe a value of a histogram of the metrics page. */
  readonly observe: (histogram: PluginHistogram, value: number) => void;
  /**
   * Join the instances of this plugin on the other shards: what one of them sends, `receive` gets on all others, in the
   * order in which that one sent it. Messages are structured clones. @returns the way to send
   */
  share(receive: (message: unknown) => void): (message: unknown) => void;
}

/** What a custom scheduler is given beside a HookContext. */
export interface SchedulerContext extends HookContext {
  /** The endpoints that a request may use. The object is valid until the next call. */
  endpoints(request: ScheduleInput): EndpointViews;
  /** Place the request on these slots, in order of preference, and charge the first one. At least one slot. */
  place(request: ScheduleInput, slots: readonly number[]): Placement | Rejection;
  /** The scheduler of the configured profiles. */
  readonly profiles: Scheduler;
}
