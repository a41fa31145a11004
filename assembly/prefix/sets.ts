// Interned holder sets: which endpoints hold a run of blocks, one number for every different set.
//
// Owns: the set parts of REGION_PREFIX. Written under the index lock. A bitmap never changes while an extent names its
// set, so a reader that found the number in a segment may read the bitmap until the segment's version changes. The hash
// is the exclusive or of one number per endpoint (Zobrist), so that of a neighbour set costs one operation.
import { ASSERTIONS } from '../assertions';
import { count, counted, PREFIX_COUNTER_SETS } from './counters';
import { indexHead } from './head';
import { SET_BITS, SET_CACHE, SET_COUNT, SET_HEADS, SET_META, SET_WORDS } from './layout';

/** No free set is left. */
export const NO_SET: u32 = 0xffffffff;
const CACHE_MASK: u32 = 65535;

@unmanaged
class SetMeta {
  /** Extents that name the set · any thread · index lock. */
  references: u32;
  /** Number of the next set of the same head, or of the next free one · any thread · index lock. */
  next: u32;
  /** Times that the number was freed · any thread · index lock. */
  generation: u32;
  /** Exclusive or of its endpoints' numbers · any thread · index lock. */
  hash: u32;
}

/** One line of the cache of transitions: `from` with the bit of a slot turned over is `to`. */
@unmanaged
class Transition {
  /** Set and slot, plus 1; 0 = free · any thread · index lock. */
  key: u32;
  /** Number of the other set · any thread · index lock. */
  to: u32;
  /** Generation of the set then · any thread · index lock. */
  fromGeneration: u32;
  /** Generation of the other set then · any thread · index lock. */
  toGeneration: u32;
}

function metaOf(set: u32): SetMeta {
  return changetype<SetMeta>(SET_META + <usize>set * offsetof<SetMeta>());
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

/** Returns whether set `b` is set `a` with the bit of `slot` turned over. */
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
  const free = indexHead().setFree;
  if (free != 0) {
    indexHead().setFree = metaOf(free).next;
    return free;
  }
  const top = indexHead().setTop + 1;
  if (top >= SET_COUNT) return NO_SET;
  indexHead().setTop = top;
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
  meta.references = 0;
  meta.next = load<u32>(head);
  meta.hash = hash;
  store<u32>(head, made);
  count(PREFIX_COUNTER_SETS, 1);
  return made;
}

function findNeighbour(set: u32, slot: u32): u32 {
  const hash = metaOf(set).hash ^ zobrist(slot);
  for (let at = load<u32>(headOf(hash)); at != 0; at = metaOf(at).next) {
    if (metaOf(at).hash == hash && isNeighbour(set, at, slot)) return at;
  }
  return hash == 0 && isNeighbour(set, 0, slot) ? 0 : makeNeighbour(set, slot, hash);
}

function lineOf(key: u32): Transition {
  const line = <usize>((key * 0x9e3779b1) >> 16) & CACHE_MASK;
  return changetype<Transition>(SET_CACHE + line * offsetof<Transition>());
}

/**
 * The set with the bit of `slot` turned over, through the cache of transitions; NO_SET when there is no room for it.
 */
function flipped(set: u32, slot: u32): u32 {
  const key = (set << 12) | slot;
  const line = lineOf(key);
  const cached = line.to;
  if (
    line.key == key + 1 &&
    line.fromGeneration == metaOf(set).generation &&
    line.toGeneration == metaOf(cached).generation
  ) {
    return cached;
  }
  const found = findNeighbour(set, slot);
  if (found == NO_SET) return NO_SET;
  line.key = key + 1;
  line.to = found;
  line.fromGeneration = metaOf(set).generation;
  line.toGeneration = metaOf(found).generation;
  return found;
}

/** The set and `slot`. Take a reference (setKeep) before any other set may be released. */
export function setWith(set: u32, slot: u32): u32 {
  return setHolds(set, slot) ? set : flipped(set, slot);
}

/** The set without `slot`. As setWith. */
export function setWithout(set: u32, slot: u32): u32 {
  return setHolds(set, slot) ? flipped(set, slot) : set;
}

/** An extent names the set. */
export function setKeep(set: u32): void {
  if (set == 0) return;
  const meta = metaOf(set);
  meta.references++;
}

export function setReferences(set: u32): u32 {
  return metaOf(set).references;
}

function unlink(set: u32): void {
  const meta = metaOf(set);
  const next = meta.next;
  const head = headOf(meta.hash);
  let at = load<u32>(head);
  if (at == set) {
    store<u32>(head, next);
    return;
  }
  while (at != 0) {
    const after = metaOf(at).next;
    if (after == set) {
      metaOf(at).next = next;
      return;
    }
    at = after;
  }
}

function release(set: u32): void {
  const meta = metaOf(set);
  meta.generation++;
  meta.next = indexHead().setFree;
  indexHead().setFree = set;
}

/** An extent names the set no more; the last one frees it. */
export function setLetGo(set: u32): void {
  if (set == 0) return;
  const meta = metaOf(set);
  if (ASSERTIONS) assert(meta.references != 0, 'a set that loses a reference has one');
  const references = meta.references - 1;
  meta.references = references;
  if (references != 0) return;
  unlink(set);
  release(set);
  count(PREFIX_COUNTER_SETS, -1);
}

/** Forgets all references and hashes, keeping the bitmaps that live extents name: first step of a repair. */
export function setsForget(): void {
  const top = indexHead().setTop;
  for (let set: u32 = 0; set <= top && set < SET_COUNT; set++) {
    const meta = metaOf(set);
    meta.references = 0;
    meta.generation++;
  }
  memory.fill(SET_HEADS, 0, (<usize>SET_COUNT) << 2);
  indexHead().setFree = 0;
}

/** Links the sets that have references again and frees the others: last step of a repair. @returns sets in use */
export function setsRelink(): u32 {
  const top = indexHead().setTop;
  let used: u32 = 0;
  for (let set: u32 = 1; set <= top && set < SET_COUNT; set++) {
    const meta = metaOf(set);
    if (meta.references == 0) {
      release(set);
      continue;
    }
    const hash = hashBits(setBits(set));
    const head = headOf(hash);
    meta.hash = hash;
    meta.next = load<u32>(head);
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
