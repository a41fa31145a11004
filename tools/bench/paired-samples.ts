/** Timed work, which `run` repeats. */
export interface Subject {
  /** Makes ready for `run`; not timed. */
  prepare(): void;
  run(times: number): void;
}

/** Median of a figure over all rounds, with the interval that holds the true median in 95 of 100 cases. */
export interface Figure {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Time of one operation in nanoseconds, by subject and round: round k of all subjects was taken within milliseconds.
 */
export interface Samples {
  readonly rounds: number;
  readonly ns: readonly Float64Array[];
}

export interface SampleOptions {
  /** Time of all rounds together, in milliseconds. A quarter of it is spent before them, so that code is optimised. */
  readonly timeMs: number;
  /** Milliseconds of a monotonic clock with a resolution of a microsecond or better. */
  readonly now: () => number;
}

/** Duration of a batch in milliseconds, long enough to make the reading of the clock negligible. */
const BATCH_MS = 0.25;
/** Calls before each batch that bring a subject's data into the caches. */
const TOUCHES = 4;
export const ROUNDS_MIN = 24;
const ROUNDS_MAX = 4096;
/** Normal quantile of a 95 % interval. */
const QUANTILE_95 = 1.96;

/**
 * Times all subjects in turn, round after round, each round in another order. What slows the machine for a moment slows
 * all of them, so differences and ratios within a round hold more than the times themselves.
 */
export function samplePaired(subjects: readonly Subject[], options: SampleOptions): Samples {
  const counts = subjects.map((subject) => calibrated(subject, options.now));
  const perRoundMs = subjects.length * BATCH_MS;
  const wanted = Math.round(options.timeMs / perRoundMs);
  const rounds = Math.min(ROUNDS_MAX, Math.max(ROUNDS_MIN, wanted));
  const ns = subjects.map(() => new Float64Array(rounds));
  for (let round = -(rounds >> 2); round < rounds; round++) {
    for (let turn = 0; turn < subjects.length; turn++) {
      const at = (turn + Math.abs(round)) % subjects.length;
      const took = timeOf(subjects[at]!, counts[at]!, options.now);
      if (round >= 0) ns[at]![round] = took;
    }
  }
  return { rounds, ns };
}

/** Nanoseconds of one of `count` runs. */
function timeOf(subject: Subject, count: number, now: () => number): number {
  subject.prepare();
  subject.run(TOUCHES);
  const begin = now();
  subject.run(count);
  return ((now() - begin) * 1e6) / count;
}

/** Number of runs in one batch. */
function calibrated(subject: Subject, now: () => number): number {
  let count = 16;
  while (count < 1 << 20) {
    const tookMs = (timeOf(subject, count, now) * count) / 1e6;
    if (tookMs >= BATCH_MS / 2) return Math.max(1, Math.round((count * BATCH_MS) / tookMs));
    count *= 2;
  }
  return count;
}

/**
 * Median with its 95 % interval by order statistics: the ranks n/2 ± 0.98 √n (binomial, normal approximation). No shape
 * of the distribution is assumed.
 */
export function figure(values: Float64Array): Figure {
  const sorted = Float64Array.from(values).sort();
  const n = sorted.length;
  const reach = (QUANTILE_95 * Math.sqrt(n)) / 2;
  const at = (rank: number) => sorted[Math.min(n - 1, Math.max(0, rank))]!;
  const median = n % 2 === 1 ? at(n >> 1) : (at(n / 2 - 1) + at(n / 2)) / 2;
  return { median, low: at(Math.floor(n / 2 - reach)), high: at(Math.ceil(n / 2 + reach) - 1) };
}

/** Figure of `combine(a, b)` within each round. */
export function pairedFigure(
  a: Float64Array,
  b: Float64Array,
  combine: (of: number, against: number) => number,
): Figure {
  return figure(a.map((value, round) => combine(value, b[round]!)));
}
