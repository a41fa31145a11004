import type { Outcome } from '../core/label.js';
import type { PromptTokens } from '../core/token-chain.js';
import type { Medium } from '../core/types.js';
import type { Endpoint } from '../pool/endpoint.js';
import type { LabelSelector } from './filters/label-selector.js';
import type { HostRequest } from './host/hooks.js';

/** Request headers by lower-case name; of duplicates the last one. */
export interface RequestHeaders {
  get(name: string): string | undefined;
}

/** Predicted times of endpoints, by position in `slots`, in milliseconds; both NaN = nothing is known of that one. */
export interface EndpointPredictions {
  readonly slots: readonly number[];
  readonly ttftMs: Float64Array;
  readonly tpotMs: Float64Array;
}

/** What is known about one endpoint for one request, before the decision. */
export interface EndpointOutlook {
  readonly slot: number;
  readonly endpoint: Endpoint;
  /** As scraped; undefined when unknown. */
  readonly waiting: number | undefined;
  readonly kvUsage: number | undefined;
  /** Requests, and uncached prompt tokens without a first output, in flight from here. */
  readonly inflight: number;
  readonly prefillTokens: number;
  /** Share of the prompt, in blocks, that it is thought to hold. */
  readonly held: number;
}

/** What prediction servers are told about a request. */
export interface RequestOutlook {
  readonly promptTokens: number;
  readonly endpoints: readonly EndpointOutlook[];
}

/** Everything that a decision needs to know about a request. */
export interface ScheduleInput {
  /** Id of the finished request scan on this thread, or -1 when there is no prompt (header-only, passthrough). */
  readonly scan: number;
  /** What the client asked for, and what goes upstream (after rewrite). Empty when the dialect has no model. */
  readonly model: string;
  readonly targetModel: string;
  readonly cacheSalt: string | undefined;
  readonly promptBytes: number;
  /** Different images, videos and sounds of the prompt; absent = none. */
  readonly media?: readonly Medium[] | undefined;
  /** The prompt has images, audio or video; absent = no. */
  readonly hasMedia?: boolean | undefined;
  /** Tokens of the prompt as the model's tokeniser cuts it; undefined = they are estimated from `promptBytes`. */
  readonly tokens?: PromptTokens | undefined;
  /** What prediction servers say about endpoints; undefined = nothing, or nobody asked. */
  readonly predictions?: EndpointPredictions | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly priority: number;
  readonly fairnessId: string;
  /** Addresses (`ip:port` exact, bare IP = any port) that the proxy allows; undefined = no hint. */
  readonly subset: readonly string[] | undefined;
  readonly headers: RequestHeaders;
  readonly path: string;
  /** The request as host plugins see it; undefined when there are none. */
  readonly hosted?: HostRequest | undefined;
  /** Flow control is on: the request goes only where there is room, and waits otherwise. */
  readonly gate?: GateInput | undefined;
}

/** What a request needs to wait, and what it has after it did. */
export interface GateInput {
  /** Parking slot that it may take, -1 = none is free. */
  readonly parking: number;
  /** The charge of its grant; undefined when it comes anew. */
  readonly held: { readonly ticket: number; readonly ticketGeneration: number } | undefined;
  /** The first token of its answer will not be seen: the answer comes in one piece. */
  readonly blind: boolean;
  /** It has to go through the queues, whether there is room or not. */
  readonly queued: boolean;
}

export interface PickedEndpoint {
  readonly slot: number;
  /** `ip:port`, IPv6 in brackets. */
  readonly address: string;
  readonly endpoint: Endpoint;
}

/** What an answer that has ended tells about its endpoint. Counts are undefined when nobody told them. */
export interface AnswerMeasures {
  readonly outcome: Exclude<Outcome, 'aborted'>;
  /** The answer came as a stream, so that its first byte is the first output. */
  readonly streamed: boolean;
  readonly outputTokens: number | undefined;
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
}

/** Names an entry of the ledger for as long as it is charged. */
export interface Ticket {
  readonly ticket: number;
  readonly generation: number;
}

