import { Bell } from '../core/bell.js';
import type { CoreInstance } from '../core/memory.js';
import { type QueuePlace, type Return, type WaitDescription, WaitSlots } from '../core/wait-slots.js';
import type { QueueOutcome } from './queue-contract.js';
import { QUEUE_OUTCOMES } from './queue-outcomes.js';

/** A dispatch: an endpoint is charged for the request, which may still choose a better one. */
export interface Dispatch {
  /** The queues' number for the request. */
  readonly handle: number;
  readonly ticket: number;
  readonly ticketGeneration: number;
}

/** How a wait ended, other than by the request's own giving up. */
export type WaitResult =
  | { readonly kind: 'dispatched'; readonly dispatch: Dispatch; readonly place: QueuePlace }
  | {
      readonly kind: 'turned away';
      readonly outcome: QueueOutcome;
      readonly retryAfterSeconds: number;
      readonly place: QueuePlace;
    };

/** Somebody who waits. */
export interface Waiter {
  /** The wait is over. Called once, unless the waiter has given up before. */
  proceed(result: WaitResult): void;
}

/** What has come of dispatched requests, by the queues' handles. */
export interface UsageReport {
  /** Those that are over: handle and output tokens in turn. */
  readonly ended: readonly number[];
  /** Those that go on: handle and output tokens so far in turn. */
  readonly progressed: readonly number[];
  /** Those that were ended for others of a higher band: handles. */
  readonly refunded: readonly number[];
}

export interface WaitingLineOptions {
  readonly core: CoreInstance;
  /** Milliseconds of the pool clock. */
  readonly nowMs: () => number;
  /** Dispatched requests have ended or made progress. */
  readonly tell: (report: UsageReport) => void;
  /** Release the charge of a dispatch, if it is still held. */
  readonly release: (dispatch: Dispatch) => void;
  /** Whether a request has to go through the queues, because its tenant's use is limited or its body is too large for a band. */
  readonly mustQueue: (fairnessId: string, bodyBytes: number) => boolean;
  /** A cancel met a lock whose owner has died: try `again` soon. */
  readonly later: (again: () => boolean) => void;
}

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

  /** Wait slot that the next decision may take, -1 = none is free. */
  get waitSlots(): number {
    return this.#waitSlots.next;
  }

  /** The decision just made has waiting its request. @returns what `leave` is called with */
  join(request: WaitDescription, waiter: Waiter): number {
    const slot = this.#waitSlots.enqueue(request);
    this.#waiters.set(slot, waiter);
    return slot;
  }

  /** The client went away. The waiter hears nothing more. */
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

  /** Release the charge of a dispatch unless a decision has taken it over. */
  giveBack(dispatch: Dispatch): void {
    this.#options.release(dispatch);
  }

  /** A dispatched request has generated so many tokens by now. */
  progress(handle: number, outputTokens: number): void {
    this.#progressed.push(handle, outputTokens);
    this.#tellSoon();
  }

  /** A dispatched request is over. */
  end(handle: number, outputTokens: number): void {
    this.#ended.push(handle, outputTokens);
    this.#tellSoon();
  }

  /** A dispatched request was ended for one of a higher band. */
  refund(handle: number): void {
    this.#refunded.push(handle);
    this.#tellSoon();
  }

  close(): void {
    this.#bell.stop();
  }

  /** One message for everything that happened in a turn of the event loop. */
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

  /** The client left between the dispatch and now. */
  #unwanted(dispatch: Dispatch): void {
    this.giveBack(dispatch);
    this.end(dispatch.handle, 0);
  }
}

function waitResult(result: Return, place: QueuePlace): WaitResult {
  if (result.kind === 'dispatched') return { kind: 'dispatched', dispatch: result, place };
  if (result.kind === 'cancelled') {
    return { kind: 'turned away', outcome: 'EvictedContextCancelled', retryAfterSeconds: 0, place };
  }
  const { retryAfterSeconds } = result;
  return { kind: 'turned away', outcome: QUEUE_OUTCOMES[result.outcome]!, retryAfterSeconds, place };
}
