import type { PlaceCounts } from '../contract/block-place.js';
import { boundOf, type RefusingBound } from '../contract/refusing-bound.js';
import { type CacheLoss, type CacheLossCause, cacheLossOf, type FormerLoss, formerLossOf } from './cache-loss.js';
import { CORE } from './core-names.js';
import {
  areColumnsKept,
  type DecisionColumns,
  placesAt,
  type Removal,
  readColumns,
  removalOf,
} from './decision-columns.js';
import { type DecisionStatus, decisionStatuses } from './decision-data.js';
import { type FoundSession, foundSessionAt, sessionLossOf } from './found-session.js';
import type { CoreInstance } from './memory.js';
import { OUTCOMES, type Outcome, UNKNOWN_COUNT } from './training-sample.js';

/** End of a logged request; undefined while it is open. `abandoned`: a later profile failed. */
export type DecisionEnd = Outcome | 'rejected' | 'abandoned';

/** One decision as recorded by its thread, with the outcome of its request where that is known. */
export interface DecisionRecord {
  /** Milliseconds of the pool clock. */
  readonly timeMs: number;
  readonly thread: number;
  /** Number of the record among those of its thread. */
  readonly number: number;
  /** Value of `x-request-id`, cut after 64 bytes; undefined = it had none. */
  readonly requestId: string | undefined;
  /** `undecided`: the request was refused before any decision. */
  readonly status: DecisionStatus | 'undecided';
  readonly profile: number;
  /** Whether the decision is for the same request as the thread's previous one. */
  readonly further: boolean;
  /** Slot of the first pick; undefined without a pick. */
  readonly slot: number | undefined;
  readonly generation: number;
  /** Endpoints that passed the filters. */
  readonly candidates: number;
  /** Endpoints that only the capacity gate closed. */
  readonly closed: number;
  readonly matchedBlocks: number;
  /** Blocks that the first pick held at each place; undefined = all of them on the GPU. */
  readonly places: PlaceCounts | undefined;
  readonly totalBlocks: number;
  readonly blockTokens: number;
  /** Endpoint that held more of the prompt than the first pick; undefined = there was none. */
  readonly best:
    | { readonly slot: number; readonly matchedBlocks: number; readonly removed: Removal | undefined }
    | undefined;
  /** Cause for which no endpoint held more of the prompt, although it was sent before; undefined = none is known. */
  readonly formerLoss: FormerLoss | undefined;
  readonly score: number;
  readonly promptTokens: number;
  /** Charged tokens. */
  readonly uncachedTokens: number;
  readonly priority: number;
  /** Tag of the program that decided. */
  readonly tag: number;
  readonly waitedMs: number;
  /** Series of the request's labels in the telemetry of its thread, 0 = unknown. */
  readonly series: number;
  readonly end: DecisionEnd | undefined;
  /** The bound that refused the request; undefined = none is known. */
  readonly bound: RefusingBound | undefined;
  /** HTTP status of the refusal; 0 = none. */
  readonly httpStatus: number;
  readonly firstOutputMs: number | undefined;
  /** Milliseconds from the decision to the end; 0 while the request is open. */
  readonly durationMs: number;
  readonly outputTokens: number | undefined;
  /** Prompt tokens and cached ones as the engine counted them. */
  readonly enginePromptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  /** Unit of the decision's columns + 1; 0 = none were kept. */
  readonly columns: number;
  /** Pick of the shadow program; undefined = the program did not run. */
  readonly shadow: LoggedShadow | undefined;
  /** Session of its prompt; undefined = the prompt was no session's turn, or sessions are not counted. */
  readonly session: FoundSession | undefined;
}

/** A shadow pick, with the predicted costs of it and of the decision's first pick, in targets. */
export interface LoggedShadow {
  /** Undefined = no endpoint; its cost is NaN then. */
  readonly slot: number | undefined;
  readonly cost: number;
  readonly pickCost: number;
}

/** Tokens of prompts that endpoints were given to compute since the start of the pool. */
export interface ComputedTokens {
  readonly computed: number;
  /** Those of them that some endpoint had held, and none any more because its room went to others. */
  readonly evicted: number;
}

