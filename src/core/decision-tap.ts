import { closeFrame, DECISION, END, FRAME, FRAME_HEAD_BYTES, FRAME_TAIL_BYTES } from '../contract/recorded-frames.js';
import { CORE } from './core-names.js';
import type { Decision, DecisionRequest } from './decision-data.js';
import type { CoreInstance } from './memory.js';
import { cellWord, stateCells, stateRanges } from './recorded-state.js';
import { type Measures, OUTCOMES, UNKNOWN_COUNT } from './training-sample.js';

/** Bytes after which frames are handed on. */
const CHUNK_BYTES = 131_072;

/** Receiver of the frames of a thread. */
export interface TapOptions {
  /** Bound on the bytes of all frames. */
  readonly bytesMax: number;
  /** Takes frames; the array is the receiver's. */
  readonly take: (frames: Uint8Array<ArrayBuffer>) => void;
}

/** A recording that is under way on a thread. */
interface Session extends TapOptions {
  left: number;
  decisions: number;
  /** Frames that the bound left out. */
  dropped: number;
  /** State of the last recorded decision, by cell. */
  readonly state: Uint32Array;
}

/** Counts of a thread's recording. */
export interface TapCounts {
  readonly decisions: number;
  readonly dropped: number;
}

/**
 * Records the decisions of a thread and the ends of their requests as frames: block hashes, sizes, the picks, and the
 * state that they were made from as changes since the thread's decision before. Nothing of a prompt. Without a
 * recording it costs one comparison.
 */
export class DecisionTap {
  readonly #core: CoreInstance;
  readonly #request: number;
  readonly #keys: number;
  readonly #random = new Uint32Array(4);
  #session: Session | undefined;
  #buffer = Buffer.alloc(0);
  #length = 0;
  #ranges: Uint32Array = new Uint32Array(0);
  #rangesUsed = -1;

  /** @param keys request headers whose hashes programs read */
  constructor(core: CoreInstance, keys: number) {
    this.#core = core;
    this.#keys = Math.min(keys, CORE.KEYS_MAX);
    this.#request = core.call.requestAddress() >>> 0;
  }