/** What a placed request holds on its endpoint. Every method may be called in any order; each acts at most once. */
export interface Charge {
  /** The prefill is over (first response byte): its tokens leave the load. */
  prefillDone(): void;
  /** The output has reached `tokens` tokens: active blocks grow at block boundaries. */
  grow(tokens: number): void;
  /** A piece of output came `ms` milliseconds after the one before it, for each of its tokens. */
  stepped?(ms: number): void;
  /** What the answer said at its end, for the request's label; a charge released without it is labelled as aborted. */
  answered?(answer: AnswerMeasures): void;
  /** Release everything. Idempotent. */
  release(): void;
  /** What it holds in the ledger now. */
  readonly tickets?: readonly Ticket[];
  /** The request is ended for one of a higher band: whoever paid for it gets it back. `release` follows. */
  revoked?(): void;
  /**
   * How the upstream answered, for the ejection of failing endpoints. First call wins.
   * `failure`: 5xx, reset, or the proxy's own 503.
   */
  outcome(result: 'success' | 'failure'): void;
}

/** What was predicted for the endpoint that a request was placed on, and what the request wants, in milliseconds. */
export interface LatencyPrediction {
  /** Undefined = nothing was predicted. */
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
  /** 0 = the request does not say. */
  readonly wantedTtftMs: number;
  readonly wantedTpotMs: number;
}

export interface Placement {
  readonly kind: 'placed';
  /** Who answers the request: in order of preference, at least one. */
  readonly endpoints: readonly PickedEndpoint[];
  /** What every profile that ran picked, by the profile's name: in order of preference, at least one. */
  readonly picks: ReadonlyMap<string, readonly PickedEndpoint[]>;
  readonly charge: Charge;
  /** Headers of the request that the model server is told; undefined = take out what the client sent. Lower case. */
  readonly headers: ReadonlyMap<string, string | undefined>;
  readonly matchedBlocks: number;
  readonly totalBlocks: number;
  readonly matchedTokens: number;
  /** Undefined when nothing predicts latency. */
  readonly prediction?: LatencyPrediction | undefined;
  /** Weighted score of every candidate by address; only when scores are emitted. */
  readonly scores: ReadonlyMap<string, number> | undefined;
}

export type RejectionCode =
  | 'BadRequest'
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'PreconditionFailed'
  | 'ResourceExhausted'
  | 'Internal'
  | 'ServiceUnavailable'
  | 'PayloadTooLarge';

export interface Rejection {
  readonly kind: 'rejected';
  readonly code: RejectionCode;
  /** Text behind `inference error: <code> - `. */
  readonly message: string;
  /** Value of the drop-reason header; undefined = no header. */
  readonly reason: string | undefined;
  /** Seconds for a Retry-After header. */
  readonly retryAfterSeconds?: number | undefined;
  /** No endpoint has room, and there was no parking slot to wait in. */
  readonly unparked?: boolean | undefined;
}

/** Fills the columns of host plugins for the profile that runs next. */
export type HostColumnFiller = (input: ScheduleInput, profile: string) => void;

/** The decision of one request, on the shard's thread, synchronous. */
export interface Scheduler {
  schedule(input: ScheduleInput): Placement | Rejection;
}

/** No endpoint that the request may use has room: it waits in its parking slot. */
export interface Parked {
  readonly kind: 'parked';
}

/** The scheduler of a shard: requests that come with a `gate` may have to wait. */
export interface GatedScheduler {
  schedule(input: ScheduleInput): Placement | Rejection | Parked;
}

/** One operation of a compiled profile. `code` names an exported constant of the core (`OP_*`). */
export interface ProgramOperation {
  readonly code:
    | 'OP_FILTER_MASK'
    | 'OP_FILTER_HOST'
    | 'OP_SCORE_QUEUE'
    | 'OP_SCORE_RUNNING'
    | 'OP_SCORE_KV_USAGE'
    | 'OP_SCORE_PREFIX'
    | 'OP_SCORE_ACTIVE_REQUEST'
    | 'OP_SCORE_TOKEN_LOAD'
    | 'OP_SCORE_ACTIVE_BLOCKS'
    | 'OP_SCORE_LOAD_AWARE'
    | 'OP_SCORE_ADAPTER'
    | 'OP_SCORE_HOST'
    | 'OP_FILTER_THRESHOLD'
    | 'OP_FILTER_RANGE'
    | 'OP_FILTER_LOWEST'
    | 'OP_FILTER_UTILIZATION'
    | 'OP_FILTER_PREFIX_AFFINITY'
    | 'OP_FILTER_CONTEXT_LENGTH'
    | 'OP_FILTER_UNSATURATED'
    | 'OP_FILTER_CONCURRENCY'
    | 'OP_FILTER_STICKY'
    | 'OP_SCORE_HEADER_LABEL'
    | 'OP_SCORE_ATTRIBUTE'
    | 'OP_SCORE_NO_HIT_LRU'
    | 'OP_SCORE_CONTEXT_LENGTH'
    | 'OP_SCORE_RENDEZVOUS'
    | 'OP_SCORE_CONSISTENT_HASH'
    | 'OP_SCORE_LMETRIC'
    | 'OP_SCORE_CACHE_AWARE'
    | 'OP_FILTER_TOPOLOGY'
    | 'OP_SCORE_TOPOLOGY'
    | 'OP_SCORE_MARGINAL_COST'
    | 'OP_WOULD_PICK'
    | 'OP_SCORE_PREFIX_BALANCE'
    | 'OP_SCORE_EXPLOIT_EXPLORE'
    | 'OP_PREDICT'
    | 'OP_ADMIT_LATENCY'
    | 'OP_FILTER_TIER'
    | 'OP_SCORE_LATENCY'
    | 'OP_PICK_BEST_OF'
    | 'OP_PICK_LEAST_REQUEST'
    | 'OP_PICK_ROUND_ROBIN'
    | 'OP_PICK_MAX_SCORE'
    | 'OP_PICK_RANDOM'
    | 'OP_PICK_WEIGHTED_RANDOM';
  /** Configured name of the plugin, for explanations. */
  readonly name: string;
  /** Weight of a scorer; 1 otherwise. */
  readonly weight: number;
  /** Numbers in the order that the operation documents (assembly/scheduling/program.ts). At most 8. */
  readonly parameters: readonly number[];
}

