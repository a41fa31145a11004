import { boundNumber, type RefusingBound } from '../contract/refusing-bound.js';
import { type CacheLoss, cacheLossOf, formerLossOf } from './cache-loss.js';
import { CORE } from './core-names.js';
import { removalOf } from './decision-columns.js';
import { lossCauseOf } from './decision-log.js';
import type { DecisionTap } from './decision-tap.js';
import { sessionLossAt } from './found-session.js';
import { HeldColumns, SlowTail } from './held-columns.js';
import type { CoreInstance } from './memory.js';
import { type Measures, OUTCOMES, UNKNOWN_COUNT } from './training-sample.js';

/**
 * Decisions of one second that hold their columns until the end of their request: some milliseconds of the thread's
 * time.
 */
const HELD_PER_SECOND_MAX = 10_000;
/** Window in which the 1st, 2nd, 4th, 8th … decision keeps its columns: 5 of 20 decisions, 17 of 100,000. */
const SAMPLES_MS = 10_000;
const NO_SLOT = 0xffff_ffff;

/** Refusal of a request, in the form of its record. */
export interface LoggedRefusal {
  /** HTTP status of the answer. */
  readonly status: number;
  readonly priority: number;
  /** Milliseconds in the queues. */
  readonly waitedMs: number;
  /** Undefined = no bound of load refused it. */
  readonly bound: RefusingBound | undefined;
}

/**
 * A shard's access to its part of the decision log: names the request of the next decision, and writes the outcome of a
 * request into the records that its decisions made. A record that has been overwritten since is left alone.
 */
export class DecisionTrail {
  readonly #core: CoreInstance;
  readonly #log: number;
  readonly #kept: number;
  readonly #request: number;
  readonly #lost: ((loss: CacheLoss) => void) | undefined;
  readonly #tap: Pick<DecisionTap, 'ended'> | undefined;
  readonly #held: HeldColumns | undefined;
  readonly #firstOutputs = new SlowTail();
  readonly #durations = new SlowTail();
  /** Decisions of the present second whose columns were held. */
  #second = 0;
  #inSecond = 0;
  /** Decisions of the present window, of which the 1st, 2nd, 4th, 8th … keep their columns. */
  #window = -1;
  #inWindow = 0;
  #id: string | undefined;

  /**
   * @param columnsEvery one decision in so many keeps all columns, and so do the 1st, 2nd, 4th, 8th … of each ten
   *   seconds; 0 = only refused and marked ones
   * @param lost takes the part of a prompt that was computed anew, when its answer ends
   * @param tap told of the ends of requests, for a recording
   */
  constructor(
    core: CoreInstance,
    columnsEvery: number,
    lost?: (loss: CacheLoss) => void,
    tap?: Pick<DecisionTap, 'ended'>,
  ) {
    this.#lost = lost;
    this.#tap = tap;
    this.#core = core;
    this.#kept = core.thread < (core.sizes.decisionThreads ?? 0) ? (core.sizes.decisions ?? 0) : 0;
    const bytes = core.call.decisionLogStride() >>> 0;
    this.#log = (core.call.regionAddress(CORE.REGION_DECISIONS) >>> 0) + core.thread * bytes;
    this.#request = core.call.requestAddress() >>> 0;
    core.call.keepColumnsEvery(columnsEvery);
    this.#held = this.#kept === 0 || columnsEvery === 0 ? undefined : new HeldColumns(core, this.#kept);
  }

  /** Records made by this thread, wrapping around at 2^32. */
  get made(): number {
    return this.#kept === 0 ? 0 : this.#core.u32[this.#log >>> 2]!;
  }

