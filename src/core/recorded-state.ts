import { CORE } from './core-names.js';

/** Cells of the state of a decision that lie together: first cell, and cells for each slot in use. */
interface StateColumn {
  readonly column: number;
  readonly width: 1 | 2;
}

/** Columns of f64, which take the place of two; their cells lie one after the other from the first of them on. */
const WIDE: ReadonlySet<number> = new Set([
  CORE.COLUMN_SIGNAL_TIME,
  CORE.COLUMN_EJECTED_UNTIL,
  CORE.COLUMN_PREFILL_RATE_TIME,
]);
const COLUMNS: readonly StateColumn[] = Array.from({ length: CORE.STATE_WORDS }, (_, column) => column)
  .filter((column) => !WIDE.has(column - 1))
  .map((column) => ({ column, width: WIDE.has(column) ? 2 : 1 }));
const WORDS = (CORE.STATE_COEFFICIENTS + CORE.COEFFICIENTS_BYTES) >>> 2;

/** Cells of the captured state (assembly/scheduling/recorded-state.ts) of a pool with so many slots. */
export function stateCells(slots: number): number {
  return CORE.STATE_COLUMNS * slots;
}

/**
 * Ranges of cells that a state with `used` slots fills, as pairs of first cell and number.
 * @param slots of the pool: cells of a column
 */
export function stateRanges(slots: number, used: number): Uint32Array {
  const pairs = COLUMNS.flatMap(({ column, width }) => [column * slots, used * width]);
  return Uint32Array.from([...pairs, CORE.STATE_WORDS * slots, WORDS]);
}
