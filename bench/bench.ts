/** One benchmark: a name like `match/64-blocks`, and how to make ready what it measures. */
export interface Bench {
  /** `area/case`, lower case. */
  readonly name: string;
  /** Fewest measured runs, for what takes seconds. Default 64. */
  readonly runsMin?: number;
  /** Prepares once; called only when the benchmark was chosen. */
  setup(): Promise<Prepared>;
}

export interface Prepared {
  /** What is measured. */
  run(): void | Promise<void>;
  /** How many operations one `run` does; figures are per operation. Default 1. Give short operations a loop. */
  readonly opsPerRun?: number;
  teardown?(): void | Promise<void>;
}

/**
 * Several figures of whole processes that take seconds each; runs only when its name or the part before the slash is
 * given.
 */
export interface Report {
  readonly name: string;
  /** Time of one figure, in milliseconds, unless `--time` says otherwise. */
  readonly timeMs: number;
  /** Yields one JSON line for each figure. */
  run(timeMs: number): AsyncIterable<object>;
}

export interface Figure {
  readonly name: string;
  /** Of the time of one operation. */
  readonly median: number;
  readonly p99: number;
  /** Reports only: memory, and a share of one core. */
  readonly unit: 'ns' | 'MB' | '%';
  /** Measured runs, without the warm-up. */
  readonly runs: number;
}

/** One measured figure: a line of `--json`. */
export interface BenchResult extends Figure {
  readonly node: string;
  readonly commit: string;
}

/** Three digits are more than such measurements hold. */
export function round(value: number): number {
  return Number(value.toPrecision(3));
}

/** A figure with its unit. */
export function figureText(value: number, unit: Figure['unit']): string {
  return unit === 'ns' ? timeText(value) : `${round(value)} ${unit}`;
}

/** Nanoseconds in the unit that reads best. */
export function timeText(ns: number): string {
  if (ns >= 1e6) return `${round(ns / 1e6)} ms`;
  return ns >= 1e3 ? `${round(ns / 1e3)} µs` : `${round(ns)} ns`;
}
