import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';
import type { AnswerSign } from './types.js';

const EXPECTS: Readonly<Record<AnswerSign, number>> = {
  nothing: CORE.EXPECTS_NOTHING,
  stream: CORE.EXPECTS_STREAM,
  end: CORE.EXPECTS_END,
  later: CORE.EXPECTS_LATER,
};

/**
 * Interval in which an endpoint's last output is written once, so that shards do not fight for its cache line, in
 * milliseconds.
 */
const COARSE_MS = 50;

/**
 * Writes, for the control thread, when output of this thread's requests was seen. Plain stores; nothing here takes a
 * lock.
 */
export class Hearings {
  readonly #core: CoreInstance;
  readonly #first: number;
  readonly #columns: number;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#first = core.call.hearingAddress() >>> 0;
    this.#columns = core.call.columnAddress(0) >>> 0;
  }

  /**
   * Says what will be seen of the answer to a charged request.
   * @param limit most output tokens that the request allows; undefined = unknown
   */
  expect(ticket: number, sign: AnswerSign, limit: number | undefined): void {
    const { u32 } = this.#core;
    const at = this.#at(ticket);
    u32[(at + CORE.HEARING_EXPECTS) >>> 2] = EXPECTS[sign];
    u32[(at + CORE.HEARING_LIMIT) >>> 2] = limit ?? 0;
  }

  /** Output of a charged request has come. @param nowMs pool clock */
  heard(ticket: number, slot: number, slotGeneration: number, nowMs: number): void {
    this.#core.f64[this.#at(ticket) >>> 3] = nowMs;
    this.spoke(slot, slotGeneration, nowMs);
  }

  /** Takes output of an endpoint, or the good end of an answer. @param nowMs pool clock */
  spoke(slot: number, slotGeneration: number, nowMs: number): void {
    const { u32, f64, sizes } = this.#core;
    const at = ((this.#columns + CORE.COLUMN_HEARD * sizes.endpoints * 4) >>> 3) + slot;
    if (nowMs - f64[at]! < COARSE_MS) return;
    const generation = (this.#columns >>> 2) + CORE.COLUMN_GENERATION * sizes.endpoints + slot;
    if (u32[generation] === slotGeneration) f64[at] = nowMs;
  }

  #at(ticket: number): number {
    return this.#first + (ticket - 1) * CORE.HEARING_BYTES;
  }
}
