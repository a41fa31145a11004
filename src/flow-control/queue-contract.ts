import type { FlowControlSettings } from './settings.js';

/** A request that cannot go on at once. The machine copies what it needs: the object may be used again. */
export interface QueuedRequest {
  /** Any whole number; higher goes first, whatever waits below. */
  readonly priority: number;
  /** Fairness id: tenant, session or program. Together with the priority it names the flow. */
  readonly flow: string;
  /** Endpoint slots that may serve it, bit i of word i >> 5 for slot i; undefined = every endpoint of the pool. */
  readonly candidates: Uint32Array | undefined;
  readonly promptTokens: number;
  /** Tokens of the prompt that no candidate is known to hold. */
  readonly uncachedTokens: number;
  /** Bound of the output that the request sets; 0 = none told. */
  readonly maxTokens: number;
  /** Of the body. */
  readonly bytes: number;
  /** End of the wait that the client asks for, in milliseconds of the machine's clock; Infinity = none. */
  readonly deadlineMs: number;
  /** When the first token is due (time of arrival + time-to-first-token objective); Infinity = no objective. */
  readonly firstTokenDueMs: number;
  /** Slot of the endpoint that it waits for alone, for a short while, because it holds its prefix; -1 = none. */
  readonly stickySlot: number;
  /** Slot that it may come to wait for in that way when its turn has come; absent or -1 = none. */
  readonly prefixSlot?: number;
  /** What the owner calls the request, a non-negative 32-bit number; given back with every event. */
  readonly reference: number;
}

/** How the wait of a request ends (names and meaning are llm-d-router's outcomes). */
export type QueueOutcome =
  | 'Dispatched'
  | 'RejectedCapacity'
  | 'RejectedNoEndpoints'
  | 'RejectedOther'
  | 'EvictedTTL'
  | 'EvictedNoEndpoints'
  | 'EvictedContextCancelled'
  | 'EvictedOther';

/** What a request ran into when it was refused at once. Closed, for labels. */
export const REFUSAL_CAUSES = [
  'pool-requests',
  'pool-bytes',
  'pool-tokens',
  'band-requests',
  'band-bytes',
  'band-tokens',
  'too-many-flows',
  'too-many-bands',
  'too-many-waiting',
  'tenant-limit',
  'expected-wait',
] as const;

export type RefusalCause = (typeof REFUSAL_CAUSES)[number];

/** Why the last `enqueue` gave no handle. Belongs to the machine and is overwritten by the next refusal. */
export interface Refusal {
  outcome: 'RejectedCapacity' | 'RejectedNoEndpoints';
  cause: RefusalCause;
  /** Whole seconds, 1 to 60. */
  retryAfterSeconds: number;
}

/** No request: what `enqueue` answers when it refuses. */
export const NO_HANDLE = -1;

/**
 * What became of an attempt to place a request.
 * - `dispatched`: decided and charged; the request leaves the queue and runs.
 * - `closed`: none of its endpoints takes a request of its band now; others with the same candidates need not be asked
 *   before `opened`.
 * - `stopped`: the whole band and all below it may not go on now, whatever their candidates are.
 * - `gone`: its owner gave it up meanwhile; it is taken out as cancelled.
 * - `sticks`: others are open, but not the one that holds its prefix: it waits for that one for a short while, beside the others.
 * - `later`: nothing can be dispatched to anyone now (the answer cannot be delivered); dispatch ends without a change.
 */
export type DispatchResult = 'dispatched' | 'closed' | 'sticks' | 'stopped' | 'gone' | 'later';

/**
 * Tries to place a request: decide and charge in one step.
 * @param onlySlot the one endpoint that may be used, while the request waits for the one that holds its prefix; else -1
 */
export type TryDispatch = (handle: number, reference: number, priority: number, onlySlot: number) => DispatchResult;

/** A request leaves the queue without having been placed. @param retryAfterSeconds whole seconds, 1 to 60 */
export type OnExpired = (
  handle: number,
  reference: number,
  outcome: 'EvictedTTL' | 'EvictedNoEndpoints',
  priority: number,
  retryAfterSeconds: number,
) => void;

/** A request leaves the queue because the queue ends. @param retryAfterSeconds whole seconds, 1 to 60 */
export type OnEvicted = (handle: number, reference: number, priority: number, retryAfterSeconds: number) => void;

/** Where a waiting request stands. */
export interface QueuePosition {
  /** Requests of its band and of higher ones that wait before it at most. */
  readonly ahead: number;
  /** Milliseconds; undefined while the band's rate is unknown. */
  readonly expectedWaitMs: number | undefined;
}

