import type { FlowControlSettings } from '../contract/queue-settings.js';
import type { RefusalCause } from '../contract/refusing-bound.js';

/** A request without room. The machine copies its fields, so the object may be used again. */
export interface QueuedRequest {
  /** Any whole number; a higher priority goes before all lower ones. */
  readonly priority: number;
  /** Fairness id: tenant, session or program. Together with the priority it names the flow. */
  readonly flow: string;
  /** Endpoint slots that may serve it, bit i of word i >> 5 for slot i; undefined = every endpoint of the pool. */
  readonly candidates: Uint32Array | undefined;
  readonly promptTokens: number;
  /** Prompt tokens that no candidate is known to hold. */
  readonly uncachedTokens: number;
  /** Bound on the output set by the request; 0 = none. */
  readonly maxTokens: number;
  /** Bytes of the body. */
  readonly bytes: number;
  /** End of the wait set by the client, in milliseconds of the machine's clock; Infinity = none. */
  readonly deadlineMs: number;
  /** Due time of the first token (arrival + time-to-first-token objective); Infinity = no objective. */
  readonly firstTokenDueMs: number;
  /** Slot of the only endpoint for which the request waits for a short time, because it holds the prefix; -1 = none. */
  readonly stickySlot: number;
  /** Slot for which it may begin to wait like that when its turn comes; absent or -1 = none. */
  readonly prefixSlot?: number;
  /** Whether it is a turn of a session for which no endpoint has room: it is held beside the others. */
  readonly held?: boolean;
  /** The owner's name for the request, a non-negative 32-bit number; returned with every event. */
  readonly reference: number;
}

/** End of a wait (names and meaning are llm-d-router's outcomes). */
export type QueueOutcome =
  | 'Dispatched'
  | 'RejectedCapacity'
  | 'RejectedNoEndpoints'
  | 'RejectedOther'
  | 'EvictedTTL'
  | 'EvictedNoEndpoints'
  | 'EvictedContextCancelled'
  | 'EvictedOther';

/** Reason why the last `enqueue` returned no handle. Belongs to the machine and is overwritten by the next refusal. */
export interface Refusal {
  outcome: 'RejectedCapacity' | 'RejectedNoEndpoints';
  cause: RefusalCause;
  /** Use of the bound with the request, in its own unit: requests, bytes, tokens, or milliseconds of wait. */
  used: number;
  limit: number;
  /** Whole seconds, 1 to 60. */
  retryAfterSeconds: number;
}

/** Result of a refused `enqueue`: no request. */
export const NO_HANDLE = -1;

/**
 * Result of an attempt to place a request.
 * - `dispatched`: decided and charged; the request leaves the queue and runs.
 * - `closed`: none of its endpoints takes a request of its band now. Others with the same candidates are not tried
 *   before `opened`.
 * - `stopped`: the whole band and all lower ones are held back now, for any candidates.
 * - `gone`: its owner has cancelled it meanwhile; it is removed as cancelled.
 * - `sticks`: other endpoints are open, but not the one that holds its prefix. The request waits for that one for a
 *   short time, beside the others.
 * - `held`: no endpoint has room for its session. It is tried again by `dispatchHeld`.
 * - `later`: no dispatch is possible now, because the answer cannot be delivered; `dispatch` ends without a change.
 */
export type DispatchResult = 'dispatched' | 'closed' | 'sticks' | 'held' | 'stopped' | 'gone' | 'later';

/**
 * Tries to place a request: decides and charges in one step.
 * @param onlySlot the only endpoint to use, while the request waits for the one that holds its prefix; else -1
 */
export type TryDispatch = (handle: number, reference: number, priority: number, onlySlot: number) => DispatchResult;

/** Called when a request leaves the queue without a placement. @param retryAfterSeconds whole seconds, 1 to 60 */
export type OnExpired = (
  handle: number,
  reference: number,
  outcome: 'EvictedTTL' | 'EvictedNoEndpoints',
  priority: number,
  retryAfterSeconds: number,
) => void;

/** Called when a request leaves the queue because the queue ends. @param retryAfterSeconds whole seconds, 1 to 60 */
export type OnEvicted = (handle: number, reference: number, priority: number, retryAfterSeconds: number) => void;

/** Position of a waiting request. */
export interface QueuePosition {
  /** Bound on the waiting requests before it, of its band and of higher ones. */
  readonly ahead: number;
  /** Milliseconds; undefined while the band's rate is unknown. */
  readonly expectedWaitMs: number | undefined;
}

/** State of the queues for the debug page. */
export interface QueueSnapshot {
  readonly waiting: number;
  readonly running: number;
  readonly bytes: number;
  readonly tokens: number;
  readonly bands: readonly BandSnapshot[];
  readonly classes: readonly {
    readonly id: number;
    readonly slots: readonly number[] | 'all';
    readonly waiting: number;
  }[];
  readonly totals: QueueTotals;
}

export interface BandSnapshot {
  readonly priority: number;
  readonly configured: boolean;
  readonly fairness: string;
  readonly ordering: string;
  readonly waiting: number;
  readonly running: number;
  readonly bytes: number;
  readonly tokens: number;
  /** Share of the limits in use, 0 to 1; 0 without a limit. */
  readonly requestsUsed: number;
  readonly bytesUsed: number;
  readonly tokensUsed: number;
  readonly tokensPerSecond: number | undefined;
  /** Candidate sets whose first request found no endpoint. */
  readonly closedClasses: readonly number[];
  /** Flows with most waiting requests first, at most as many as asked for. */
  readonly flows: readonly FlowSnapshot[];
  readonly flowCount: number;
}

