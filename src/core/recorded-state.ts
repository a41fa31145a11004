import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** Cells of the state of a decision that lie together: first cell, and cells for each slot in use. */
interface StateColumn {
  readonly column: number;
  readonly width: 1 | 2;
}

/** Columns of f64, which take two places; their cells lie one after the other from the first place on. */
const WIDE: ReadonlySet<number> = new Set([
  CORE.COLUMN_SIGNAL_TIME,
  CORE.COLUMN_EJECTED_UNTIL,
  CORE.COLUMN_PREFILL_RATE_TIME,
]);
const COLUMNS: readonly StateColumn[] = Array.from({ length: CORE.STATE_WORDS }, (_, column) => column)
  .filter((column) => !WIDE.has(column - 1))
  .map((column) => ({ column, width: WIDE.has(column) ? 2 : 1 }));
const WORDS = (CORE.STATE_COEFFICIENTS + CORE.COEFFICIENTS_BYTES) >>> 2;

/**
 * Columns behind the captured ones: results of hook plugins for the request, then its predicted times to first and per
 * output token.
 */
export const HOST_STATE = CORE.STATE_COLUMNS;
export const PREDICTED_STATE = HOST_STATE + CORE.HOST_COLUMNS;
const PREDICTED_TIMES = 2;

/** Cells of the state of a decision in a pool with so many slots: what the core captured, and the columns behind it. */
export function stateCells(slots: number): number {
  return (PREDICTED_STATE + PREDICTED_TIMES) * slots;
}

/** Address in words of a cell in the memory of the thread that has just decided. */
export function cellWord({ call, sizes }: CoreInstance, cell: number): number {
  const { endpoints } = sizes;
  if (cell < HOST_STATE * endpoints) return ((call.explainAddress() >>> 0) >>> 2) + cell;
  if (cell < PREDICTED_STATE * endpoints) return ((call.hostAddress() >>> 0) >>> 2) + cell - HOST_STATE * endpoints;
  return ((call.predictedAddress() >>> 0) >>> 2) + cell - PREDICTED_STATE * endpoints;
}

/**
 * Ranges of cells that a state with `used` slots fills, as pairs of first cell and number.
 * @param slots of the pool: cells of a column
 */
export function stateRanges(slots: number, used: number): Uint32Array {
  const pairs = COLUMNS.flatMap(({ column, width }) => [column * slots, used * width]);
  const behind = Array.from({ length: CORE.HOST_COLUMNS + PREDICTED_TIMES }, (_, i) => [
    (HOST_STATE + i) * slots,
    used,
  ]);
  return Uint32Array.from([...pairs, CORE.STATE_WORDS * slots, WORDS, ...behind.flat()]);
}
