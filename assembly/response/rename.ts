// The model name in an answer: is it the name to change back, and which bytes of the stream hold it.
//
// Owns: the name words of a response scan (layout.ts) and, while a piece is read, the thread's OUTPUT area, where the
// edits go; its own thread only, no lock.
//
// The core never copies the answer: it names the byte ranges, and the host puts the other name in their place. A value
// that is still equal to the beginning of the name when the piece ends is held back by the host; OUTPUT says from
// where.
import { OUTPUT } from '../memory';
import { nameOf } from './layout';
import { ResponseScan } from './scan-state';

/** OUTPUT after a piece; its edits follow at RESPONSE_EDIT_LIST. */
@unmanaged
class EditsHead {
  /** Edits · its thread · none. */
  count: u32;
  /** Offset in bytes from which on the host holds back, RESPONSE_HOLD_NOTHING = nothing · its thread · none. */
  heldFrom: i32;
}

/** Offsets count from the piece's first byte; -1 = the first of the bytes held before it. */
@unmanaged
class Edit {
  /** Offset in bytes of the name's quote · its thread · none. */
  start: i32;
  /** Offset in bytes behind its last quote · its thread · none. */
  end: i32;
}

export const RESPONSE_EDITS: usize = offsetof<EditsHead>('count');
export const RESPONSE_HELD_FROM: usize = offsetof<EditsHead>('heldFrom');
export const RESPONSE_EDIT_LIST: usize = 16; // start and end of each edit; at most one per 10 bytes of piece
export const RESPONSE_EDIT_END: usize = offsetof<Edit>('end');
export const RESPONSE_EDIT_BYTES: usize = offsetof<Edit>();
export const RESPONSE_HOLD_NOTHING: i32 = 0x7fffffff;

let PIECE: usize = 0; // address of the piece being read
let EDITS: u32 = 0;
let VALUE_FROM: i32 = 0; // offset of the open value's quote

/** Prepares for a piece at address `piece`. */
export function renameBegin(piece: usize): void {
  PIECE = piece;
  EDITS = 0;
  VALUE_FROM = -1;
}

/**
 * Writes the answer to OUTPUT after the piece has been read.
 * @returns 1 when there are edits or something must be held back, else 0.
 */
export function renameEnd(at: ResponseScan): u32 {
  const holding = at.holding;
  const head = changetype<EditsHead>(OUTPUT);
  head.count = EDITS;
  head.heldFrom = holding != 0 ? VALUE_FROM : RESPONSE_HOLD_NOTHING;
  return EDITS | holding;
}

/** Begins a model name, whose quote stands at address `p`. */
export function nameOpen(at: ResponseScan, p: usize): void {
  at.holding = 1;
  at.matched = 0;
  VALUE_FROM = <i32>(p - PIECE);
}

/** Takes `n` decoded bytes of the open model name. */
export function nameTake(at: ResponseScan, p: usize, n: usize): void {
  if (at.holding == 0) return;
  const matched = <usize>at.matched;
  if (matched + n > <usize>at.nameBytes || !same(nameOf(at) + matched, p, n)) nameDrop(at);
  else at.matched = <u32>(matched + n);
}

/** Ends the open model name; `p` is the address behind its quote. */
export function nameClose(at: ResponseScan, p: usize): void {
  if (at.holding == 0) return;
  nameDrop(at);
  if (at.matched != at.nameBytes) return;
  const edit = changetype<Edit>(OUTPUT + RESPONSE_EDIT_LIST + <usize>EDITS * RESPONSE_EDIT_BYTES);
  edit.start = VALUE_FROM;
  edit.end = <i32>(p - PIECE);
  EDITS++;
}

/** Drops the open model name, because it is another one, or its document has ended inside of it. */
export function nameDrop(at: ResponseScan): void {
  at.holding = 0;
}

function same(a: usize, b: usize, n: usize): bool {
  let i: usize = 0;
  for (; i + 8 <= n; i += 8) {
    if (load<u64>(a + i) != load<u64>(b + i)) return false;
  }
  for (; i < n; i++) {
    if (load<u8>(a + i) != load<u8>(b + i)) return false;
  }
  return true;
}
