// Protocol Buffers (protobuf.dev/programming-guides/encoding), read in pieces of any cut.
//
// Owns: WIRE_STATE_BYTES bytes inside the scan state that its user gives; that user's thread only, no lock. The globals
// hold the piece being read: wireFeed sets them, and nothing in them outlives the call of the user.
//
// The user pulls: wireNext() says what comes next. A length-delimited field is skipped unless the user enters it as a
// message, unpacks it as a list of numbers, or takes its bytes. Groups are refused: proto3 has none.

/** What wireNext found. */
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

// The state (u32 unless said otherwise).
const STATE_PHASE: usize = 0;
const STATE_SHIFT: usize = 4; // bits of the varint under way
const STATE_VALUE: usize = 8; // u64: that varint
const STATE_FIELD: usize = 16; // number of the field under way
const STATE_LEVEL: usize = 20; // messages and lists entered
const STATE_LEFT: usize = 24; // bytes of the field under way still to come
const STATE_POSITION: usize = 28; // bytes read
const STATE_LIST: usize = 32; // level of the packed list under way, 0 = none
const STATE_ENDS: usize = 36; // u32 × 4: position at which each level ends
const STATE_FIELDS: usize = 52; // u32 × 4: field through which each level was entered
const LEVEL_MAX: u32 = 3;
export const WIRE_STATE_BYTES: usize = 72;

let AT: usize = 0;
let END: usize = 0;
let FROM: usize = 0;

/** A message begins. */
export function wireBegin(state: usize): void {
  memory.fill(state, 0, WIRE_STATE_BYTES);
  store<u32>(state, u32.MAX_VALUE, STATE_ENDS);
}

/** Read on with the bytes [at, end). */
export function wireFeed(at: usize, end: usize): void {
  AT = at;
  END = end;
}

/** May the message end here? */
export function wireComplete(state: usize): bool {
  const level = load<u32>(state, STATE_LEVEL);
  return level == 0 && load<u32>(state, STATE_PHASE) == PHASE_KEY && load<u32>(state, STATE_SHIFT) == 0;
}

/** Number of the field that wireNext spoke of. */
export function wireField(state: usize): u32 {
  return load<u32>(state, STATE_FIELD);
}

/** Value of the number that wireNext found. */
export function wireNumber(state: usize): u64 {
  return load<u64>(state, STATE_VALUE);
}

/** Messages entered around the field that wireNext spoke of. */
export function wireLevel(state: usize): u32 {
  return load<u32>(state, STATE_LEVEL);
}

/** Field through which level `level` (1 to 3) was entered. */
export function wireParent(state: usize, level: u32): u32 {
  return load<u32>(state + STATE_FIELDS + ((<usize>level) << 2));
}

/** Where the piece begins that wireNext found. */
export function wireFrom(): usize {
  return FROM;
}

/** Where it ends. */
export function wireTo(): usize {
  return AT;
}

/** Read the field that opens as a message. Deeper than three levels it is skipped: nothing of interest lies there. */
export function wireEnter(state: usize): void {
  const level = load<u32>(state, STATE_LEVEL) + 1;
  if (level > LEVEL_MAX) return;
  const at = state + ((<usize>level) << 2);
  store<u32>(at, load<u32>(state, STATE_POSITION) + load<u32>(state, STATE_LEFT), STATE_ENDS);
  store<u32>(at, load<u32>(state, STATE_FIELD), STATE_FIELDS);
  store<u32>(state, level, STATE_LEVEL);
  store<u32>(state, PHASE_KEY, STATE_PHASE);
}

/** Read the field that opens as a packed list of varints. */
export function wireUnpack(state: usize): void {
  wireEnter(state);
  store<u32>(state, load<u32>(state, STATE_LEVEL), STATE_LIST);
}

/** Take the bytes of the field that opens. */
export function wireTake(state: usize): void {
  store<u32>(state, PHASE_TAKE, STATE_PHASE);
}

function bad(state: usize): u32 {
  store<u32>(state, PHASE_BAD, STATE_PHASE);
  return WIRE_BAD;
}

