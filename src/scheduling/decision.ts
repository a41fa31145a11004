import type { Endpoint } from '../contract/endpoint.js';
import type { RetentionHint } from '../contract/queue-settings.js';
import type { RefusingBound } from '../contract/refusing-bound.js';
import type { RequestResult } from '../core/decision-data.js';
import type { PromptTokens } from '../core/token-chain.js';
import type { Outcome } from '../core/training-sample.js';
import type { AnswerSign, Medium } from '../core/types.js';
import type { HookRequest } from './hooks/hook-request.js';
import type { EndpointPredictions, LatencyPrediction } from './latency-outlook.js';
import type { RequestHeaders } from './request-headers.js';

/** Input of a decision: a request as the scheduler needs it. */
export interface ScheduleInput {
  /** Id of the finished request scan on this thread, or -1 when there is no prompt (header-only, passthrough). */
  readonly scan: number;
  /** Model that the client named, and model sent upstream (after rewrite). Empty when the dialect has no model. */
  readonly model: string;
  readonly targetModel: string;
  readonly cacheSalt: string | undefined;
  readonly promptBytes: number;
  /** Whether the prompt is token ids, four bytes each, and no text; absent = no. */
  readonly tokenIds?: boolean | undefined;
  /** Distinct images, videos and sounds of the prompt; absent = none. */
  readonly media?: readonly Medium[] | undefined;
  /** Whether the prompt has images, audio or video; absent = no. */
  readonly hasMedia?: boolean | undefined;
  /** Tokens of the prompt by the model's tokeniser; undefined = estimated from `promptBytes`. */
  readonly tokens?: PromptTokens | undefined;
  /** Predictions of the prediction servers; undefined = none, or not asked. */
  readonly predictions?: EndpointPredictions | undefined;
  readonly maxOutputTokens: number | undefined;
  /** Expected length of the answer; absent = unknown. */
  readonly outputClass?: OutputClass | undefined;
  readonly priority: number;
  readonly fairnessId: string;
  /** Addresses (`ip:port` exact, bare IP = any port) that the proxy allows; undefined = no hint. */
  readonly subset: readonly string[] | undefined;
  readonly headers: RequestHeaders;
  readonly path: string;
  /** The request as hook plugins see it; undefined without hook plugins. */
  readonly hookRequest?: HookRequest | undefined;
  /** Set when flow control is on: the request goes only to an endpoint with room, and waits otherwise. */
  readonly gate?: GateInput | undefined;
}

/** Input and result of a wait for room. */
export interface GateInput {
  /** Free wait slot; -1 = none. */
  readonly waitSlots: number;
  /** Charge of its dispatch; undefined for a new request. */
  readonly held: { readonly ticket: number; readonly ticketGeneration: number } | undefined;
  /** Whether the first token of the answer cannot be seen, because it comes in one piece. */
  readonly blind: boolean;
  /** Whether the request must go through the queues even when there is room. */
  readonly queued: boolean;
}

/** Expected length of an answer, by the signs of its request (llm-d-router's outlen-bucket). */
export type OutputClass = 'long' | 'short' | 'unknown';

export interface PickedEndpoint {
  readonly slot: number;
  /** `ip:port`, IPv6 in brackets. */
  readonly address: string;
  readonly endpoint: Endpoint;
}

/** Measurements at the end of an answer. Counts are undefined when they were not reported. */
export interface AnswerMeasures {
  readonly outcome: Exclude<Outcome, 'aborted'>;
  /** Whether the answer was streamed, so that its first byte is the first output. */
  readonly streamed: boolean;
  readonly outputTokens: number | undefined;
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
}

/** Names an entry of the ledger during its charge. */
export interface Ticket {
  readonly ticket: number;
  readonly generation: number;
}

