// Protocol Buffers (protobuf.dev/programming-guides/encoding), read in pieces of any cut.
//
// Owns: the Wire inside the scan state that its user gives; that user's thread only, no lock. The globals
// hold the piece being read: wireFeed sets them, and nothing in them outlives the call of the user.
//
// The caller pulls: wireNext() returns the kind of the next item. A length-delimited field is skipped unless the caller
// enters it as a message, unpacks it as a list of numbers, or takes its bytes. Groups are refused: proto3 has none.

/** Field that wireNext found. */
export const WIRE_PAUSE: u32 = 0; // the piece has ended
export const WIRE_NUMBER: u32 = 1; // a varint field, or one number of a packed list: wireField(), wireNumber()
export const WIRE_LENGTH: u32 = 2; // a length-delimited field opens: wireField(); wireEnter, wireUnpack or wireTake it
export const WIRE_PIECE: u32 = 3; // the next bytes of a field that is taken: wireFrom(), wireTo()
export const WIRE_TAKEN: u32 = 4; // that field is complete
export const WIRE_LEAVE: u32 = 5; // a message or list that was entered is complete
export const WIRE_BAD: u32 = 6; // not a protobuf message, for good

const PHASE_KEY: u32 = 0; // a field's key, or a number of a packed list
const PHASE_NUMBER: u32 = 1;
const PHASE_LENGTH: u32 = 2;
const PHASE_SKIP: u32 = 3;
const PHASE_TAKE: u32 = 4;
const PHASE_BAD: u32 = 5;

const TYPE_VARINT: u32 = 0;
const TYPE_FIXED64: u32 = 1;
const TYPE_LENGTH: u32 = 2;
const TYPE_FIXED32: u32 = 5;

/** Position of a reader in its message. */
@unmanaged
export class Wire {
  /** Owner of the next byte, PHASE_* · its user's thread · none. */
  phase: u32;
  /** Bits of the varint under way · its user's thread · none. */
  shift: u32;
  /** Varint under way · its user's thread · none. */
  value: u64;
  /** Number of the field under way · its user's thread · none. */
  field: u32;
  /** Messages and lists entered · its user's thread · none. */
  level: u32;
  /** Bytes of the field under way that are missing · its user's thread · none. */
  left: u32;
  /** Bytes read · its user's thread · none. */
  position: u32;
  /** Level of the packed list under way, 0 = none · its user's thread · none. */
  list: u32;
  /** Position in bytes at which each of four levels ends, u32 each · its user's thread · none. */
  ends: u32;
  private ends1: u64;
  private ends2: u32;
  /** Number of the field through which each of four levels was entered, u32 each · its user's thread · none. */
  fields: u32;
  private fields1: u64;
  private fields2: u32;
  private unused0: u32;

  endOf(level: u32): u32 {
    return load<u32>(changetype<usize>(this) + ((<usize>level) << 2), offsetof<Wire>('ends'));
  }

  setEndOf(level: u32, position: u32): void {
    store<u32>(changetype<usize>(this) + ((<usize>level) << 2), position, offsetof<Wire>('ends'));
  }

  fieldOf(level: u32): u32 {
    return load<u32>(changetype<usize>(this) + ((<usize>level) << 2), offsetof<Wire>('fields'));
  }

  setFieldOf(level: u32, field: u32): void {
    store<u32>(changetype<usize>(this) + ((<usize>level) << 2), field, offsetof<Wire>('fields'));
  }
}

const LEVEL_MAX: u32 = 3;

let AT: usize = 0;
let END: usize = 0;
let FROM: usize = 0;

/** Begins a message. */
export function wireBegin(state: Wire): void {
  memory.fill(changetype<usize>(state), 0, offsetof<Wire>());
  state.setEndOf(0, u32.MAX_VALUE);
}

/** Reads on with the bytes [at, end). */
export function wireFeed(at: usize, end: usize): void {
  AT = at;
  END = end;
}

/** Whether the message may end here. */
export function wireComplete(state: Wire): bool {
  const level = state.level;
  return level == 0 && state.phase == PHASE_KEY && state.shift == 0;
}

/** Number of the field that wireNext spoke of. */
export function wireField(state: Wire): u32 {
  return state.field;
}

/** Value of the number that wireNext found. */
export function wireNumber(state: Wire): u64 {
  return state.value;
}

/** Messages entered around the field that wireNext spoke of. */
export function wireLevel(state: Wire): u32 {
  return state.level;
}

/** Field through which level `level` (1 to 3) was entered. */
export function wireParent(state: Wire, level: u32): u32 {
  return state.fieldOf(level);
}

/** Start of the piece that wireNext found. */
export function wireFrom(): usize {
  return FROM;
}