/** A picture of the queues for people. */
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
  /** Classes whose first request found no endpoint. */
  readonly closedClasses: readonly number[];
  /** Those with most waiting first, at most as many as asked for. */
  readonly flows: readonly FlowSnapshot[];
  readonly flowCount: number;
}

export interface FlowSnapshot {
  readonly flow: string;
  readonly waiting: number;
  readonly running: number;
  /** Age of the request that goes next, in milliseconds; undefined when none waits. */
  readonly headAgeMs: number | undefined;
  /** Tokens served, divided by the weight; only differences within a band mean something. */
  readonly tag: number;
  readonly outputEstimate: number;
}

/** Since the start. entered = dispatched + expired + cancelled + evicted + waiting. */
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
 * clock and never goes back. One thread owns it.
 */
export interface Queues {
  /** Requests that wait now. */
  readonly waiting: number;
  /** Whether the last `dispatch` ended because it had dispatched as many as it may, with more to try. */
  readonly unfinished: boolean;
  /** Why the last `enqueue` gave NO_HANDLE. */
  readonly refusal: Readonly<Refusal>;
  readonly totals: QueueTotals;

  /** Whether a tenant has a token bucket: then all of its requests must come through `enqueue`. */
  limitsTenant(flow: string): boolean;
  /** @returns the handle of the request, or NO_HANDLE; then `refusal` says why */
  enqueue(request: QueuedRequest, nowMs: number): number;
  /** The client went away. @returns false when the request does not wait any more */
  cancel(handle: number, nowMs: number): boolean;
  /**
   * Dispatch to as many as can be placed, at most `most`. Call it after every other change; `tryDispatch` must not call back.
   * @returns how many were dispatched
   */
  dispatch(tryDispatch: TryDispatch, nowMs: number, most: number): number;
  /** A dispatched request could not be used after all: back to the head of its flow, with its old deadline. @returns false when the handle is over */
  requeue(handle: number, candidates: Uint32Array | undefined, nowMs: number): boolean;
  /** A running request has generated so many tokens by now. */
  progress(handle: number, outputTokens: number, nowMs: number): void;
  /** A running request is over: its real output settles the account of its flow. A second call does nothing. */
  end(handle: number, outputTokens: number, nowMs: number): void;
  /** A running request was ended for one of a higher band: its flow gets back what it has paid for it. */
  refund(handle: number, nowMs: number): void;

  /** An endpoint may have room: a first token came, a request ended, a limit was lifted, it came up. */
  opened(slot: number): void;
  /** Any endpoint may have room. */
  openedAll(): void;
  /** An endpoint left the pool: nobody waits for it any more. */
  endpointGone(slot: number): void;
  /** Whether the pool has endpoints at all. At a change every wait begins anew with the budget of the new state. */
  poolEmpty(empty: boolean, nowMs: number): void;
  /** Whether something waits that could not go to this endpoint: then room there is worth a dispatch. */
  closedFor(slot: number): boolean;

  /** When `expire` has something to do next; Infinity = never. */
  nextDeadline(): number;
  /** End the waits that are over, and those for the endpoint that holds a prefix. @returns how many left the queue */
  expire(nowMs: number, onExpired: OnExpired): number;
  /** Everything that waits leaves, in the order in which it would have been served; for a shutdown. */
  evictAll(onEvicted: OnEvicted, nowMs: number): number;
  /**
   * New settings; everything that waits keeps its place, its time of arrival and its flow's account.
   * @returns false when there would be more bands than there may be, with those in use: nothing has changed then
   */
  configure(settings: FlowControlSettings, nowMs: number): boolean;

  /** Visit the first request of every class that found no endpoint, highest band first, until `visit` says no. */
  blocked(visit: (handle: number, priority: number) => boolean): void;
  /** Highest priority that waits; undefined = nothing waits. */
  highestWaiting(): number | undefined;
  /** Priorities that have a band, highest first. */
  priorities(): readonly number[];
  position(handle: number, nowMs: number): QueuePosition | undefined;
  /** Where a request of a flow would stand that came now; undefined when its band does not exist. */
  outlook(priority: number, flow: string, nowMs: number): QueuePosition | undefined;
  /** Seconds after which a request that waits and is turned away may come again: 1 to 60, from what its band drains. */
  retryAfterSeconds(handle: number, nowMs: number): number;
  /** Milliseconds until everything that waits in a band has left it at its present rate; undefined = unknown. */
  drainMs(priority: number, nowMs: number): number | undefined;
  /** @param flows most flows to tell of each band */
  snapshot(nowMs: number, flows: number): QueueSnapshot;
}
