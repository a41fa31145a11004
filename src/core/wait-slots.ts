import { boundOf, type RefusingBound } from '../contract/refusing-bound.js';
import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** A shard's description of a request that has to wait. The core has recorded its size and its candidates already. */
export interface WaitDescription {
  /** Name of its flow within the priority. */
  readonly flow: string;
  /** Start of the wait, in milliseconds of the pool clock. */
  readonly sinceMs: number;
  /** Bound on the wait in milliseconds; undefined = the configured one. */
  readonly ttlMs: number | undefined;
  /** Due time of the first token on the pool clock; undefined = no objective. */
  readonly firstTokenDueMs: number | undefined;
  /** Bound on output tokens set by the client; undefined = none. */
  readonly maxOutputTokens: number | undefined;
  readonly bodyBytes: number;
  /**
   * Queues' handle of a request that was dispatched before and could not use the endpoint; undefined = a new request.
   */
  readonly handle: number | undefined;
  /** Whether the client asks for the position. */
  readonly wantsPosition: boolean;
}

/** Outcome of a waiting request. */
export type Return =
  | {
      readonly kind: 'dispatched';
      /** The queues' handle of the request. */
      readonly handle: number;
      readonly endpoint: number;
      readonly ticket: number;
      readonly ticketGeneration: number;
    }
  | {
      readonly kind: 'rejected';
      readonly outcome: number;
      readonly retryAfterSeconds: number;
      /** Undefined = none is known. */
      readonly bound: RefusingBound | undefined;
    }
  | { readonly kind: 'cancelled' };

/** Position of a request when it was enqueued or refused. */
export interface QueuePlace {
  /** Requests before it; undefined = not determined. */
  readonly ahead: number | undefined;
  /** Milliseconds; undefined = unknown at that time. */
  readonly expectedWaitMs: number | undefined;
}

/** Value of core words without content. */
const NOTHING = Number.NaN;
const NO_POSITION = 0xffff_ffff;

