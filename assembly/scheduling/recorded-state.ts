// State that a decision is made from, captured during the decision, for a recording (GET /debug/recording).
//
// Owns: the thread's EXPLAIN columns 0 .. STATE_COLUMNS - 1, written by its own thread under the commit lock, once the
// log has taken its columns from them. The host reads them before the next decision of the thread.
//
//   0 .. RECORDED_COLUMNS - 1                  the endpoint columns, in their order
//   STATE_MATCH, STATE_OVERLAP, STATE_REMOVED  the thread's own columns of these names
//   STATE_ADAPTER                              f32 per slot: score of the request's adapter there
//   STATE_WORDS                                the pool words, then at STATE_COEFFICIENTS the cost model's coefficients
import { slotOffset } from '../columns/column';
import {
  COLUMN_EJECTED_UNTIL,
  COLUMN_PREFILL_RATE_TIME,
  COLUMN_SIGNAL_TIME,
  columnAddress,
  RECORDED_COLUMNS,
} from '../endpoints';
import { COEFFICIENTS, EXPLAIN, MATCH, OVERLAP, REMOVED, REQUEST, SLOTS } from '../memory';
import { POOL_WORDS_BYTES, poolWords } from '../pool-words';
import { DECIDE_EXPLAIN, request } from '../request-area';
import { COEFFICIENTS_BYTES } from './cost-coefficients';
import { TAP_RECORDS } from './decision-record';
import { adapterColumn } from './history-scorers';

export const STATE_MATCH: u32 = RECORDED_COLUMNS;
export const STATE_OVERLAP: u32 = RECORDED_COLUMNS + 1;
export const STATE_REMOVED: u32 = RECORDED_COLUMNS + 2;
export const STATE_ADAPTER: u32 = RECORDED_COLUMNS + 3;
export const STATE_WORDS: u32 = RECORDED_COLUMNS + 4;
/** The shadow program's columns begin here (shadow.ts). */
export const STATE_COLUMNS: u32 = RECORDED_COLUMNS + 5;
/** Offset of the coefficients behind the pool words. */
export const STATE_COEFFICIENTS: usize = 64;

/** Returns whether the host records this decision. */
export function isRecorded(): bool {
  return load<u32>(REQUEST + TAP_RECORDS) != 0 && (request().flags & DECIDE_EXPLAIN) == 0;
}

function stateColumn(number: u32): usize {
  return EXPLAIN + ((<usize>(number * SLOTS)) << 2);
}

/** Copies a 64-bit column to two neighbours, in which its cells lie one after the other. */
function captureWide(number: u32, used: u32): void {
  memory.copy(stateColumn(number), columnAddress(number), slotOffset(used) << 1);
}

/** Captures the state of the decision before its charge. Commit lock held. */
export function captureState(used: u32): void {
  if (POOL_WORDS_BYTES > STATE_COEFFICIENTS) ERROR('the pool words reach into the coefficients');
  const bytes = slotOffset(used);
  for (let number: u32 = 0; number < RECORDED_COLUMNS; number++) {
    memory.copy(stateColumn(number), columnAddress(number), bytes);
  }
  captureWide(COLUMN_SIGNAL_TIME, used);
  captureWide(COLUMN_EJECTED_UNTIL, used);
  captureWide(COLUMN_PREFILL_RATE_TIME, used);
  memory.copy(stateColumn(STATE_MATCH), MATCH, bytes);
  memory.copy(stateColumn(STATE_OVERLAP), OVERLAP, bytes);
  memory.copy(stateColumn(STATE_REMOVED), REMOVED, bytes);
  adapterColumn(used, stateColumn(STATE_ADAPTER));
  const words = stateColumn(STATE_WORDS);
  memory.copy(words, changetype<usize>(poolWords()), POOL_WORDS_BYTES);
  memory.copy(words + STATE_COEFFICIENTS, COEFFICIENTS, COEFFICIENTS_BYTES);
}
