// The model name in an answer: is it the name to change back, and which bytes of the stream hold it.
//
// Owns: the name words of a response scan (layout.ts) and, while a piece is read, the thread's OUTPUT area, where the
// edits go; its own thread only, no lock.
//
// The core never copies the answer: it names the byte ranges, and the host puts the other name in their place. A value
// that is still equal to the beginning of the name when the piece ends is held back by the host; OUTPUT says from where.
import { OUTPUT } from '../memory';
import { SCAN_HOLDING, SCAN_MATCHED, SCAN_NAME, SCAN_NAME_BYTES } from './layout';

// OUTPUT after a piece: i32 each. Offsets count from the piece's first byte; -1 = the first of the bytes held before it.
export const RESPONSE_EDITS: usize = 0; // how many edits
export const RESPONSE_HELD_FROM: usize = 4; // from here on hold back; RESPONSE_HOLD_NOTHING when nothing
export const RESPONSE_EDIT_LIST: usize = 16; // start and end of each edit, 8 bytes; at most one per 10 bytes of piece
export const RESPONSE_HOLD_NOTHING: i32 = 0x7fffffff;

let PIECE: usize = 0; // address of the piece being read
let EDITS: u32 = 0;
let VALUE_FROM: i32 = 0; // offset of the open value's quote

/** A piece at address `piece` is going to be read. */
export function renameBegin(piece: usize): void {
  PIECE = piece;
  EDITS = 0;
  VALUE_FROM = -1;
}

/**
 * The piece has been read: write the answer to OUTPUT.
 * @returns 1 when there are edits or something must be held back, else 0.
 */
export function renameEnd(at: usize): u32 {
  const holding = load<u32>(at, SCAN_HOLDING);
  store<u32>(OUTPUT, EDITS, RESPONSE_EDITS);
  store<i32>(OUTPUT, holding != 0 ? VALUE_FROM : RESPONSE_HOLD_NOTHING, RESPONSE_HELD_FROM);
  return EDITS | holding;
}

/** A model name opens; its quote stands at address `p`. */
export function nameOpen(at: usize, p: usize): void {
  store<u32>(at, 1, SCAN_HOLDING);
  store<u32>(at, 0, SCAN_MATCHED);
  VALUE_FROM = <i32>(p - PIECE);
}

/** `n` decoded bytes of the open model name. */
export function nameTake(at: usize, p: usize, n: usize): void {
  if (load<u32>(at, SCAN_HOLDING) == 0) return;
  const matched = <usize>load<u32>(at, SCAN_MATCHED);
  if (matched + n > <usize>load<u32>(at, SCAN_NAME_BYTES) || !same(at + SCAN_NAME + matched, p, n)) nameDrop(at);
  else store<u32>(at, <u32>(matched + n), SCAN_MATCHED);
}

/** The open model name closes; `p` is the address behind its quote. */
export function nameClose(at: usize, p: usize): void {
  if (load<u32>(at, SCAN_HOLDING) == 0) return;
  nameDrop(at);
  if (load<u32>(at, SCAN_MATCHED) != load<u32>(at, SCAN_NAME_BYTES)) return;
  const edit = OUTPUT + RESPONSE_EDIT_LIST + ((<usize>EDITS) << 3);
  store<i32>(edit, VALUE_FROM);
  store<i32>(edit, <i32>(p - PIECE), 4);
  EDITS++;
}

/** The open model name is another one, or its document has ended in the middle of it. */
export function nameDrop(at: usize): void {
  store<u32>(at, 0, SCAN_HOLDING);
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