/** One shard's access to its wait slots: requests that wait for an endpoint with room. */
export class WaitSlots {
  readonly #core: CoreInstance;
  readonly #free: number[];

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#free = Array.from({ length: core.sizes.scans }, (_, slot) => core.sizes.scans - 1 - slot);
  }

  /** Free slot for the request of the next decision; -1 = none. It stays free until `enqueue`. */
  get next(): number {
    return this.#free.at(-1) ?? -1;
  }

  /** Describes the request that the last decision put into `next`, and informs the control thread. @returns the slot */
  enqueue(request: WaitDescription): number {
    const slot = this.#free.pop()!;
    const { call } = this.#core;
    // The decision has put the request there; the control thread may not take it before `waitSlotEnqueue`.
    this.#core.asserts?.waitSlot(this.#core.thread, slot, [CORE.WAIT_SLOT_WAITING]);
    describe(this.#core, call.waitSlotAddress(this.#core.thread, slot) >>> 0, request);
    call.waitSlotEnqueue(slot);
    return slot;
  }

  /**
   * Cancels the wait of a request whose client has left. The slot returns later, as dispatched when that happened
   * meanwhile.
   * @returns false when a lock was not free in time: call again
   */
  cancel(slot: number): boolean {
    return this.#core.call.waitSlotCancel(slot) !== 2;
  }

  /** Takes all returned slots. */
  takeReturns(returned: (slot: number, result: Return, place: QueuePlace) => void): void {
    const { call } = this.#core;
    for (let slot = call.waitSlotReturned(); slot >= 0; slot = call.waitSlotReturned()) {
      const address = call.waitSlotAddress(this.#core.thread, slot) >>> 0;
      const result = readReturn(this.#core, address);
      const place = readPlace(this.#core, address);
      this.#core.asserts?.waitSlot(this.#core.thread, slot, RETURNED);
      call.waitSlotFree(slot);
      this.#free.push(slot);
      returned(slot, result, place);
    }
  }
}

function describe({ view, bytes }: CoreInstance, at: number, request: WaitDescription): void {
  const number = (offset: number, value: number) => view.setUint32(at + offset, value, true);
  const time = (offset: number, value: number) => view.setFloat64(at + offset, value, true);
  time(CORE.WAIT_SLOT_SINCE, request.sinceMs);
  time(CORE.WAIT_SLOT_TTL, request.ttlMs ?? NOTHING);
  time(CORE.WAIT_SLOT_DEADLINE, request.firstTokenDueMs ?? NOTHING);
  number(CORE.WAIT_SLOT_OUTPUT_MAX, Math.min(request.maxOutputTokens ?? 0, 0xffff_ffff));
  number(CORE.WAIT_SLOT_BODY, Math.min(request.bodyBytes, 0xffff_ffff));
  let flags = view.getUint32(at + CORE.WAIT_SLOT_FLAGS, true);
  if (request.handle !== undefined) flags |= CORE.WAIT_FLAG_BEFORE;
  if (request.wantsPosition) flags |= CORE.WAIT_FLAG_ASKS;
  number(CORE.WAIT_SLOT_FLAGS, flags);
  number(CORE.WAIT_SLOT_HANDLE, request.handle ?? 0);
  number(CORE.WAIT_SLOT_POSITION, NO_POSITION);
  view.setFloat32(at + CORE.WAIT_SLOT_EXPECTED, NOTHING, true);
  const { written } = encoder.encodeInto(request.flow, scratch);
  const kept = Math.min(written, CORE.WAIT_SLOT_FLOW_BYTES);
  bytes.set(scratch.subarray(0, kept), at + CORE.WAIT_SLOT_FLOW);
  number(CORE.WAIT_SLOT_FLOW_LENGTH, kept);
}

function readReturn({ view }: CoreInstance, at: number): Return {
  const number = (offset: number) => view.getUint32(at + offset, true);
  const state = number(CORE.WAIT_SLOT_STATE);
  if (state === CORE.WAIT_SLOT_DISPATCHED) {
    return {
      kind: 'dispatched',
      handle: number(CORE.WAIT_SLOT_HANDLE),
      endpoint: number(CORE.WAIT_SLOT_ENDPOINT),
      ticket: number(CORE.WAIT_SLOT_TICKET),
      ticketGeneration: number(CORE.WAIT_SLOT_TICKET_GENERATION),
    };
  }
  if (state === CORE.WAIT_SLOT_CANCELLED) return { kind: 'cancelled' };
  const retryAfterSeconds = view.getFloat32(at + CORE.WAIT_SLOT_RETRY, true);
  const bound = boundOf(
    number(CORE.WAIT_SLOT_BOUND),
    view.getFloat32(at + CORE.WAIT_SLOT_BOUND_USED, true),
    view.getFloat32(at + CORE.WAIT_SLOT_BOUND_LIMIT, true),
  );
  return { kind: 'rejected', outcome: number(CORE.WAIT_SLOT_OUTCOME), retryAfterSeconds, bound };
}

function readPlace({ view }: CoreInstance, at: number): QueuePlace {
  const expected = view.getFloat32(at + CORE.WAIT_SLOT_EXPECTED, true);
  const ahead = view.getUint32(at + CORE.WAIT_SLOT_POSITION, true);
  return {
    ahead: ahead === NO_POSITION ? undefined : ahead,
    expectedWaitMs: Number.isNaN(expected) ? undefined : expected,
  };
}

/** States in which a wait slot comes back. */
const RETURNED = [CORE.WAIT_SLOT_DISPATCHED, CORE.WAIT_SLOT_REJECTED, CORE.WAIT_SLOT_CANCELLED];
const encoder = new TextEncoder();
/** A name has at most 256 bytes; three bytes of UTF-8 for each are enough to find the cut. */
const scratch = new Uint8Array(1024);
