// Interned holder sets: which endpoints hold a run of blocks, one number for every different set.
//
// Owns: the set parts of REGION_PREFIX. Written under the index lock. A bitmap never changes while a span names its set,
// so a reader that found the number in a segment may read the bitmap until the segment's version changes. Meta, 16 bytes:
//   +0 u32 references (spans) · +4 u32 next of the same hash or next free · +8 u32 generation · +12 u32 hash
// The hash is the exclusive or of one number per endpoint (Zobrist), so that of a neighbour set costs one operation.
import { count, counted, HEAD_SET_FREE, HEAD_SET_TOP, PREFIX_COUNTER_SETS } from './counters';
import { HEAD, SET_BITS, SET_CACHE, SET_COUNT, SET_HEADS, SET_META, SET_WORDS } from './layout';

/** There is no free set left. */
export const NO_SET: u32 = 0xffffffff;
const CACHE_MASK: u32 = 65535;

function metaOf(set: u32): usize {
  return SET_META + ((<usize>set) << 4);
}

export function setBits(set: u32): usize {
  return SET_BITS + ((<usize>set * SET_WORDS) << 3);
}

function headOf(hash: u32): usize {
  return SET_HEADS + ((<usize>(hash & (SET_COUNT - 1))) << 2);
}

/** The number of an endpoint in the hash of a set (the finaliser of MurmurHash3). */
function zobrist(slot: u32): u32 {
  let z = (slot + 1) * 0x9e3779b9;
  z = (z ^ (z >> 16)) * 0x85ebca6b;
  z = (z ^ (z >> 13)) * 0xc2b2ae35;
  return z ^ (z >> 16);
}

export function setHolds(set: u32, slot: u32): bool {
  return (load<u64>(setBits(set) + ((<usize>(slot >> 6)) << 3)) & ((<u64>1) << (slot & 63))) != 0;
}

export function setsFree(): u32 {
  return SET_COUNT - 1 - <u32>counted(PREFIX_COUNTER_SETS);
}

/** Whether set `b` is set `a` with the bit of `slot` turned over. */
function isNeighbour(a: u32, b: u32, slot: u32): bool {
  const from = setBits(a);
  const to = setBits(b);
  for (let word: u32 = 0; word < SET_WORDS; word++) {
    const at = (<usize>word) << 3;
    const flip: u64 = word == slot >> 6 ? (<u64>1) << (slot & 63) : 0;
    if ((load<u64>(from + at) ^ flip) != load<u64>(to + at)) return false;
  }
  return true;
}

function takeFree(): u32 {
  const free = load<u32>(HEAD + HEAD_SET_FREE);
  if (free != 0) {
    store<u32>(HEAD + HEAD_SET_FREE, load<u32>(metaOf(free), 4));
    return free;
  }
  const top = load<u32>(HEAD + HEAD_SET_TOP) + 1;
  if (top >= SET_COUNT) return NO_SET;
  store<u32>(HEAD + HEAD_SET_TOP, top);
  return top;
}

function makeNeighbour(set: u32, slot: u32, hash: u32): u32 {
  const made = takeFree();
  if (made == NO_SET) return NO_SET;
  const bits = setBits(made);
  memory.copy(bits, setBits(set), (<usize>SET_WORDS) << 3);
  const word = bits + ((<usize>(slot >> 6)) << 3);
  store<u64>(word, load<u64>(word) ^ ((<u64>1) << (slot & 63)));
  const meta = metaOf(made);
  const head = headOf(hash);
  store<u32>(meta, 0);
  store<u32>(meta, load<u32>(head), 4);
  store<u32>(meta, hash, 12);
  store<u32>(head, made);
  count(PREFIX_COUNTER_SETS, 1);
  return made;
}

function findNeighbour(set: u32, slot: u32): u32 {
  const hash = load<u32>(metaOf(set), 12) ^ zobrist(slot);
  for (let at = load<u32>(headOf(hash)); at != 0; at = load<u32>(metaOf(at), 4)) {
    if (load<u32>(metaOf(at), 12) == hash && isNeighbour(set, at, slot)) return at;
  }
  return hash == 0 && isNeighbour(set, 0, slot) ? 0 : makeNeighbour(set, slot, hash);
}