/** End of the piece that wireNext found. */
export function wireTo(): usize {
  return AT;
}

/** Reads the field that opens as a message. Deeper than three levels it is skipped: nothing of interest lies there. */
export function wireEnter(state: Wire): void {
  const level = state.level + 1;
  if (level > LEVEL_MAX) return;
  state.setEndOf(level, state.position + state.left);
  state.setFieldOf(level, state.field);
  state.level = level;
  state.phase = PHASE_KEY;
}

/** Reads the field that opens as a packed list of varints. */
export function wireUnpack(state: Wire): void {
  wireEnter(state);
  state.list = state.level;
}

/** Takes the bytes of the field that opens. */
export function wireTake(state: Wire): void {
  state.phase = PHASE_TAKE;
}

function bad(state: Wire): u32 {
  state.phase = PHASE_BAD;
  return WIRE_BAD;
}

/** Reads on to the next item. @returns its kind (WIRE_*) */
export function wireNext(state: Wire): u32 {
  while (true) {
    const phase = state.phase;
    if (phase == PHASE_BAD) return WIRE_BAD;
    if (phase >= PHASE_SKIP) {
      if (state.left == 0) {
        state.phase = PHASE_KEY;
        if (phase == PHASE_TAKE) return WIRE_TAKEN;
        continue;
      }
      if (AT == END) return WIRE_PAUSE;
      passBytes(state);
      if (phase == PHASE_TAKE) return WIRE_PIECE;
      continue;
    }
    if (phase == PHASE_KEY && leaves(state)) return WIRE_LEAVE;
    if (AT == END) return WIRE_PAUSE;
    if (!readVarint(state)) {
      if (state.phase == PHASE_BAD) return WIRE_BAD;
      continue;
    }
    const found = phase == PHASE_KEY ? keyRead(state) : phase == PHASE_NUMBER ? numberRead(state) : lengthRead(state);
    if (found != WIRE_PAUSE) return found;
  }
}

/** Passes over bytes of the field under way, up to its end or that of the piece. */
function passBytes(state: Wire): void {
  const left = state.left;
  const here = <u32>(END - AT);
  const passed = left < here ? left : here;
  FROM = AT;
  AT += passed;
  state.left = left - passed;
  state.position += passed;
}

/** Leaves the innermost level when it ends here. */
function leaves(state: Wire): bool {
  const level = state.level;
  if (level == 0 || state.shift != 0) return false;
  if (room(state) != 0) return false;
  state.level = level - 1;
  state.list = 0;
  return true;
}

/** Bytes left in the innermost level. */
function room(state: Wire): u32 {
  const level = state.level;
  return state.endOf(level) - state.position;
}

/** Reads bytes of a varint. @returns true once it is complete. */
function readVarint(state: Wire): bool {
  let shift = state.shift;
  let value = shift == 0 ? 0 : state.value;
  let left = room(state);
  const from = AT;
  let more = true;
  while (more && AT < END && left > 0 && shift < 70) {
    const byte = <u32>load<u8>(AT);
    value |= (<u64>(byte & 127)) << (<u64>shift);
    shift += 7;
    more = byte > 127;
    AT++;
    left--;
  }
  state.position += <u32>(AT - from);
  state.value = value;
  if (!more) {
    state.shift = 0;
    return true;
  }
  state.shift = shift;
  // Longer than ten bytes, or cut by the end of its message.
  if (shift >= 70 || left == 0) bad(state);
  return false;
}

function keyRead(state: Wire): u32 {
  const level = state.level;
  if (level != 0 && state.list == level) {
    state.field = wireParent(state, level);
    return WIRE_NUMBER;
  }
  const key = state.value;
  const type = <u32>key & 7;
  if (key > u32.MAX_VALUE || key < 8) return bad(state);
  state.field = <u32>key >> 3;
  if (type == TYPE_VARINT) state.phase = PHASE_NUMBER;
  else if (type == TYPE_LENGTH) state.phase = PHASE_LENGTH;
  else if (type == TYPE_FIXED64) return skip(state, 8);
  else if (type == TYPE_FIXED32) return skip(state, 4);
  else return bad(state);
  return WIRE_PAUSE;
}

function skip(state: Wire, bytes: u32): u32 {
  if (bytes > room(state)) return bad(state);
  state.left = bytes;
  state.phase = PHASE_SKIP;
  return WIRE_PAUSE;
}

function numberRead(state: Wire): u32 {
  state.phase = PHASE_KEY;
  return WIRE_NUMBER;
}

function lengthRead(state: Wire): u32 {
  const length = state.value;
  if (length > <u64>room(state) || skip(state, <u32>length) == WIRE_BAD) return bad(state);
  return WIRE_LENGTH;
}
