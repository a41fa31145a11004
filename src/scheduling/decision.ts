import type { PromptTokens } from '../core/token-chain.js';
import type { Outcome } from '../core/training-sample.js';
import type { Medium } from '../core/types.js';
import type { Endpoint } from '../pool/endpoint.js';
import type { HookRequest } from './hooks/hook-request.js';
import type { EndpointPredictions, LatencyPrediction } from './latency-outlook.js';
import type { RequestHeaders } from './request-headers.js';

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
  /** The request as hook plugins see it; undefined when there are none. */
  readonly hosted?: HookRequest | undefined;
  /** Flow control is on: the request goes only where there is room, and waits otherwise. */
  readonly gate?: GateInput | undefined;
}

/** What a request needs to wait, and what it has after it did. */
export interface GateInput {
  /** Wait slot that it may take, -1 = none is free. */
  readonly waitSlots: number;
  /** The charge of its dispatch; undefined when it comes anew. */
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
  evicted?(): void;
  /**
   * How the upstream answered, for the ejection of failing endpoints. First call wins.
   * `failure`: 5xx, reset, or the proxy's own 503.
   */
  outcome(result: 'success' | 'failure'): void;
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
  | 'RequestTimeout'
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
  /** No endpoint has room, and there was no wait slot to wait in. */
  readonly leftWaiting?: boolean | undefined;
}

/** Fills the columns of hook plugins for the profile that runs next. */
export type HookColumnFiller = (input: ScheduleInput, profile: string) => void;

/** The decision of one request, on the shard's thread, synchronous. */
export interface Scheduler {
  schedule(input: ScheduleInput): Placement | Rejection;
}

/** No endpoint that the request may use has room: it waits in its wait slot. */
export interface Waiting {
  readonly kind: 'waiting';
}

/** The scheduler of a shard: requests that come with a `gate` may have to wait. */
export interface GatedScheduler {
  schedule(input: ScheduleInput): Placement | Rejection | Waiting;
}
