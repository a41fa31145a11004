import { plainBound, type RefusingBound } from '../contract/refusing-bound.js';
import { Bell } from '../core/bell.js';
import type { CoreInstance } from '../core/memory.js';
import { type QueuePlace, type Return, type WaitDescription, WaitSlots } from '../core/wait-slots.js';
import type { QueueOutcome } from './queue-contract.js';
import { QUEUE_OUTCOMES } from './queue-outcomes.js';

/** A dispatch: an endpoint is charged for the request. The request may still choose a better one. */
export interface Dispatch {
  /** The queues' handle of the request. */
  readonly handle: number;
  readonly ticket: number;
  readonly ticketGeneration: number;
}

/** End of a wait, other than by cancellation. */
export type WaitResult =
  | { readonly kind: 'dispatched'; readonly dispatch: Dispatch; readonly place: QueuePlace }
  | {
      readonly kind: 'turned away';
      readonly outcome: QueueOutcome;
      readonly retryAfterSeconds: number;
      /** The bound that ended the wait; undefined = its client did. */
      readonly bound: RefusingBound | undefined;
      readonly place: QueuePlace;
    };

/** A request that waits. */
export interface Waiter {
  /** Ends the wait. Called once, unless the request was cancelled before. */
  proceed(result: WaitResult): void;
}

/** Token usage and end of dispatched requests, by the queues' handles. */
export interface UsageReport {
  /** Ended requests: handle and output tokens in turn. */
  readonly ended: readonly number[];
  /** Requests that go on: handle and output tokens so far in turn. */
  readonly progressed: readonly number[];
  /** Handles of requests that were evicted for others of a higher band. */
  readonly refunded: readonly number[];
}

export interface WaitingLineOptions {
  readonly core: CoreInstance;
  /** Milliseconds of the pool clock. */
  readonly nowMs: () => number;
  /** Sends the end and the progress of dispatched requests. */
  readonly tell: (report: UsageReport) => void;
  /** Releases the charge of a dispatch, if it is still held. */
  readonly release: (dispatch: Dispatch) => void;
  /**
   * Whether a request must go through the queues, because its tenant has a token bucket or its body is too large for a
   * band.
   */
  readonly mustQueue: (fairnessId: string, bodyBytes: number) => boolean;
  /** Repeats a cancel later that met the lock of a dead thread. */
  readonly later: (again: () => boolean) => void;
}

/** Another replica takes the request at once. */
const SHUTTING_DOWN: WaitResult = {
  kind: 'turned away',
  outcome: 'EvictedOther',
  retryAfterSeconds: 1,
  bound: plainBound('shutting-down'),
  place: { ahead: undefined, expectedWaitMs: undefined },
};

/** The requests of one shard that wait for an endpoint with room. */
export class WaitingLine {
  readonly #options: WaitingLineOptions;
  readonly #waitSlots: WaitSlots;
  readonly #bell: Bell;
  readonly #waiters = new Map<number, Waiter>();
  #ended: number[] = [];
  #progressed: number[] = [];
  #refunded: number[] = [];
  #telling = false;

  constructor(options: WaitingLineOptions) {
    this.#options = options;
    this.#waitSlots = new WaitSlots(options.core);
    this.#bell = new Bell(options.core, () => this.#collect());
    this.#bell.start();
  }

  /** Wait slot for the next decision; -1 = none is free. */
  get waitSlots(): number {
    return this.#waitSlots.next;
  }

  /** Registers the waiting request of the last decision. @returns the argument for `leave` */
  join(request: WaitDescription, waiter: Waiter): number {
    const slot = this.#waitSlots.enqueue(request);
    this.#waiters.set(slot, waiter);
    return slot;
  }

  /** Cancels the wait of a request whose client has left. The waiter is not called any more. */
  leave(slot: number): void {
    if (!this.#waiters.delete(slot)) return;
    if (!this.#waitSlots.cancel(slot)) this.#options.later(() => this.#waitSlots.cancel(slot));
  }

  /** Milliseconds of the pool clock. */
  nowMs(): number {
    return this.#options.nowMs();
  }

  mustQueue(fairnessId: string, bodyBytes: number): boolean {
    return this.#options.mustQueue(fairnessId, bodyBytes);
  }

  /** Releases the charge of a dispatch unless a decision has taken it over. */
  release(dispatch: Dispatch): void {
    this.#options.release(dispatch);
  }

  /** Updates the generated tokens of a dispatched request. */
  progress(handle: number, outputTokens: number): void {
    this.#progressed.push(handle, outputTokens);
    this.#tellSoon();
  }

  /** Reports the end of a dispatched request. */
  end(handle: number, outputTokens: number): void {
    this.#ended.push(handle, outputTokens);
    this.#tellSoon();
  }

  /** Reports the eviction of a dispatched request. */
  refund(handle: number): void {
    this.#refunded.push(handle);
    this.#tellSoon();
  }

  /** Ends every wait, because the shard is about to close. */
  turnAllAway(): void {
    for (const [slot, waiter] of [...this.#waiters]) {
      this.leave(slot);
      waiter.proceed(SHUTTING_DOWN);
    }
  }

  close(): void {
    this.#bell.stop();
  }

  /** Sends one message for all events of a turn of the event loop. */
  #tellSoon(): void {
    if (this.#telling) return;
    this.#telling = true;
    setImmediate(() => {
      this.#telling = false;
      const report = { ended: this.#ended, progressed: this.#progressed, refunded: this.#refunded };
      this.#ended = [];
      this.#progressed = [];
      this.#refunded = [];
      this.#options.tell(report);
    });
  }

  #collect(): void {
    this.#waitSlots.takeReturns((slot, result, place) => {
      const waiter = this.#waiters.get(slot);
      this.#waiters.delete(slot);
      if (waiter !== undefined) waiter.proceed(waitResult(result, place));
      else if (result.kind === 'dispatched') this.#unwanted(result);
    });
  }

  /** Releases a dispatch whose client has left in the meantime. */
  #unwanted(dispatch: Dispatch): void {
    this.release(dispatch);
    this.end(dispatch.handle, 0);
  }
}

function waitResult(result: Return, place: QueuePlace): WaitResult {
  if (result.kind === 'dispatched') return { kind: 'dispatched', dispatch: result, place };
  if (result.kind === 'cancelled') {
    return { kind: 'turned away', outcome: 'EvictedContextCancelled', retryAfterSeconds: 0, bound: undefined, place };
  }
  const { retryAfterSeconds, bound } = result;
  return { kind: 'turned away', outcome: QUEUE_OUTCOMES[result.outcome]!, retryAfterSeconds, bound, place };
}
