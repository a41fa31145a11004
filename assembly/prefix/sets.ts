// Interned holder sets: which endpoints hold a run of blocks, and where, one number for every different set.
//
// Owns: the set parts of REGION_PREFIX. Written under the index lock. A bitmap never changes while an extent names its
// set, so a reader that found the number in a segment may read the bitmap until the segment's version changes. The hash
// is the exclusive or of one number per endpoint and place (Zobrist), so that of a neighbour set costs one operation.
//
// A set has a bitmap of its endpoints, and two more with the tier of each: place - PLACE_GPU in two bits. The two are
// written and read for the sets alone of which an endpoint holds its blocks below the GPU (SET_TIERED is not 0).
import { ASSERTIONS } from '../assertions';
import { ENDPOINTS_MAX } from '../memory';
import { count, counted, PREFIX_COUNTER_SETS } from './counters';
import { indexHead } from './head';
import { SET_BITS, SET_CACHE, SET_COUNT, SET_HEADS, SET_META, SET_TIERED, SET_TIERS, SET_WORDS } from './layout';

/** No free set is left. */
export const NO_SET: u32 = 0xffffffff;
const CACHE_MASK: u32 = 65535;

/** Places of a block on an endpoint: the nearest one, from which an engine loads it. */
export const PLACE_NONE: u32 = 0;
export const PLACE_GPU: u32 = 1;
export const PLACE_HOST: u32 = 2;
export const PLACE_DISK: u32 = 3;
export const PLACE_REMOTE: u32 = 4;

const KEY_SET_BITS: u32 = 16; // of a set in the key of a transition: there are at most 65,536

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