/**
 * Reads the decision logs of all threads, without a lock. Records that are overwritten while they are read are left
 * out.
 */
export class DecisionLog {
  readonly #core: CoreInstance;
  readonly #rings: number;
  readonly #stride: number;
  readonly #kept: number;
  /** Threads that count what they decide, and those of them that keep records. */
  readonly #parts: number;
  readonly #threads: number;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#rings = core.call.regionAddress(CORE.REGION_DECISIONS) >>> 0;
    this.#stride = core.call.decisionLogStride() >>> 0;
    this.#kept = core.sizes.decisions ?? 0;
    this.#parts = core.sizes.decisionThreads ?? 0;
    this.#threads = this.#kept === 0 ? 0 : this.#parts;
  }

  /** The last decisions of all threads, newest first, at most `limit`. */
  recent(limit: number): DecisionRecord[] {
    const records: DecisionRecord[] = [];
    for (let thread = 0; thread < this.#threads; thread++) {
      for (const at of this.#places(thread, limit)) {
        const record = this.#read(at);
        if (record !== undefined) records.push(record);
      }
    }
    return records.sort(byAge).slice(0, limit);
  }

  /**
   * The newest decisions whose columns are kept, newest first. Of all others one word is read.
   * @param looks bound on the records that are looked at, over all threads
   */
  recentWithColumns(limit: number, looks: number): DecisionRecord[] {
    const threads = Array.from({ length: this.#threads }, (_, thread) => thread).filter((each) => this.#made(each) > 0);
    const share = Math.ceil(looks / Math.max(1, threads.length));
    const records = threads.flatMap((thread) => this.#withColumns(thread, limit, share));
    return records.sort(byAge).slice(0, limit);
  }

  #withColumns(thread: number, limit: number, looks: number): DecisionRecord[] {
    const { view } = this.#core;
    const made = this.#made(thread);
    const count = this.#count(made, looks);
    const records: DecisionRecord[] = [];
    for (let age = 0; age < count && records.length < limit; age++) {
      const at = this.#place(thread, made - 1 - age);
      if (view.getUint32(at + CORE.DECISION_COLUMNS, true) === 0) continue;
      const record = this.#read(at);
      if (record === undefined) continue;
      // The columns of older records were overwritten before.
      if (!areColumnsKept(this.#core, this.#ring(thread), record)) break;
      records.push(record);
    }
    return records;
  }

  /** All records of the request with this id, oldest first. Reads a word or two of all others. */
  find(requestId: string): DecisionRecord[] {
    const { view } = this.#core;
    const found: DecisionRecord[] = [];
    for (let thread = 0; thread < this.#threads; thread++) {
      const made = this.#made(thread);
      const count = this.#count(made, this.#kept);
      for (let age = 0; age < count; age++) {
        const at = this.#place(thread, made - 1 - age);
        if (view.getUint32(at + CORE.DECISION_ID_LENGTH, true) !== requestId.length) continue;
        if (!this.#hasId(at, requestId)) continue;
        const record = this.#read(at);
        if (record !== undefined) found.push(record);
      }
    }
    return found.sort((a, b) => a.timeMs - b.timeMs || a.number - b.number);
  }

  /** One record by its thread and number; undefined = it was never made, or is overwritten. */
  at(thread: number, number: number): DecisionRecord | undefined {
    if (thread >= this.#threads || this.#kept === 0) return undefined;
    const record = this.#read(this.#place(thread, number));
    return record?.number === number && record.thread === thread ? record : undefined;
  }

  /** Inputs of a decision; undefined when that was not kept, or is overwritten. */
  columns(record: DecisionRecord): DecisionColumns | undefined {
    const ring = this.#ring(record.thread);
    return readColumns(this.#core, ring, ring + CORE.DECISION_HEAD_BYTES + this.#kept * CORE.DECISION_BYTES, record);
  }

  /** Decisions made by all threads; wraps around. */
  get made(): number {
    let made = 0;
    for (let thread = 0; thread < this.#threads; thread++) made += this.#made(thread);
    return made;
  }

  /** Tokens that endpoints were given to compute, over all threads that decide; also where no record is kept. */
  get computedTokens(): ComputedTokens {
    const words = new BigUint64Array(this.#core.memory.buffer);
    const read = (at: number) => Number(Atomics.load(words, at / BigUint64Array.BYTES_PER_ELEMENT));
    let [computed, evicted] = [0, 0];
    for (let thread = 0; thread < this.#parts; thread++) {
      computed += read(this.#ring(thread) + CORE.DECISION_LOG_COMPUTED);
      evicted += read(this.#ring(thread) + CORE.DECISION_LOG_EVICTED);
    }
    return { computed, evicted };
  }

  #made(thread: number): number {
    return Atomics.load(this.#core.i32, this.#ring(thread) >>> 2) >>> 0;
  }

  /** Address of a thread's part of the log. */
  #ring(thread: number): number {
    return this.#rings + thread * this.#stride;
  }

  #place(thread: number, number: number): number {
    return this.#ring(thread) + CORE.DECISION_HEAD_BYTES + (number % this.#kept) * CORE.DECISION_BYTES;
  }

  /**
   * Addresses of a thread's newest records, newest first. The oldest place is left out: it may be written to just now.
   */
  #places(thread: number, limit: number): number[] {
    if (this.#kept === 0) return [];
    const made = this.#made(thread);
    return Array.from({ length: this.#count(made, limit) }, (_, age) => this.#place(thread, made - 1 - age));
  }

  #count(made: number, limit: number): number {
    return Math.min(made, Math.max(0, this.#kept - 1), limit);
  }

  #hasId(at: number, id: string): boolean {
    const { bytes } = this.#core;
    // From its end: ids that count up, or that begin with a date, differ there.
    for (let i = Math.min(id.length, CORE.DECISION_ID_BYTES) - 1; i >= 0; i--) {
      if (bytes[at + CORE.DECISION_ID + i] !== (id.charCodeAt(i) & 0xff)) return false;
    }
    return true;
  }

  #read(at: number): DecisionRecord | undefined {
    const { view } = this.#core;
    const word = (offset: number) => view.getUint32(at + offset, true);
    const float = (offset: number) => view.getFloat32(at + offset, true);
    const number = word(CORE.DECISION_NUMBER);
    const firstOutputMs = float(CORE.DECISION_FIRST_OUTPUT);
    const record: DecisionRecord = {
      timeMs: view.getFloat64(at + CORE.DECISION_TIME, true),
      thread: word(CORE.DECISION_THREAD),
      number,
      requestId: this.#idAt(at),
      status: statusOf(word(CORE.DECISION_STATUS)),
      profile: word(CORE.DECISION_PROFILE),
      further: word(CORE.DECISION_FURTHER) === 1,
      slot: slotOf(word(CORE.DECISION_SLOT)),
      generation: word(CORE.DECISION_GENERATION),
      candidates: word(CORE.DECISION_CANDIDATES),
      closed: word(CORE.DECISION_CLOSED),
      matchedBlocks: word(CORE.DECISION_MATCHED),
      places: placesAt(view, at + CORE.DECISION_PLACES),
      totalBlocks: word(CORE.DECISION_TOTAL),
      blockTokens: word(CORE.DECISION_BLOCK_TOKENS),
      best: this.#bestAt(at),
      formerLoss: formerLossOf(word(CORE.DECISION_LOST)),
      score: float(CORE.DECISION_SCORE),
      promptTokens: word(CORE.DECISION_PROMPT_TOKENS),
      uncachedTokens: word(CORE.DECISION_UNCACHED_TOKENS),
      priority: view.getInt32(at + CORE.DECISION_PRIORITY, true),
      tag: word(CORE.DECISION_TAG),
      waitedMs: float(CORE.DECISION_WAITED),
      series: word(CORE.DECISION_SERIES),
      end: ends[word(CORE.DECISION_END)],
      bound: boundOf(word(CORE.DECISION_BOUND), float(CORE.DECISION_BOUND_USED), float(CORE.DECISION_BOUND_LIMIT)),
      httpStatus: word(CORE.DECISION_HTTP_STATUS),
      firstOutputMs: Number.isNaN(firstOutputMs) ? undefined : firstOutputMs,
      durationMs: float(CORE.DECISION_DURATION),
      outputTokens: countOf(word(CORE.DECISION_OUTPUT_TOKENS)),
      enginePromptTokens: countOf(word(CORE.DECISION_ENGINE_PROMPT)),
      cachedTokens: countOf(word(CORE.DECISION_CACHED)),
      columns: word(CORE.DECISION_COLUMNS),
      shadow: this.#shadowAt(at),
      session: foundSessionAt(this.#core, at),
    };
    const made = this.#made(record.thread < this.#threads ? record.thread : 0);
    // The writer has overwritten this record meanwhile.
    return (made - number) >>> 0 > this.#kept ? undefined : record;
  }

  #idAt(at: number): string | undefined {
    const { bytes, view } = this.#core;
    const length = Math.min(view.getUint32(at + CORE.DECISION_ID_LENGTH, true), CORE.DECISION_ID_BYTES);
    if (length === 0) return undefined;
    return String.fromCharCode(...bytes.subarray(at + CORE.DECISION_ID, at + CORE.DECISION_ID + length));
  }

  #shadowAt(at: number): LoggedShadow | undefined {
    const { view } = this.#core;
    const found = view.getUint32(at + CORE.DECISION_SHADOW, true);
    if (found === 0) return undefined;
    return {
      slot: found === 0xffff_ffff ? undefined : found - 1,
      cost: view.getFloat32(at + CORE.DECISION_SHADOW_COST, true),
      pickCost: view.getFloat32(at + CORE.DECISION_PICK_COST, true),
    };
  }

  #bestAt(at: number): DecisionRecord['best'] {
    const { view } = this.#core;
    const slot = slotOf(view.getUint32(at + CORE.DECISION_BEST_SLOT, true));
    if (slot === undefined) return undefined;
    return {
      slot,
      matchedBlocks: view.getUint32(at + CORE.DECISION_BEST_MATCHED, true),
      removed: removalOf(view.getUint32(at + CORE.DECISION_BEST_REMOVED, true)),
    };
  }
}

function byAge(a: DecisionRecord, b: DecisionRecord): number {
  return b.timeMs - a.timeMs || b.number - a.number;
}

/**
 * Reason why part of the prompt of a logged decision was computed anew; undefined = nothing was, or nothing was
 * decided.
 */
export function cacheLossOfRecord(record: DecisionRecord): CacheLoss | undefined {
  const { status, totalBlocks, matchedBlocks, best, formerLoss, promptTokens, blockTokens } = record;
  if (status !== 'decided' || totalBlocks === 0) return undefined;
  const tokens = (blocks: number) => Math.min(blocks * blockTokens, promptTokens);
  return cacheLossOf({
    promptTokens,
    blockTokens,
    held: tokens(matchedBlocks),
    best: tokens(best?.matchedBlocks ?? 0),
    bestCause: lossCauseOf(best?.removed),
    former: formerLoss,
    told: record.cachedTokens,
    session: sessionLossOf(record.session?.fate),
  });
}

/** Cause of a loss to an endpoint that was not picked, by what removed it. */
export function lossCauseOf(removed: Removal | undefined): CacheLossCause {
  if (removed === undefined) return 'by-load';
  if (removed === 'gate' || removed === 'behind' || removed === 'aside' || removed === 'session') return 'by-overload';
  return removed === 'not-admitted' ? 'endpoint-away' : 'by-filter';
}

const ends: Readonly<Record<number, DecisionEnd>> = {
  ...Object.fromEntries(Object.entries(OUTCOMES).map(([name, number]) => [number + 1, name as Outcome])),
  [CORE.END_REFUSED]: 'rejected',
  [CORE.END_ABANDONED]: 'abandoned',
};

function statusOf(number: number): DecisionRecord['status'] {
  return number === CORE.DECIDE_UNDECIDED ? 'undecided' : decisionStatuses[number]!;
}

function slotOf(number: number): number | undefined {
  return number === 0xffff_ffff ? undefined : number;
}

function countOf(number: number): number | undefined {
  return number === UNKNOWN_COUNT ? undefined : number;
}