/** The set with the bit of `slot` turned over, through the cache of transitions; NO_SET when there is no room for it. */
function flipped(set: u32, slot: u32): u32 {
  const key = (set << 12) | slot;
  const line = SET_CACHE + ((<usize>((key * 0x9e3779b1) >> 16) & CACHE_MASK) << 4);
  const cached = load<u32>(line, 4);
  if (
    load<u32>(line) == key + 1 &&
    load<u32>(line, 8) == load<u32>(metaOf(set), 8) &&
    load<u32>(line, 12) == load<u32>(metaOf(cached), 8)
  ) {
    return cached;
  }
  const found = findNeighbour(set, slot);
  if (found == NO_SET) return NO_SET;
  store<u32>(line, key + 1);
  store<u32>(line, found, 4);
  store<u32>(line, load<u32>(metaOf(set), 8), 8);
  store<u32>(line, load<u32>(metaOf(found), 8), 12);
  return found;
}

/** The set and `slot`. Take a reference (setKeep) before any other set may be let go. */
export function setWith(set: u32, slot: u32): u32 {
  return setHolds(set, slot) ? set : flipped(set, slot);
}

/** The set without `slot`. As setWith. */
export function setWithout(set: u32, slot: u32): u32 {
  return setHolds(set, slot) ? flipped(set, slot) : set;
}

/** A span names the set. */
export function setKeep(set: u32): void {
  if (set == 0) return;
  const meta = metaOf(set);
  store<u32>(meta, load<u32>(meta) + 1);
}

export function setReferences(set: u32): u32 {
  return load<u32>(metaOf(set));
}

function unlink(set: u32): void {
  const meta = metaOf(set);
  const next = load<u32>(meta, 4);
  const head = headOf(load<u32>(meta, 12));
  let at = load<u32>(head);
  if (at == set) {
    store<u32>(head, next);
    return;
  }
  while (at != 0) {
    const after = load<u32>(metaOf(at), 4);
    if (after == set) {
      store<u32>(metaOf(at), next, 4);
      return;
    }
    at = after;
  }
}

function release(set: u32): void {
  const meta = metaOf(set);
  store<u32>(meta, load<u32>(meta, 8) + 1, 8);
  store<u32>(meta, load<u32>(HEAD + HEAD_SET_FREE), 4);
  store<u32>(HEAD + HEAD_SET_FREE, set);
}

/** A span names the set no more; the last one frees it. */
export function setLetGo(set: u32): void {
  if (set == 0) return;
  const meta = metaOf(set);
  const references = load<u32>(meta) - 1;
  store<u32>(meta, references);
  if (references != 0) return;
  unlink(set);
  release(set);
  count(PREFIX_COUNTER_SETS, -1);
}

/** Forget all references and hashes, keeping the bitmaps that live spans name: first step of a repair. */
export function setsForget(): void {
  const top = load<u32>(HEAD + HEAD_SET_TOP);
  for (let set: u32 = 0; set <= top && set < SET_COUNT; set++) {
    const meta = metaOf(set);
    store<u32>(meta, 0);
    store<u32>(meta, load<u32>(meta, 8) + 1, 8);
  }
  memory.fill(SET_HEADS, 0, (<usize>SET_COUNT) << 2);
  store<u32>(HEAD + HEAD_SET_FREE, 0);
}

/** Link the sets that have references again and free the others: last step of a repair. @returns sets in use */
export function setsRelink(): u32 {
  const top = load<u32>(HEAD + HEAD_SET_TOP);
  let used: u32 = 0;
  for (let set: u32 = 1; set <= top && set < SET_COUNT; set++) {
    const meta = metaOf(set);
    if (load<u32>(meta) == 0) {
      release(set);
      continue;
    }
    const hash = hashBits(setBits(set));
    const head = headOf(hash);
    store<u32>(meta, hash, 12);
    store<u32>(meta, load<u32>(head), 4);
    store<u32>(head, set);
    used++;
  }
  return used;
}

function hashBits(bits: usize): u32 {
  let hash: u32 = 0;
  for (let word: u32 = 0; word < SET_WORDS; word++) {
    let rest = load<u64>(bits + ((<usize>word) << 3));
    while (rest != 0) {
      hash ^= zobrist((word << 6) + <u32>ctz(rest));
      rest &= rest - 1;
    }
  }
  return hash;
}