/** The charges of a placed request. Every method may be called in any order; each acts at most once. */
export interface Charge {
  /** Ends the prefill at the first response byte: its tokens leave the load. */
  prefillDone(): void;
  /** Updates the output to `tokens` tokens: active blocks grow at block boundaries. */
  grow(tokens: number): void;
  /**
   * Says what will be seen of the answer, for the judgement of silent endpoints.
   * @param limit most output tokens that the request allows; undefined = unknown
   */
  expects?(sign: AnswerSign, limit: number | undefined): void;
  /** Records that output has come: the endpoint is not silent. */
  heard?(): void;
  /** Records a piece of output that came `ms` milliseconds after the previous one, per token. */
  stepped?(ms: number): void;
  /** Sets the measurements of the answer for the training sample. Without them the sample says aborted. */
  answered?(answer: AnswerMeasures): void;
  /** Releases all charges. Idempotent. */
  release(): void;
  /** Its tickets in the ledger now. */
  readonly tickets?: readonly Ticket[];
  /** Returns the payment of an evicted request. `release` follows. */
  evicted?(): void;
  /**
   * Records the result of the upstream for ejections and deaths of endpoints. The first call of this or of `servedBy`
   * counts.
   */
  outcome(result: RequestResult): void;
  /**
   * Takes the answer of another endpoint than the first pick, as the proxy tells it. Being passed over counts against
   * the first pick and those between it and `served`; the result is that of `served`, to which the charge moves. An
   * address outside the pool is evidence about no endpoint.
   * @param picks endpoints of the placement, in order of preference
   * @param result of `served`
   */
  servedBy(served: string, picks: readonly PickedEndpoint[], result: RequestResult): void;
}

export interface Placement {
  readonly kind: 'placed';
  /** Endpoints for the answer in order of preference, at least one. */
  readonly endpoints: readonly PickedEndpoint[];
  /** Picks of every profile that ran, by the profile's name, in order of preference, at least one. */
  readonly picks: ReadonlyMap<string, readonly PickedEndpoint[]>;
  readonly charge: Charge;
  /** Request headers for the model server; undefined = remove the client's header. Lower case. */
  readonly headers: ReadonlyMap<string, string | undefined>;
  readonly matchedBlocks: number;
  readonly totalBlocks: number;
  readonly matchedTokens: number;
  /** Tokens of the prompt, counted or estimated. */
  readonly promptTokens: number;
  /** Undefined when nothing predicts latency. */
  readonly prediction?: LatencyPrediction | undefined;
  /** Weighted score of every candidate by address; only when scores are emitted. */
  readonly scores: ReadonlyMap<string, number> | undefined;
  /** How its engine is asked to keep the blocks of its session; absent = it is not asked. */
  readonly retention?: RetentionHint | undefined;
}

export type RejectionCode =
  | 'BadRequest'
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'RequestTimeout'
  | 'PreconditionFailed'
  | 'ResourceExhausted'
  | 'Internal'
  | 'ServiceUnavailable'
  | 'PayloadTooLarge';

export interface Rejection {
  readonly kind: 'rejected';
  readonly code: RejectionCode;
  /** Text after `inference error: <code> - `. */
  readonly message: string;
  /** Value of the drop-reason header; undefined = no header. */
  readonly reason: string | undefined;
  /** Seconds for a Retry-After header. */
  readonly retryAfterSeconds?: number | undefined;
  /** The bound that refused the request; absent = it was no bound of load. */
  readonly bound?: RefusingBound | undefined;
  /** Whether no endpoint had room and no wait slot was free. */
  readonly leftWaiting?: boolean | undefined;
  /** Whether there was no candidate, so that no profile ran. */
  readonly unscheduled?: boolean | undefined;
}

/** Fills the columns of hook plugins for the profile that runs next. */
export type HookColumnFiller = (input: ScheduleInput, profile: string) => void;

/** The decision of one request, on the shard's thread, synchronous. */
export interface Scheduler {
  schedule(input: ScheduleInput): Placement | Rejection;
}

/** Result of a request that waits in its wait slot, because no endpoint that it may use has room. */
export interface Waiting {
  readonly kind: 'waiting';
}

/** The scheduler of a shard: requests with a `gate` may have to wait. */
export interface GatedScheduler {
  schedule(input: ScheduleInput): Placement | Rejection | Waiting;
}