/** A set of endpoints that the control thread keeps as a mask: the parameter of OP_FILTER_MASK is its index. */
export interface MaskSpecification {
  readonly accepts: (labels: Readonly<Record<string, string>>) => boolean;
}

/** What one endpoint's labels or address say, as the core compares it. */
export type LabelValue =
  /** Compared by hash; undefined = the endpoint has none. */
  | { readonly kind: 'text'; readonly text: string | undefined }
  /** From `min` to `max`, both included; undefined = the endpoint has none, `bad` = its label is no range. */
  | { readonly kind: 'range'; readonly range: { readonly min: number; readonly max: number } | 'bad' | undefined };

/** A pair of columns that the control thread keeps: what an operation reads about every endpoint. */
export interface LabelSpecification {
  /** What it reads, in words; specifications with equal keys read the same. */
  readonly key: string;
  readonly read: (endpoint: Endpoint) => LabelValue;
}

/** A profile, compiled: plain data that the control thread writes into shared memory. */
export interface CompiledProfile {
  readonly name: string;
  readonly operations: readonly ProgramOperation[];
}

/** Settings of the approximate prefix cache that every decision uses. */
export interface PrefixSettings {
  readonly blockTokens: number;
  readonly maxBlocks: number;
  /** Blocks that one endpoint may hold in the index, when the engine does not say. */
  readonly capacityBlocks: number;
  readonly autoTune: boolean;
  /**
   * What tells who holds which blocks: what was sent there (the default), what the engines say, or what they say and,
   * for a while, what was sent there.
   */
  readonly knownBy?: 'decisions' | 'events' | 'events and decisions' | undefined;
}

/** How the events of engines are followed. */
export interface KvEventSettings {
  /** Where engines connect to; undefined = nowhere. */
  readonly bind: string | undefined;
  /** Ports on which every endpoint publishes and replays; undefined = they are not asked. */
  readonly connect: { readonly port: number; readonly replayPort: number | undefined } | undefined;
  readonly topicFilter: string;
  /** Model that the engines serve, where their topics do not say it. */
  readonly model: string | undefined;
  /** Endpoints that publish, as a Kubernetes selector, and their namespace; undefined = all. */
  readonly selector: LabelSelector | undefined;
  readonly namespace: string | undefined;
  /** How long a block counts as held that was only sent to an endpoint; undefined = not at all. */
  readonly speculativeTtlMs: number | undefined;
}

/** How a match becomes a score, as prefix-cache-scorer does it: (1 - w) × share + w × min(1, tokens / scale)². */
export interface MatchFormula {
  readonly lengthWeight: number;
  readonly scaleTokens: number;
}

/** Servers that speak llm-d-router's prediction protocol, and how they are asked. */
export interface PredictionServers {
  /** Addresses; empty = the built-in model predicts, and only samples are sent. */
  readonly prediction: readonly string[];
  readonly training: string | undefined;
  /** Rows of one caller's call at most; a larger pool is asked in several. */
  readonly rowsMax: number;
  /** Rows from which on a call does not wait for others to join it; 0 = no bound. */
  readonly coalescedRowsMax: number;
  /** Milliseconds that a call waits for others to join it. */
  readonly coalesceMs: number;
  /** Calls under way at once. */
  readonly dispatchesMax: number;
  /** Milliseconds after which a call is given up. */
  readonly timeoutMs: number;
  /** Samples of one flush at most, and milliseconds between two. */
  readonly samplesMax: number;
  readonly flushMs: number;
}