  /**
   * Names the request that is decided next.
   * @param id value of `x-request-id`; undefined = it has none
   * @param columns whether its decisions keep all columns
   * @param nowMs pool clock; undefined = columns are not held until the end of the request
   */
  begin(id: string | undefined, columns: boolean, nowMs?: number): void {
    if (this.#kept === 0) return;
    const keep = columns || this.#isSample(nowMs) ? 1 : this.#mayHold(nowMs) ? CORE.KEEP_ASIDE : 0;
    this.#core.u32[(this.#request + CORE.TRAIL_COLUMNS) >>> 2] = keep;
    this.#writeId(id);
  }

  /** Keeps columns where few decisions are made, of which one in many would be none for minutes. */
  #isSample(nowMs: number | undefined): boolean {
    if (this.#held === undefined || nowMs === undefined) return false;
    const window = Math.floor(nowMs / SAMPLES_MS);
    if (window !== this.#window) {
      this.#window = window;
      this.#inWindow = 0;
    }
    const number = ++this.#inWindow;
    return (number & (number - 1)) === 0;
  }

  /** Bounds the time that a busy thread spends on columns that are probably not kept. */
  #mayHold(nowMs: number | undefined): boolean {
    if (this.#held === undefined || nowMs === undefined) return false;
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#inSecond = 0;
    }
    return ++this.#inSecond <= HELD_PER_SECOND_MAX;
  }

