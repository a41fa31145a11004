import type { LoadedAdapters, ServedModel } from '../../contract/endpoint-facts.js';
import type { Usage } from '../../core/types.js';
import type { PickedEndpoint, Placement, Rejection, RejectionCode, ScheduleInput, Scheduler } from '../decision.js';
import type { RequestHeaders } from '../request-headers.js';
import type { HookRequest } from './hook-request.js';

/**
 * The hooks of a hook plugin. All of them run on the thread of the shard that serves the request, between two messages
 * of its streams. While a hook runs, the shard does nothing else. So hooks are synchronous (a hook that returns a
 * promise has failed), take microseconds, and use the network only from timers of their own.
 *
 * A hook that throws, or takes longer than the plugin's budget, counts as failed: its result is dropped and the request
 * goes on without it. See PluginDefinition.budgetMs and docs/plugins-howto.md.
 */

/**
 * The state of the endpoints as columns by slot. The columns are views of memory that other threads write: do not write
 * them, and do not expect two reads to agree.
 */
export interface EndpointViews {
  /** Slots that the request may use: all of the pool, or those of the proxy's subset hint. Do not keep or change it. */
  readonly slots: readonly number[];
  /**
   * Every slot of the pool, also those that the request may not use; the same array until an endpoint comes or goes.
   */
  readonly all: readonly number[];
  /** Endpoint of a slot; undefined = the slot is free. */
  at(slot: number): PickedEndpoint | undefined;
  /** Slot of the endpoint `namespace/name`, whether or not the request may use it; undefined = no such endpoint. */
  slotOf(id: string): number | undefined;
  /** Requests waiting and running in the engine at the last scrape; 0 = unknown. */
  readonly waiting: Float32Array;
  readonly running: Float32Array;
  /** Share of the KV cache in use, 0 … 1; 0 = unknown. */
  readonly kvUsage: Float32Array;
  /** Requests and uncached prompt tokens of this picker in flight on the endpoint. */
  readonly inflight: Uint32Array;
  readonly inflightTokens: Uint32Array;
  /**
   * Leading blocks of the prompt that each slot held before this request, by the prefix index. Only in `placed`, and
   * only for plugins that consume `prefix-match`.
   */
  readonly matchedBlocks: Uint32Array;
  /** Models that an endpoint lists, by name; undefined = it has told no list, or lists are not fetched. */
  modelsOf(slot: number): ReadonlyMap<string, ServedModel> | undefined;
  /** LoRA adapters that an endpoint has loaded; undefined = unknown. Only where `readsLoadedAdapters` is set. */
  adaptersOf(slot: number): LoadedAdapters | undefined;
  /** Counts the changes of `modelsOf` and `adaptersOf`. */
  readonly factsVersion: number;
  /** Whether the engine's signal is known and fresh. */
  isKnown(slot: number, signal: 'waiting' | 'running' | 'kvUsage'): boolean;
}

/** Reads headers before the decision; may set the request's flow and attributes. */
export interface RequestHeaderProcessor {
  /** Called once per request, before admission. The body may not be read yet. */
  requestHeaders(request: HookRequest): void;
}

/** Narrows the endpoints before any profile runs. */
export interface Screener {
  /**
   * Slots that may be used, a subset of `endpoints.slots`; undefined = all of them. Every screener gets the same set,
   * and their answers are intersected. An empty intersection ends the request with 503.
   */
  screen(request: HookRequest, endpoints: EndpointViews): readonly number[] | undefined;
}

/** Reason of a rejection. */
export interface Denial {
  /** Selects the HTTP status: ResourceExhausted = 429, Forbidden = 403, ServiceUnavailable = 503, … */
  readonly code: RejectionCode;
  /** The client reads `request cannot be admitted: <message>`. */
  readonly message: string;
  /** Value of the drop-reason header. */
  readonly reason?: string | undefined;
  /** Seconds for a Retry-After header. */
  readonly retryAfterSeconds?: number | undefined;
}

/** May reject a request. */
export interface Admitter {
  /** Called once per request, after the screeners; undefined = admitted. The first denial counts. */
  admit(request: HookRequest, endpoints: EndpointViews): Denial | undefined;
}

/** Line of a request that a plugin may answer. */
export interface RequestLine {
  /** In capitals. */
  readonly method: string;
  /** Path without query. */
  readonly path: string;
}