  /** Begins a recording; one that is under way is forgotten. */
  start(options: TapOptions): void {
    const state = new Uint32Array(stateCells(this.#core.sizes.endpoints));
    this.#session = { ...options, left: options.bytesMax, decisions: 0, dropped: 0, state };
    this.#buffer = Buffer.alloc(2 * CHUNK_BYTES);
    this.#length = 0;
    this.#capture(1);
  }

  /** Ends the recording, after the frames that are left have been handed on. */
  stop(): TapCounts {
    const { decisions, dropped } = this.#session ?? { decisions: 0, dropped: 0 };
    this.#handOn();
    this.#session = undefined;
    this.#buffer = Buffer.alloc(0);
    this.#capture(0);
    return { decisions, dropped };
  }

  #capture(on: 0 | 1): void {
    this.#core.u32[(this.#request + CORE.TAP_RECORDS) >>> 2] = on;
  }

  /** Prepares for a decision; called before each one. */
  before(): void {
    if (this.#session === undefined) return;
    const random = (this.#request + CORE.REQUEST_RANDOM) >>> 2;
    this.#random.set(this.#core.u32.subarray(random, random + (CORE.REQUEST_RANDOM_BYTES >>> 2)));
  }

  /** Records the decision just made. Decisions without a pick are left out. */
  after(request: DecisionRequest, decision: Decision): void {
    const session = this.#session;
    if (session === undefined || decision.status !== 'decided') return;
    const hashes = request.blocks + (request.tail ? 1 : 0);
    const used = this.#slotsUsed();
    const fixed = DECISION.lists + 4 * decision.slots.length + 8 * (this.#keys + hashes);
    const at = this.#reserve(fixed + 8 * this.#cellsOf(used));
    const from = at + FRAME_HEAD_BYTES;
    this.#writeRequest(from, request, decision, used);
    let end = this.#writeLists(from + DECISION.lists, decision.slots, hashes);
    const changes = this.#writeChanges(end, session.state);
    this.#buffer.writeUInt32LE(changes, from + DECISION.changes);
    end += 8 * changes;
    if (this.#finish(at, FRAME.decision, end - from)) session.decisions++;
  }

  /** Records the end of the request of decision `number`. */
  ended(number: number, measures: Measures): void {
    if (this.#session === undefined) return;
    const at = this.#reserve(END.bytes);
    const from = at + FRAME_HEAD_BYTES;
    const buffer = this.#buffer;
    buffer.writeUInt32LE(this.#core.thread, from + END.thread);
    buffer.writeUInt32LE(number, from + END.number);
    buffer.writeUInt32LE(OUTCOMES[measures.outcome], from + END.outcome);
    buffer.writeUInt32LE(measures.outputTokens ?? UNKNOWN_COUNT, from + END.outputTokens);
    buffer.writeUInt32LE(measures.promptTokens ?? UNKNOWN_COUNT, from + END.promptTokens);
    buffer.writeUInt32LE(measures.cachedTokens ?? UNKNOWN_COUNT, from + END.cachedTokens);
    buffer.writeFloatLE(measures.firstOutputMs ?? Number.NaN, from + END.firstOutputMs);
    buffer.writeFloatLE(measures.perTokenMs ?? Number.NaN, from + END.perTokenMs);
    buffer.writeFloatLE(measures.durationMs, from + END.durationMs);
    this.#finish(at, FRAME.end, END.bytes);
  }

  #slotsUsed(): number {
    const words = CORE.HEADER + CORE.HEADER_POOL + CORE.POOL_WORDS;
    return (this.#core.u32[words >>> 2]! + 3) & ~3;
  }

  #writeRequest(from: number, request: DecisionRequest, decision: Decision, used: number): void {
    const { u32, thread } = this.#core;
    const buffer = this.#buffer;
    const word = (offset: number, value: number) => buffer.writeUInt32LE(value >>> 0, from + offset);
    buffer.writeDoubleLE(request.nowMs, from + DECISION.timeMs);
    word(DECISION.thread, thread);
    word(DECISION.number, decision.record ?? UNKNOWN_COUNT);
    word(DECISION.profile, request.profile);
    word(DECISION.flags, u32[(this.#request + CORE.REQUEST_FLAGS) >>> 2]!);
    word(DECISION.blocks, request.blocks);
    word(DECISION.promptTokens, request.promptTokens);
    word(DECISION.outputTokens, request.outputTokens);
    buffer.writeInt32LE(request.priority, from + DECISION.priority);
    word(DECISION.blockTokens, request.blockTokens);
    word(DECISION.earlier, request.earlier === undefined ? 0 : request.earlier + 1);
    buffer.writeFloatLE(request.wantedTtftMs ?? 0, from + DECISION.wantedTtftMs);
    buffer.writeFloatLE(request.wantedTpotMs ?? 0, from + DECISION.wantedTpotMs);
    this.#copyWords(from + DECISION.adapter, (this.#request + CORE.REQUEST_ADAPTER) >>> 2, 2);
    for (const [i, value] of this.#random.entries()) word(DECISION.random + 4 * i, value);
    buffer.writeFloatLE(decision.score, from + DECISION.score);
    word(DECISION.used, used);
  }

  #writeLists(from: number, slots: readonly number[], hashes: number): number {
    const lists = from - DECISION.lists;
    this.#buffer.writeUInt32LE(slots.length, lists + DECISION.picks);
    this.#buffer.writeUInt32LE(this.#keys, lists + DECISION.keys);
    this.#buffer.writeUInt32LE(hashes, lists + DECISION.hashes);
    let at = from;
    for (const slot of slots) at = this.#buffer.writeUInt32LE(slot, at);
    at = this.#copyWords(at, (this.#request + CORE.REQUEST_KEYS) >>> 2, 2 * this.#keys);
    return this.#copyWords(at, (this.#core.call.hashesAddress() >>> 0) >>> 2, 2 * hashes);
  }

  #copyWords(at: number, word: number, count: number): number {
    const { bytes } = this.#core;
    this.#buffer.set(bytes.subarray(4 * word, 4 * (word + count)), at);
    return at + 4 * count;
  }

  #cellsOf(used: number): number {
    if (used !== this.#rangesUsed) {
      this.#ranges = stateRanges(this.#core.sizes.endpoints, used);
      this.#rangesUsed = used;
    }
    let cells = 0;
    for (let i = 1; i < this.#ranges.length; i += 2) cells += this.#ranges[i]!;
    return cells;
  }

  /** Writes the cells that have changed since the last decision of the thread. @returns their number */
  #writeChanges(from: number, state: Uint32Array): number {
    const { u32 } = this.#core;
    const buffer = this.#buffer;
    let at = from;
    for (let i = 0; i < this.#ranges.length; i += 2) {
      const first = this.#ranges[i]!;
      const base = cellWord(this.#core, first) - first;
      const end = first + this.#ranges[i + 1]!;
      for (let cell = first; cell < end; cell++) {
        const value = u32[base + cell]!;
        if (value === state[cell]) continue;
        state[cell] = value;
        at = buffer.writeUInt32LE(cell, at);
        at = buffer.writeUInt32LE(value, at);
      }
    }
    return (at - from) / 8;
  }

  /** Makes room for a frame. @returns where it begins */
  #reserve(payloadBytes: number): number {
    const bytes = this.#length + FRAME_HEAD_BYTES + payloadBytes + FRAME_TAIL_BYTES;
    if (bytes > this.#buffer.length) {
      const larger = Buffer.alloc(2 * bytes);
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    return this.#length;
  }

  /** Closes a frame. @returns false when the bound leaves out this frame and all later ones */
  #finish(at: number, kind: number, payloadBytes: number): boolean {
    const session = this.#session!;
    const bytes = closeFrame(this.#buffer, at, kind, payloadBytes);
    if (bytes > session.left) {
      session.left = 0;
      session.dropped++;
      return false;
    }
    session.left -= bytes;
    this.#length += bytes;
    if (this.#length >= CHUNK_BYTES) this.#handOn();
    return true;
  }

  #handOn(): void {
    if (this.#length === 0) return;
    this.#session?.take(new Uint8Array(this.#buffer.subarray(0, this.#length)));
    this.#length = 0;
  }
}