/** What comes next (WIRE_*). */
export function wireNext(state: usize): u32 {
  while (true) {
    const phase = load<u32>(state, STATE_PHASE);
    if (phase == PHASE_BAD) return WIRE_BAD;
    if (phase >= PHASE_SKIP) {
      if (load<u32>(state, STATE_LEFT) == 0) {
        store<u32>(state, PHASE_KEY, STATE_PHASE);
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
      if (load<u32>(state, STATE_PHASE) == PHASE_BAD) return WIRE_BAD;
      continue;
    }
    const found = phase == PHASE_KEY ? keyRead(state) : phase == PHASE_NUMBER ? numberRead(state) : lengthRead(state);
    if (found != WIRE_PAUSE) return found;
  }
}

/** Pass over bytes of the field under way, up to its end or that of the piece. */
function passBytes(state: usize): void {
  const left = load<u32>(state, STATE_LEFT);
  const here = <u32>(END - AT);
  const passed = left < here ? left : here;
  FROM = AT;
  AT += passed;
  store<u32>(state, left - passed, STATE_LEFT);
  store<u32>(state, load<u32>(state, STATE_POSITION) + passed, STATE_POSITION);
}

/** Leave the innermost level when it ends here. */
function leaves(state: usize): bool {
  const level = load<u32>(state, STATE_LEVEL);
  if (level == 0 || load<u32>(state, STATE_SHIFT) != 0) return false;
  if (room(state) != 0) return false;
  store<u32>(state, level - 1, STATE_LEVEL);
  store<u32>(state, 0, STATE_LIST);
  return true;
}

/** Bytes left in the innermost level. */
function room(state: usize): u32 {
  const level = <usize>load<u32>(state, STATE_LEVEL);
  return load<u32>(state + STATE_ENDS + (level << 2)) - load<u32>(state, STATE_POSITION);
}

/** Read bytes of a varint. @returns true once it is complete. */
function readVarint(state: usize): bool {
  let shift = load<u32>(state, STATE_SHIFT);
  let value = shift == 0 ? 0 : load<u64>(state, STATE_VALUE);
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
  store<u32>(state, load<u32>(state, STATE_POSITION) + <u32>(AT - from), STATE_POSITION);
  store<u64>(state, value, STATE_VALUE);
  if (!more) {
    store<u32>(state, 0, STATE_SHIFT);
    return true;
  }
  store<u32>(state, shift, STATE_SHIFT);
  // Longer than ten bytes, or cut by the end of its message.
  if (shift >= 70 || left == 0) bad(state);
  return false;
}

function keyRead(state: usize): u32 {
  const level = load<u32>(state, STATE_LEVEL);
  if (level != 0 && load<u32>(state, STATE_LIST) == level) {
    store<u32>(state, wireParent(state, level), STATE_FIELD);
    return WIRE_NUMBER;
  }
  const key = load<u64>(state, STATE_VALUE);
  const type = <u32>key & 7;
  if (key > u32.MAX_VALUE || key < 8) return bad(state);
  store<u32>(state, <u32>key >> 3, STATE_FIELD);
  if (type == TYPE_VARINT) store<u32>(state, PHASE_NUMBER, STATE_PHASE);
  else if (type == TYPE_LENGTH) store<u32>(state, PHASE_LENGTH, STATE_PHASE);
  else if (type == TYPE_FIXED64) return skip(state, 8);
  else if (type == TYPE_FIXED32) return skip(state, 4);
  else return bad(state);
  return WIRE_PAUSE;
}

function skip(state: usize, bytes: u32): u32 {
  if (bytes > room(state)) return bad(state);
  store<u32>(state, bytes, STATE_LEFT);
  store<u32>(state, PHASE_SKIP, STATE_PHASE);
  return WIRE_PAUSE;
}

function numberRead(state: usize): u32 {
  store<u32>(state, PHASE_KEY, STATE_PHASE);
  return WIRE_NUMBER;
}

function lengthRead(state: usize): u32 {
  const length = load<u64>(state, STATE_VALUE);
  if (length > <u64>room(state) || skip(state, <u32>length) == WIRE_BAD) return bad(state);
  return WIRE_LENGTH;
}