/** One line of the cache of transitions: `from` with another place for a slot is `to`. */
@unmanaged
class Transition {
  /** Place, set and slot, plus 1; 0 = free · any thread · index lock. */
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

/** Address of the two bitmaps of a set's tiers: the low bits, then the high ones. */
export function setTiers(set: u32): usize {
  return SET_TIERS + ((<usize>set * SET_WORDS) << 4);
}

/**
 * Returns whether an endpoint of the set holds its blocks below the GPU. The head is at hand, the byte of a set is not.
 */
export function setTiered(set: u32): bool {
  return indexHead().tieredSets != 0 && load<u8>(SET_TIERED + set) != 0;
}

/** The number of an endpoint and its place in the hash of a set (the finaliser of MurmurHash3). */
function zobrist(slot: u32, place: u32): u32 {
  if (place == PLACE_NONE) return 0;
  let z = (slot + (place - PLACE_GPU) * ENDPOINTS_MAX + 1) * 0x9e3779b9;
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

/** Place at which `slot` holds what names the set. */
export function placeIn(set: u32, slot: u32): u32 {
  if (!setHolds(set, slot)) return PLACE_NONE;
  if (!setTiered(set)) return PLACE_GPU;
  const low = setTiers(set) + ((<usize>(slot >> 6)) << 3);
  const high = low + ((<usize>SET_WORDS) << 3);
  const bit = slot & 63;
  return PLACE_GPU + (<u32>(load<u64>(low) >> bit) & 1) + ((<u32>(load<u64>(high) >> bit) & 1) << 1);
}

/** A word of the tiers of a set: of plane 0 its low bits, of plane 1 its high ones. */
function tierWord(set: u32, plane: u32, word: u32): u64 {
  return setTiered(set) ? load<u64>(setTiers(set) + ((<usize>(plane * SET_WORDS + word)) << 3)) : 0;
}

function withBit(word: u64, slot: u32, on: bool): u64 {
  const bit = (<u64>1) << (slot & 63);
  return on ? word | bit : word & ~bit;
}

/** Whether a place sets the bit of a plane. */
function inPlane(place: u32, plane: u32): bool {
  return place > PLACE_GPU && (((place - PLACE_GPU) >> plane) & 1) != 0;
}

/** Returns whether set `b` is set `a` with `slot` at `place`. */
function isNeighbour(a: u32, b: u32, slot: u32, place: u32): bool {
  const from = setBits(a);
  const to = setBits(b);
  const tiers = setTiered(a) || setTiered(b) || place > PLACE_GPU;
  for (let word: u32 = 0; word < SET_WORDS; word++) {
    const at = (<usize>word) << 3;
    const own = word == slot >> 6;
    const holders = load<u64>(from + at);
    if ((own ? withBit(holders, slot, place != PLACE_NONE) : holders) != load<u64>(to + at)) return false;
    if (!tiers) continue;
    for (let plane: u32 = 0; plane < 2; plane++) {
      const bits = tierWord(a, plane, word);
      if ((own ? withBit(bits, slot, inPlane(place, plane)) : bits) != tierWord(b, plane, word)) return false;
    }
  }
  return true;
}

/** Writes the tiers of a new set. @returns whether one is below the GPU */
function writeTiers(made: u32, set: u32, slot: u32, place: u32): bool {
  const to = setTiers(made);
  let any: u64 = 0;
  for (let plane: u32 = 0; plane < 2; plane++) {
    for (let word: u32 = 0; word < SET_WORDS; word++) {
      let bits = tierWord(set, plane, word);
      if (word == slot >> 6) bits = withBit(bits, slot, inPlane(place, plane));
      store<u64>(to + ((<usize>(plane * SET_WORDS + word)) << 3), bits);
      any |= bits;
    }
  }
  return any != 0;
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

function makeNeighbour(set: u32, slot: u32, place: u32, hash: u32): u32 {
  const made = takeFree();
  if (made == NO_SET) return NO_SET;
  const bits = setBits(made);
  memory.copy(bits, setBits(set), (<usize>SET_WORDS) << 3);
  const word = bits + ((<usize>(slot >> 6)) << 3);
  store<u64>(word, withBit(load<u64>(word), slot, place != PLACE_NONE));
  if (place > PLACE_GPU) indexHead().places |= 1 << place;
  const tiered = (setTiered(set) || place > PLACE_GPU) && writeTiers(made, set, slot, place);
  store<u8>(SET_TIERED + made, u8(tiered));
  indexHead().tieredSets += u32(tiered);
  const meta = metaOf(made);
  const head = headOf(hash);
  meta.references = 0;
  meta.next = load<u32>(head);
  meta.hash = hash;
  store<u32>(head, made);
  count(PREFIX_COUNTER_SETS, 1);
  return made;
}

function findNeighbour(set: u32, slot: u32, place: u32): u32 {
  const hash = metaOf(set).hash ^ zobrist(slot, placeIn(set, slot)) ^ zobrist(slot, place);
  for (let at = load<u32>(headOf(hash)); at != 0; at = metaOf(at).next) {
    if (metaOf(at).hash == hash && isNeighbour(set, at, slot, place)) return at;
  }
  return hash == 0 && isNeighbour(set, 0, slot, place) ? 0 : makeNeighbour(set, slot, place, hash);
}

function lineOf(key: u32): Transition {
  const line = <usize>((key * 0x9e3779b1) >> 16) & CACHE_MASK;
  return changetype<Transition>(SET_CACHE + line * offsetof<Transition>());
}

/**
 * Key of a transition, less than 5 × 65,536 × ENDPOINTS_MAX: one place for an endpoint that comes to the GPU and for
 * one that leaves.
 */
function transitionKey(set: u32, slot: u32, before: u32, place: u32): u32 {
  const to = before == PLACE_NONE && place == PLACE_GPU ? 0 : place;
  return ((to << KEY_SET_BITS) | set) * ENDPOINTS_MAX + slot;
}

/**
 * The set with `slot` at `place`, which it is not yet, through the cache of transitions; NO_SET when there is no room
 * for it.
 */
function changed(set: u32, slot: u32, before: u32, place: u32): u32 {
  const key = transitionKey(set, slot, before, place);
  const line = lineOf(key);
  const cached = line.to;
  if (
    line.key == key + 1 &&
    line.fromGeneration == metaOf(set).generation &&
    line.toGeneration == metaOf(cached).generation
  ) {
    return cached;
  }
  const found = findNeighbour(set, slot, place);
  if (found == NO_SET) return NO_SET;
  line.key = key + 1;
  line.to = found;
  line.fromGeneration = metaOf(set).generation;
  line.toGeneration = metaOf(found).generation;
  return found;
}

/**
 * The set with `slot` at `place`, of which it holds `before`. Take a reference (setKeep) before any other set may be
 * released. @returns NO_SET when no number is free
 */
export function setPlaced(set: u32, slot: u32, before: u32, place: u32): u32 {
  return before == place ? set : changed(set, slot, before, place);
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
  indexHead().tieredSets -= u32(setTiered(set));
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
  // Until they are counted again each set is asked.
  indexHead().tieredSets = 1;
}

/** Links the sets that have references again and frees the others: last step of a repair. @returns sets in use */
export function setsRelink(): u32 {
  const top = indexHead().setTop;
  let used: u32 = 0;
  let tiered: u32 = 0;
  for (let set: u32 = 1; set <= top && set < SET_COUNT; set++) {
    const meta = metaOf(set);
    if (meta.references == 0) {
      release(set);
      continue;
    }
    const hash = hashOf(set);
    const head = headOf(hash);
    meta.hash = hash;
    meta.next = load<u32>(head);
    store<u32>(head, set);
    used++;
    tiered += u32(setTiered(set));
  }
  indexHead().tieredSets = tiered;
  return used;
}

function hashOf(set: u32): u32 {
  const bits = setBits(set);
  let hash: u32 = 0;
  for (let word: u32 = 0; word < SET_WORDS; word++) {
    let rest = load<u64>(bits + ((<usize>word) << 3));
    while (rest != 0) {
      const slot = (word << 6) + <u32>ctz(rest);
      hash ^= zobrist(slot, placeIn(set, slot));
      rest &= rest - 1;
    }
  }
  return hash;
}

/** @returns whether the tiers of a set are those of its endpoints, for a check of the index */
export function tiersStand(set: u32): bool {
  let any: u64 = 0;
  for (let word: u32 = 0; word < SET_WORDS; word++) {
    const lower = tierWord(set, 0, word) | tierWord(set, 1, word);
    if ((lower & ~load<u64>(setBits(set) + ((<usize>word) << 3))) != 0) return false;
    any |= lower;
  }
  return (any != 0) == setTiered(set) && metaOf(set).hash == hashOf(set);
}