  #writeId(id: string | undefined): void {
    if (id === this.#id) return;
    this.#id = id;
    const { bytes, u32 } = this.#core;
    const at = this.#request + CORE.TRAIL_ID;
    const length = Math.min(id?.length ?? 0, CORE.DECISION_ID_BYTES);
    for (let i = 0; i < length; i++) bytes[at + i] = id!.charCodeAt(i);
    u32[(this.#request + CORE.TRAIL_LENGTH) >>> 2] = id?.length ?? 0;
  }

  /** Adds the request's labels and its wait to the records made since there were `before`. */
  decided(before: number, series: number, waitedMs: number): void {
    const { made } = this;
    for (let number = before; number !== made; number = (number + 1) >>> 0) {
      const at = this.#recordOf(number);
      if (at === undefined) continue;
      this.#core.u32[(at + CORE.DECISION_SERIES) >>> 2] = series;
      if ((number + 1) >>> 0 === made) this.#held?.hold(number);
      this.#core.f32[(at + CORE.DECISION_WAITED) >>> 2] = waitedMs;
    }
  }

  /**
   * Writes that the request was answered with an error, into its record `number`.
   * @returns false = the record is gone, and `refuse` has to make one
   */
  refused(number: number, refusal: LoggedRefusal): boolean {
    const at = this.#recordOf(number);
    if (at === undefined) return false;
    this.#release(number, at, true);
    this.#endRefused(at, refusal);
    return true;
  }

  /**
   * Makes a record for a request that was refused without a decision, with the endpoints where their load refused it.
   */
  refuse(id: string | undefined, series: number, refusal: LoggedRefusal, nowMs: number): void {
    if (this.#kept === 0) return;
    this.#writeId(id);
    const { priority, bound } = refusal;
    const number = this.#core.call.logRefusal(nowMs, priority, bound?.by === 'pool-saturation' ? 1 : 0) >>> 0;
    const at = this.#recordOf(number)!;
    this.#core.u32[(at + CORE.DECISION_SERIES) >>> 2] = Math.max(0, series);
    this.#endRefused(at, refusal);
  }

  /** Writes the end of a request that was placed. */
  ended(number: number, measures: Measures): void {
    this.#tap?.ended(number, measures);
    const at = this.#recordOf(number);
    if (at === undefined) return;
    const { u32, f32 } = this.#core;
    f32[(at + CORE.DECISION_FIRST_OUTPUT) >>> 2] = measures.firstOutputMs ?? Number.NaN;
    f32[(at + CORE.DECISION_DURATION) >>> 2] = measures.durationMs;
    u32[(at + CORE.DECISION_OUTPUT_TOKENS) >>> 2] = measures.outputTokens ?? UNKNOWN_COUNT;
    u32[(at + CORE.DECISION_ENGINE_PROMPT) >>> 2] = measures.promptTokens ?? UNKNOWN_COUNT;
    u32[(at + CORE.DECISION_CACHED) >>> 2] = measures.cachedTokens ?? UNKNOWN_COUNT;
    u32[(at + CORE.DECISION_END) >>> 2] = OUTCOMES[measures.outcome] + 1;
    this.#release(number, at, this.#isNotable(at, measures));
    if (this.#lost !== undefined && u32[(at + CORE.DECISION_TOTAL) >>> 2] !== 0)
      this.#tellLoss(at, measures.cachedTokens);
  }

  /** Whether a request was slow, moved away from the endpoint that held most of its prompt, or failed. */
  #isNotable(at: number, { outcome, firstOutputMs, durationMs }: Measures): boolean {
    const slow =
      firstOutputMs === undefined ? this.#durations.isSlow(durationMs) : this.#firstOutputs.isSlow(firstOutputMs);
    return slow || outcome !== 'completed' || this.#core.u32[(at + CORE.DECISION_BEST_SLOT) >>> 2] !== NO_SLOT;
  }

  /** Releases the held columns of a record, into the log when `kept`. */
  #release(number: number, at: number, kept: boolean): void {
    const unit = this.#held?.release(number, kept) ?? 0;
    if (unit !== 0) this.#core.u32[(at + CORE.DECISION_COLUMNS) >>> 2] = unit;
  }

  #tellLoss(at: number, told: number | undefined): void {
    const { u32 } = this.#core;
    const promptTokens = u32[(at + CORE.DECISION_PROMPT_TOKENS) >>> 2]!;
    const blockTokens = u32[(at + CORE.DECISION_BLOCK_TOKENS) >>> 2]!;
    const loss = cacheLossOf({
      promptTokens,
      blockTokens,
      held: Math.min(u32[(at + CORE.DECISION_MATCHED) >>> 2]! * blockTokens, promptTokens),
      best: Math.min(u32[(at + CORE.DECISION_BEST_MATCHED) >>> 2]! * blockTokens, promptTokens),
      bestCause: lossCauseOf(removalOf(u32[(at + CORE.DECISION_BEST_REMOVED) >>> 2]!)),
      former: formerLossOf(u32[(at + CORE.DECISION_LOST) >>> 2]!),
      told,
      session: sessionLossAt(this.#core, at),
    });
    if (loss !== undefined) this.#lost!(loss);
  }

  /** Marks a decision as abandoned, because a later profile failed. */
  abandoned(number: number): void {
    const at = this.#recordOf(number);
    if (at === undefined) return;
    this.#release(number, at, true);
    this.#core.u32[(at + CORE.DECISION_END) >>> 2] = CORE.END_ABANDONED;
  }

  #endRefused(at: number, { status, waitedMs, bound }: LoggedRefusal): void {
    const { u32, f32 } = this.#core;
    u32[(at + CORE.DECISION_BOUND) >>> 2] = boundNumber(bound);
    f32[(at + CORE.DECISION_BOUND_USED) >>> 2] = bound?.used ?? Number.NaN;
    f32[(at + CORE.DECISION_BOUND_LIMIT) >>> 2] = bound?.limit ?? Number.NaN;
    f32[(at + CORE.DECISION_WAITED) >>> 2] = waitedMs;
    u32[(at + CORE.DECISION_HTTP_STATUS) >>> 2] = status;
    u32[(at + CORE.DECISION_END) >>> 2] = CORE.END_REFUSED;
  }

  /** Address of a record; undefined = a later one has replaced it. */
  #recordOf(number: number): number | undefined {
    if (this.#kept === 0) return undefined;
    const at = this.#log + CORE.DECISION_HEAD_BYTES + (number % this.#kept) * CORE.DECISION_BYTES;
    return this.#core.u32[(at + CORE.DECISION_NUMBER) >>> 2] === number ? at : undefined;
  }
}
