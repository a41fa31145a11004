import { Bell } from '../core/bell.js';
import type { CoreInstance } from '../core/memory.js';
import { type ParkedRequest, type QueuePlace, type Return, ShardParking } from '../core/parking.js';
import type { QueueOutcome } from './queue-contract.js';
import { QUEUE_OUTCOMES } from './queue-outcomes.js';

/** A grant: an endpoint is charged for the request, which may still choose a better one. */
export interface Grant {
  /** The queues' number for the request. */
  readonly handle: number;
  readonly ticket: number;
  readonly ticketGeneration: number;
}

/** How a wait ended, other than by the request's own giving up. */
export type WaitResult =
  | { readonly kind: 'granted'; readonly grant: Grant; readonly place: QueuePlace }
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

/** What has come of granted requests, by the queues' handles. */
export interface Spent {
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
  /** Granted requests have ended or made progress. */
  readonly tell: (spent: Spent) => void;
  /** Release the charge of a grant, if it is still held. */
  readonly release: (grant: Grant) => void;
  /** Whether a request has to go through the queues, because its tenant's use is limited or its body is too large for a band. */
  readonly mustQueue: (fairnessId: string, bodyBytes: number) => boolean;
  /** A cancel met a lock whose owner has died: try `again` soon. */
  readonly later: (again: () => boolean) => void;
}

/** The requests of one shard that wait for an endpoint with room. */
export class WaitingLine {
  readonly #options: WaitingLineOptions;
  readonly #parking: ShardParking;
  readonly #bell: Bell;
  readonly #waiters = new Map<number, Waiter>();
  #ended: number[] = [];
  #progressed: number[] = [];
  #refunded: number[] = [];
  #telling = false;

  constructor(options: WaitingLineOptions) {
    this.#options = options;
    this.#parking = new ShardParking(options.core);
    this.#bell = new Bell(options.core, () => this.#collect());
    this.#bell.start();
  }

  /** Parking slot that the next decision may take, -1 = none is free. */
  get parking(): number {
    return this.#parking.next;
  }

  /** The decision just made has parked its request. @returns what `leave` is called with */
  join(request: ParkedRequest, waiter: Waiter): number {
    const slot = this.#parking.announce(request);
    this.#waiters.set(slot, waiter);
    return slot;
  }

  /** The client went away. The waiter hears nothing more. */
  leave(slot: number): void {
    if (!this.#waiters.delete(slot)) return;
    if (!this.#parking.cancel(slot)) this.#options.later(() => this.#parking.cancel(slot));
  }

  /** Milliseconds of the pool clock. */
  nowMs(): number {
    return this.#options.nowMs();
  }

  mustQueue(fairnessId: string, bodyBytes: number): boolean {
    return this.#options.mustQueue(fairnessId, bodyBytes);
  }

  /** Release the charge of a grant unless a decision has taken it over. */
  giveBack(grant: Grant): void {
    this.#options.release(grant);
  }

  /** A granted request has generated so many tokens by now. */
  progress(handle: number, outputTokens: number): void {
    this.#progressed.push(handle, outputTokens);
    this.#tellSoon();
  }

  /** A granted request is over. */
  end(handle: number, outputTokens: number): void {
    this.#ended.push(handle, outputTokens);
    this.#tellSoon();
  }

  /** A granted request was ended for one of a higher band. */
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
      const spent = { ended: this.#ended, progressed: this.#progressed, refunded: this.#refunded };
      this.#ended = [];
      this.#progressed = [];
      this.#refunded = [];
      this.#options.tell(spent);
    });
  }

  #collect(): void {
    this.#parking.collect((slot, result, place) => {
      const waiter = this.#waiters.get(slot);
      this.#waiters.delete(slot);
      if (waiter !== undefined) waiter.proceed(waitResult(result, place));
      else if (result.kind === 'granted') this.#unwanted(result);
    });
  }

  /** The client left between the grant and now. */
  #unwanted(grant: Grant): void {
    this.giveBack(grant);
    this.end(grant.handle, 0);
  }
}

function waitResult(result: Return, place: QueuePlace): WaitResult {
  if (result.kind === 'granted') return { kind: 'granted', grant: result, place };
  if (result.kind === 'cancelled') {
    return { kind: 'turned away', outcome: 'EvictedContextCancelled', retryAfterSeconds: 0, place };
  }
  const { retryAfterSeconds } = result;
  return { kind: 'turned away', outcome: QUEUE_OUTCOMES[result.outcome]!, retryAfterSeconds, place };
}