export interface FlowSnapshot {
  readonly flow: string;
  readonly waiting: number;
  readonly running: number;
  /** Age of the next request in milliseconds; undefined when none waits. */
  readonly headAgeMs: number | undefined;
  /** Served tokens divided by the weight; only differences within a band are meaningful. */
  readonly tag: number;
  readonly outputEstimate: number;
}

/** Totals since the start. entered = dispatched + expired + cancelled + evicted + waiting. */
export interface QueueTotals {
  readonly entered: number;
  readonly refused: Readonly<Record<RefusalCause, number>>;
  readonly dispatched: number;
  readonly requeued: number;
  readonly expired: number;
  readonly cancelled: number;
  readonly evicted: number;
}

/**
 * The queues of one pool: a synchronous data structure without a clock. Every time is in milliseconds of the caller's
 * clock, which must not go back. One thread owns it.
 */
export interface Queues {
  /** Number of waiting requests. */
  readonly waiting: number;
  /** Those of them that are held for room of their sessions. */
  readonly held: number;
  /** Whether the last `dispatch` stopped at its bound with more requests to try. */
  readonly unfinished: boolean;
  /** Reason why the last `enqueue` returned NO_HANDLE. */
  readonly refusal: Readonly<Refusal>;
  readonly totals: QueueTotals;
  /** Configured bound on a wait in a band, in milliseconds, while the pool has endpoints. */
  ttlMs(priority: number): number;
  /** Whether a tenant has a token bucket, so that all of its requests must go through `enqueue`. */
  limitsTenant(flow: string): boolean;
  /** @returns the handle of the request, or NO_HANDLE with the reason in `refusal` */
  enqueue(request: QueuedRequest, nowMs: number): number;
  /** Removes a request whose client has left. @returns false when the request does not wait any more */
  cancel(handle: number, nowMs: number): boolean;
  /**
   * Dispatches as many requests as can be placed, at most `most`. Called after every other change; `tryDispatch` must
   * not call back.
   * @returns the number of dispatched requests
   */
  dispatch(tryDispatch: TryDispatch, nowMs: number, dispatchesMax: number): number;
  /**
   * Tries held turns, at most `most`: highest band first, then the flow with the fewest served tokens, then the longest
   * wait for its size. One without room is passed over.
   * @returns the number of dispatched requests
   */
  dispatchHeld(tryDispatch: TryDispatch, nowMs: number, triesMax: number): number;
  /**
   * Returns a dispatched request that could not use its endpoint to the head of its flow, with its old deadline.
   * @returns false when the handle has ended
   */
  requeue(handle: number, candidates: Uint32Array | undefined, nowMs: number, held?: boolean): boolean;
  /** Updates the generated tokens of a running request. */
  progress(handle: number, outputTokens: number, nowMs: number): void;
  /** Ends a running request; its real output settles the account of its flow. A second call does nothing. */
  end(handle: number, outputTokens: number, nowMs: number): void;
  /** Returns the payment of an evicted request to its flow. */
  refund(handle: number, nowMs: number): void;

  /** Marks an endpoint that may have room: after a first token, the end of a request, a lifted limit, or its start. */
  opened(slot: number): void;
  /** Marks every endpoint as one that may have room. */
  openedAll(): void;
  /** Ends all waits for an endpoint that has left the pool. */
  endpointGone(slot: number): void;
  /** Sets whether the pool has endpoints. At a change every wait starts anew with the time to live of the new state. */
  poolEmpty(empty: boolean, nowMs: number): void;
  /** Whether a waiting request could not go to this endpoint, so that room there is worth a dispatch. */
  closedFor(slot: number): boolean;

  /** Time of the next useful `expire`; Infinity = never. */
  nextDeadline(): number;
  /**
   * Ends the waits whose time is over, and those for an endpoint that holds a prefix. @returns the number of requests
   * that left the queue
   */
  expire(nowMs: number, onExpired: OnExpired): number;
  /** Removes all waiting requests in the order of their service, for a shutdown. */
  evictAll(onEvicted: OnEvicted, nowMs: number): number;
  /**
   * Applies new settings. Every waiting request keeps its place, its time of arrival and its flow's account.
   * @returns false when the bands in use and the new ones would be more than the bound; nothing has changed then
   */
  configure(settings: FlowControlSettings, nowMs: number): boolean;

  /**
   * Visits the first request of every candidate set without an endpoint, highest band first, until `visit` returns
   * false.
   */
  blocked(visit: (handle: number, priority: number) => boolean): void;
  /** Highest priority with a waiting request; undefined = none waits. */
  highestWaiting(): number | undefined;
  /** Priorities with a band, highest first. */
  priorities(): readonly number[];
  position(handle: number, nowMs: number): QueuePosition | undefined;
  /** Position that a new request of a flow would get; undefined when its band does not exist. */
  outlook(priority: number, flow: string, nowMs: number): QueuePosition | undefined;
  /** Retry-After in seconds for a waiting request that is refused: 1 to 60, from the drain rate of its band. */
  retryAfterSeconds(handle: number, nowMs: number): number;
  /** Milliseconds in which the waiting requests of a band leave at its present rate; undefined = unknown. */
  drainMs(priority: number, nowMs: number): number | undefined;
  /** @param flows bound on the flows listed per band */
  snapshot(nowMs: number, flows: number): QueueSnapshot;
}
