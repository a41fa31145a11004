import type { StepTime } from './step-time.js';

/** Measured milliseconds of one model on one kind of GPU, per step. All axes rise. */
export interface StepTable {
  /** Matrix products by tokens in the step. */
  readonly tokens: readonly number[];
  readonly tokensMs: readonly number[];
  /** Sampling by sequences that a token is sampled for. */
  readonly rows: readonly number[];
  readonly rowsMs: readonly number[];
  /** Attention of a prompt's piece by its tokens and by the context before it: `prefillMs[tokens][context]`. */
  readonly prefillTokens: readonly number[];
  readonly prefillContext: readonly number[];
  readonly prefillMs: readonly (readonly number[])[];
  /** Attention of decoding sequences by their number and mean context, and how much slower it is beside prompts. */
  readonly decodes: readonly number[];
  readonly decodeContext: readonly number[];
  readonly decodeMs: readonly (readonly number[])[];
  readonly mixed: readonly (readonly number[])[];
  /** Milliseconds per step of scheduling and launching. */
  readonly overheadMs: number;
}

/**
 * Step time by interpolation between measurements, straight lines between neighbours and beyond the ends. It shares no
 * formula with a cost model, so that a policy cannot win merely because its model has the simulator's form.
 */
export function tableStepTime(table: StepTable): StepTime {
  return (work) => {
    let ms = line(table.tokens, table.tokensMs, work.tokens) + line(table.rows, table.rowsMs, work.rows);
    if (work.prefillTokens > 0) {
      // A piece of n tokens behind c others looks at n × (c + n/2) pairs: the context that gives as many pairs.
      const context = Math.max(0, work.prefillPairs / work.prefillTokens - work.prefillTokens / 2);
      ms += plane(table.prefillTokens, table.prefillContext, table.prefillMs, work.prefillTokens, context);
    }
    if (work.decodes > 0) {
      const context = work.decodeContext / work.decodes;
      const alone = plane(table.decodes, table.decodeContext, table.decodeMs, work.decodes, context);
      const slower =
        work.prefillTokens > 0 ? plane(table.decodes, table.decodeContext, table.mixed, work.decodes, context) : 1;
      ms += alone * slower;
    }
    return ms + table.overheadMs;
  };
}

/** Index of the interval that `x` lies in, or the one at the nearer end. */
function interval(axis: readonly number[], x: number): number {
  let low = 0;
  let high = axis.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (axis[middle]! <= x) low = middle;
    else high = middle - 1;
  }
  return low;
}

function share(axis: readonly number[], at: number, x: number): number {
  return (x - axis[at]!) / (axis[at + 1]! - axis[at]!);
}

function line(axis: readonly number[], values: readonly number[], x: number): number {
  const at = interval(axis, x);
  return values[at]! + share(axis, at, x) * (values[at + 1]! - values[at]!);
}

function plane(
  rows: readonly number[],
  columns: readonly number[],
  values: readonly (readonly number[])[],
  x: number,
  y: number,
): number {
  const at = interval(rows, x);
  const below = line(columns, values[at]!, y);
  const above = line(columns, values[at + 1]!, y);
  return below + share(rows, at, x) * (above - below);
}