/** An answer of the picker itself. */
export interface LocalAnswer {
  readonly kind: 'answered';
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Answers requests in place of the model servers. */
export interface Responder {
  /**
   * Called once per request without a body, before admission; `endpoints` has all slots of the pool. Undefined = the
   * request goes on. The first answer counts.
   */
  respond(line: RequestLine, endpoints: EndpointViews): LocalAnswer | Denial | undefined;
}

/** Computes facts about a request for filters and scorers of other plugins. */
export interface DataProducer {
  /** Called once per request, before any filter or scorer; results are written to `request.attributes`. */
  produce(request: HookRequest, endpoints: EndpointViews): void;
}

/** Holds requests for a group to be complete. */
export interface RequestHolder {
  /**
   * Called once per request with a body, after it is read and before admission. A promise holds the request until it
   * settles, at most 15 seconds. Undefined = the request goes on at once.
   */
  hold(request: HookRequest, endpoints: EndpointViews): Promise<void> | undefined;
}

/**
 * Computes the share of a prompt that each endpoint holds. Needs `hostsMatches`, and a prefix-cache-scorer that names
 * it.
 */
export interface MatchTeller {
  /** Fills `column`, which has one cell per slot and holds 0 everywhere, with shares in 0 … 1. Called as `filter`. */
  match(request: HookRequest, endpoints: EndpointViews, column: Float32Array): void;
}

/** Keeps some of the endpoints. Needs the kind `filter`, and a reference in a profile. */
export interface HookFilter {
  /**
   * Fills `column`, which has one cell per slot and holds 1 everywhere: 0 drops the slot, any value above 0 keeps it.
   * NaN counts as a failure. Called once for each profile that names the plugin and runs, independently of other
   * filters.
   */
  filter(request: HookRequest, endpoints: EndpointViews, column: Float32Array): void;
}

/** Scores endpoints. Needs the kind `scorer`, and a reference in a profile. */
export interface HookScorer {
  /**
   * Fills `column`, which has one cell per slot and holds 0 everywhere, with scores in 0 … 1, 1 = best. Values outside
   * are clamped; NaN counts as a failure. The profile's weight is applied afterwards. Called as `filter`.
   */
  score(request: HookRequest, endpoints: EndpointViews, column: Float32Array): void;
}

/** Headers of the request to the model server. */
export interface OutgoingHeaders {
  /**
   * Sets a header, or removes the client's (undefined). The last of several calls for a name counts.
   * @throws RangeError for an invalid header name, a pseudo header, `content-length`, or control characters.
   */
  set(name: string, value: string | undefined): void;
}

/** Receives placements. */
export interface PlacementListener {
  /** Called once per placed request, before the proxy gets the answer. */
  placed(request: HookRequest, placement: Placement, endpoints: EndpointViews, headers: OutgoingHeaders): void;
}

/** Head of an answer as a plugin sees it. */
export interface HookResponse {
  /** HTTP status; undefined when the proxy reports none. */
  readonly status: number | undefined;
  readonly headers: RequestHeaders;
  /** The answering endpoint: the one that the proxy reports, else the first pick. */
  readonly endpoint: PickedEndpoint;
  /** Endpoint (`ip:port`) that answered as reported by the proxy, picked or not; undefined = not reported. */
  readonly served: string | undefined;
  /** Whether the proxy's load balancer said anything of the answer (metadata `envoy.lb`). */
  readonly balanced: boolean;
  /**
   * Sets a header of the answer to the client; the last of several values for a name counts.
   * @throws RangeError for an invalid header name, a pseudo header, `content-length`, or control characters.
   */
  setHeader(name: string, value: string): void;
}

/** Adds headers to an answer. */
export interface ResponseHeaderProcessor {
  /** Called once per answer to a placed request, when its headers have come. */
  responseHeaders(request: HookRequest, response: HookResponse): void;
}

/** Destination of a reporter's values: the proxy's dynamic metadata. */
export interface MetadataSink {
  /** Sets the value for `namespace` and `key`; the last of several values counts. Numbers must be finite. */
  set(namespace: string, key: string, value: number | string | boolean): void;
}

/** Reports a finished answer to the proxy. */
export interface ResponseReporter {
  /**
   * Called once per answer with a body, at its end; unknown parts of `usage` are -1. The metadata is sent with the last
   * piece of the body.
   */
  report(request: HookRequest, usage: Readonly<Usage>, metadata: MetadataSink): void;
}

/** Is told that a placed request is over. */
export interface EndListener {
  /** Called once per placed request, after its answer has ended, or when its stream has, whatever the reason. */
  ended(request: HookRequest): void;
}

/** Result of a plugin's factory: any of the hooks, and `close`. */
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
    Partial<ResponseReporter>,
    Partial<Responder>,
    Partial<EndListener> {
  /** Stops timers and closes connections at the end of the shard. */
  close?(): void;
}

/** Log of a plugin for its user. Not for messages per request. */
export interface PluginLog {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/**
 * Counters that plugins may add to. `event` is for all plugins: `pointsman_plugin_events_total` with the labels
 * `plugin` and `event`, whose value the plugin chooses. Label values are bounded to 1,000 per counter and shard.
 */
export type PluginCounter =
  | 'event'
  | 'disaggregatedset_strict_header_no_match'
  | 'disaggregatedset_strict_revision_no_match'
  | 'encoder_cache_queries'
  | 'encoder_cache_hits';

/** Histograms that plugins may add to. */
export type PluginHistogram = 'encoder_cache_hit_ratio';

/** Input of a plugin's factory, which is called once per shard, on the shard's thread, before its first request. */
export interface HookContext {
  /** Configured name of the plugin. */
  readonly name: string;
  /** Milliseconds of a monotonic clock, the same on every thread. */
  readonly now: () => number;
  /** Random number, uniform in [0, 1); with `--seed` the same sequence in every run. */
  readonly random: () => number;
  readonly log: PluginLog;
  /** Adds one to a counter of the metrics page (docs/plugins-howto.md names them). */
  readonly count: (counter: PluginCounter, labels: Readonly<Record<string, string>>) => void;
  /** Observes a value of a histogram of the metrics page. */
  readonly observe: (histogram: PluginHistogram, value: number) => void;
  /**
   * Joins the instances of this plugin on the other shards. A message of one instance reaches `receive` of all others,
   * in the order in which it was sent. Messages are structured clones. @returns a function that sends
   */
  share(receive: (message: unknown) => void): (message: unknown) => void;
}

/** Input of a custom scheduler's factory beside a HookContext. */
export interface SchedulerContext extends HookContext {
  /** The endpoints that a request may use. The object is valid until the next call. */
  endpoints(request: ScheduleInput): EndpointViews;
  /** Places the request on these slots, in order of preference, and charges the first one. At least one slot. */
  place(request: ScheduleInput, slots: readonly number[]): Placement | Rejection;
  /** The scheduler of the configured profiles. */
  readonly profiles: Scheduler;
}