/** How latency is predicted. */
export interface PredictionSettings {
  /** Off = only learn. */
  readonly predicts: boolean;
  /** Answers are streamed: single tokens have a time. */
  readonly streaming: boolean;
  /** Factor of the wanted time per output token. */
  readonly bufferFactor: number;
  /** Label whose value `prefill` marks endpoints without output; empty = none. */
  readonly roleLabel: string;
  /** Undefined = the built-in model predicts, and no samples are sent. */
  readonly servers: PredictionServers | undefined;
  /** Milliseconds that a request waits for prediction servers. */
  readonly waitMs: number;
  /** The model predicts where the servers say nothing. */
  readonly modelWhenServersFail: boolean;
  /** What the model believes before it has learned. */
  readonly prior: { readonly prefillTokensPerSecond: number; readonly tpotMs: number };
}

/** A server that renders prompts: vLLM's `/v1/completions/render` and `/v1/chat/completions/render`. */
export interface RenderSettings {
  readonly kind: 'render';
  /** Base URL without a slash at its end; undefined = the endpoints of the pool in turn. */
  readonly url: string | undefined;
  /** Name of the model as that server knows it. */
  readonly modelName: string;
  /** Deadlines in milliseconds: of text, and of messages with parts, for which images may have to be fetched. */
  readonly timeoutMs: number;
  readonly partsTimeoutMs: number;
}

/** The tokeniser files of the model, in a folder. */
export interface LocalTokenSettings {
  readonly kind: 'local';
  /** Absolute path. */
  readonly folder: string;
  /** Deadline in milliseconds. */
  readonly timeoutMs: number;
  /** Threads that cut prompts, for each shard. */
  readonly threads: number;
}

/** Where the tokens of prompts come from, instead of an estimate. */
export type TokenSettings = RenderSettings | LocalTokenSettings;

/** A plugin that runs on the shards: plain data, from which each shard makes its own instance. */
export interface HostPluginSettings {
  readonly name: string;
  readonly type: string;
  readonly parameters: unknown;
  /** Columns that its filter and its scorer fill; undefined = no profile uses them. */
  readonly filterColumn: number | undefined;
  readonly scoreColumn: number | undefined;
  /** Columns that its `match` fills, each by a formula of its own. */
  readonly matchColumns: readonly (MatchFormula & { readonly column: number })[];
  /** Names of the profiles that it stands in. */
  readonly profiles: readonly string[];
}

/** The profile handler and the deciders that it may ask: plain data, from which each shard makes its own. */
export interface HandlerSettings {
  readonly name: string;
  readonly type: string;
  readonly parameters: unknown;
  readonly deciders: readonly { readonly name: string; readonly type: string; readonly parameters: unknown }[];
}

/** What the configuration's scheduling part compiles to. */
export interface CompiledScheduling {
  readonly profiles: readonly CompiledProfile[];
  readonly masks: readonly MaskSpecification[];
  readonly labels: readonly LabelSpecification[];
  /** Request headers, in lower case, whose values the programs look at; a program names them by position. */
  readonly requestKeys: readonly string[];
  /** Named values that somebody has to write for every endpoint; a program names them by position. */
  readonly attributes: readonly string[];
  /** Model names that are no LoRA adapters. */
  readonly baseModels: readonly string[];
  /** Undefined when no plugin needs prefix matches. */
  readonly prefix: PrefixSettings | undefined;
  /** The plugin that set up the prefix index, as metrics name it. */
  readonly prefixProducer: { readonly name: string; readonly type: string } | undefined;
  /** Undefined = no events of engines are followed. */
  readonly kvEvents?: KvEventSettings | undefined;
  /** Undefined = tokens are estimated. */
  readonly tokens?: TokenSettings | undefined;
  /** Count output estimates as in-flight tokens (inflight-load-producer). */
  readonly estimateOutput: { readonly ratio: number; readonly maxTokens: number | undefined } | undefined;
  readonly handler: HandlerSettings;
  /** Undefined when nothing predicts latency. */
  readonly prediction: (PredictionSettings & { readonly name: string; readonly type: string }) | undefined;
  /** Plugins that run on the shards, in the order of the configuration. */
  readonly host: readonly HostPluginSettings[];
}
