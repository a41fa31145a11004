// The lookup: how many blocks of the prompt, contiguous from the first, each endpoint holds. No lock.
//
// Owns: this thread's part of REGION_PREFIX: VISITED, one Visit per segment, ALIVE, the bitmap of endpoints that hold
// everything so far, and TIER_BLOCKS, their blocks by tier. Writes MATCH and, plainly, the stamps of the segments that
// it used.
//
// Blocks that an endpoint holds below the GPU are counted apart, by tier, where a set says that there are such ones:
// weighMatches then makes MATCH the blocks on the GPU that would save as much as what the endpoint holds.
//
// A segment that changes while it is read is found out at the end: the versions of all segments visited are compared
// once more. If they stand, the answer was true at one moment; if not, the lookup begins again, at most TRIES times,
// and then answers with the part before the first segment that changed: less than the truth, never more.
import { ASSERTIONS } from '../assertions';
import { slotOffset } from '../columns/column';
import { HASHES, MATCH } from '../memory';
import { fitsChain, isMapped, isSlot } from '../preconditions';
import { countShared, PREFIX_COUNTER_GIVE_UPS, PREFIX_COUNTER_RETRIES } from './counters';
import { indexHead } from './head';
import {
  ALIVE,
  CHAIN_LIMIT,
  GUESSES,
  OVERFLOW_COUNT,
  SEGMENT_BLOCKS,
  SEGMENT_MASK,
  SEGMENT_SHIFT,
  SET_COUNT,
  SET_WORDS,
  SLOT_LIMIT,
  STAMPS,
  TIER_BLOCKS,
  VISITED,
} from './layout';
import { agree } from './path';
import {
  extentAt,
  extentEnd,
  extentSet,
  INLINE_EXTENTS,
  inlineExtents,
  overflowList,
  Segment,
  segmentAt,
} from './segment';
import { NO_SET, PLACE_DISK, PLACE_GPU, PLACE_HOST, PLACE_REMOTE, setBits, setTiered, setTiers } from './sets';
import { tableFind, tableGuess } from './table';

const TRIES: u32 = 64;
/** Windows whose heads are looked up together, so that their cache misses overlap. */
const AHEAD: u32 = 8; // a power of two: windows AHEAD apart share a guess's place

/** A segment that the lookup has read. */
@unmanaged
class Visit {
  /** Number of the segment · its thread · none. */
  segment: u32;
  /** Version before it was read · its thread · none. */
  version: u32;
  /** Blocks before the segment's first one · its thread · none. */
  depth: u32;
  private unused: u32;
}

function visitAt(i: u32): Visit {
  return changetype<Visit>(VISITED + <usize>i * offsetof<Visit>());
}

let visited: u32 = 0;
let lastSet: u32 = NO_SET; // set that ALIVE was narrowed with last
let begun: bool = false; // ALIVE holds something
let anyAlive: bool = false;
let longest: u32 = 0;
let touched: u32 = 0; // keeps the loads ahead from being optimised away

/** Blocks of lastSet that are not yet in TIER_BLOCKS, 0 also when its endpoints hold them on the GPU. */
let lowerBlocks: u32 = 0;
/** TIER_BLOCKS holds something. */
let anyLower: bool = false;

/** Bits of a count in TIER_BLOCKS: a chain has at most 65,535 blocks. */
const COUNT_BITS: u64 = 16;

function tierBlocksAt(slot: u32): usize {
  return TIER_BLOCKS + ((<usize>slot) << 3);
}

/** Counts the blocks of lastSet that its endpoints hold below the GPU. */
function noteLower(): void {
  const low = setTiers(lastSet);
  const high = low + ((<usize>SET_WORDS) << 3);
  const blocks = <u64>lowerBlocks;
  lowerBlocks = 0;
  if (!anyLower) memory.fill(TIER_BLOCKS, 0, (<usize>SLOT_LIMIT) << 3);
  anyLower = true;
  for (let word: u32 = 0; word < SET_WORDS; word++) {
    const at = (<usize>word) << 3;
    const lowBits = load<u64>(low + at);
    const highBits = load<u64>(high + at);
    let rest = load<u64>(ALIVE + at) & (lowBits | highBits);
    while (rest != 0) {
      const bit = ctz(rest);
      const tier = ((lowBits >> bit) & 1) + (((highBits >> bit) & 1) << 1);
      const counts = tierBlocksAt((word << 6) + <u32>bit);
      store<u64>(counts, load<u64>(counts) + (blocks << (tier * COUNT_BITS)));
      rest &= rest - 1;
    }
  }
}

/** Slots of a word from which on their matches are written four at a time. */
const MANY: u32 = 12;

/** Writes a match of `depth` blocks for many slots of a word. */
function noteMany(word: u32, dropped: u64, depth: u32): void {
  const bits = i32x4(1, 2, 4, 8);
  const four = i32x4.splat(<i32>depth);
  let at = MATCH + ((<usize>word) << 8);
  for (let rest = dropped; rest != 0; rest >>= 4, at += 16) {
    const lanes = i32x4.eq(v128.and(i32x4.splat(<i32>(rest & 15)), bits), bits);
    v128.store(at, v128.bitselect(four, v128.load(at), lanes));
  }
}

function noteDropped(word: u32, dropped: u64, depth: u32): void {
  if (popcnt<u64>(dropped) >= MANY) return noteMany(word, dropped, depth);
  while (dropped != 0) {
    store<u32>(MATCH + ((<usize>((word << 6) + <u32>ctz(dropped))) << 2), depth);
    dropped &= dropped - 1;
  }
}

/** Only the endpoints of `set` hold the block at `depth`; the others' matches end there. */
function narrow(set: u32, depth: u32): void {
  if (set == lastSet) return;
  if (lowerBlocks != 0) noteLower();
  lastSet = set;
  const bits = setBits(set);
  const pairs = SET_WORDS & ~1;
  let any = pairs != 0 && narrowPairs(bits, pairs, depth);
  if (pairs != SET_WORDS) {
    const at = (<usize>pairs) << 3;
    const holders = load<u64>(bits + at);
    const alive = load<u64>(ALIVE + at);
    const left = begun ? alive & holders : holders;
    if (begun && left != alive) {
      noteDropped(pairs, alive & ~holders, depth);
      longest = depth;
    }
    store<u64>(ALIVE + at, left);
    any = any || left != 0;
  }
  begun = true;
  anyAlive = any;
}

/** Narrows the first words of ALIVE, two at a time. @returns whether an endpoint of them is left */
function narrowPairs(bits: usize, words: u32, depth: u32): bool {
  let any = i64x2.splat(0);
  for (let word: u32 = 0; word < words; word += 2) {
    const at = (<usize>word) << 3;
    let left = v128.load(bits + at);
    if (begun) {
      const alive = v128.load(ALIVE + at);
      const dropped = v128.andnot(alive, left);
      left = v128.and(alive, left);
      if (v128.any_true(dropped)) {
        noteDropped(word, i64x2.extract_lane(dropped, 0), depth);
        noteDropped(word + 1, i64x2.extract_lane(dropped, 1), depth);
        longest = depth;
      }
    }
    v128.store(ALIVE + at, left);
    any = v128.or(any, left);
  }
  return v128.any_true(any);
}

/** Narrows by the extents over the first `blocks` blocks of a segment at `depth`. */
function narrowByExtents(at: Segment, depth: u32, blocks: u32): void {
  const extents = min(<u32>at.extents, SEGMENT_BLOCKS);
  // A writer may be at work here: what is read may be nonsense, but must not lead out of the memory.
  if (extents > INLINE_EXTENTS && at.extent0 > OVERFLOW_COUNT) return narrow(0, depth);
  const list = extents <= INLINE_EXTENTS ? inlineExtents(at) : overflowList(at.extent0);
  let from: u32 = 0;
  for (let i: u32 = 0; i < extents; i++) {
    const extent = extentAt(list, i);
    const set = extentSet(extent) < SET_COUNT ? extentSet(extent) : 0;
    narrow(set, depth + from);
    const to = extentEnd(extent);
    if (setTiered(set)) lowerBlocks += min(to, blocks) - min(from, blocks);
    from = to;
    if (from >= blocks || !anyAlive) return;
  }
  narrow(0, depth + from);
}

function guessOf(depth: u32): usize {
  return GUESSES + ((<usize>((depth >> SEGMENT_SHIFT) & (AHEAD - 1))) << 2);
}

/** Finds where the next windows' heads probably stand, and touches their headers. */
function lookAhead(from: usize, depth: u32, blocks: u32): void {
  for (let i: u32 = 0; i < AHEAD && depth < blocks; i++) {
    const location = tableGuess(load<u64>(from + ((<usize>depth) << 3)));
    store<u32>(guessOf(depth), location);
    touched ^= segmentAt(location >> SEGMENT_SHIFT).version;
    depth += SEGMENT_BLOCKS;
  }
}

/** Location of the block with a hash: the one guessed ahead when it proves right. */
function locate(hash: u64, depth: u32, ahead: u32): u32 {
  if ((depth & SEGMENT_MASK) == 0 && depth < ahead) {
    const guess = load<u32>(guessOf(depth));
    if (guess != 0 && (guess & SEGMENT_MASK) == 0 && segmentAt(guess >> SEGMENT_SHIFT).first == hash) return guess;
  }
  return tableFind(hash);
}

/** Notes the segment's version. @returns false when it is changing right now */
function visit(segment: u32, at: Segment, depth: u32): bool {
  const version = at.seenVersion;
  const note = visitAt(visited);
  note.segment = segment;
  note.version = version;
  note.depth = depth;
  visited++;
  const stamp = STAMPS + ((<usize>segment) << 2);
  const now = indexHead().tick + 1;
  if (load<u32>(stamp) != now) store<u32>(stamp, now);
  return (version & 1) == 0;
}

/** Walks the chain and narrows ALIVE. @returns blocks walked while an endpoint held them */
function walk(from: usize, blocks: u32): u32 {
  let depth: u32 = 0;
  let parent: u32 = 0;
  let ahead: u32 = 0;
  while (depth < blocks) {
    if (depth >= ahead && (depth & SEGMENT_MASK) == 0 && blocks - depth > SEGMENT_BLOCKS) {
      lookAhead(from, depth, blocks);
      ahead = depth + AHEAD * SEGMENT_BLOCKS;
    }
    const hashes = from + ((<usize>depth) << 3);
    const hash = load<u64>(hashes);
    const location = locate(hash, depth, ahead);
    if (location == 0 || (location & SEGMENT_MASK) != 0) return depth;
    const segment = location >> SEGMENT_SHIFT;
    const at = segmentAt(segment);
    if (!visit(segment, at, depth)) return depth;
    if (at.first != hash || at.depth != depth || at.parent != parent) return depth;
    const count = min(min(<u32>at.length, SEGMENT_BLOCKS), blocks - depth);
    if (count == 0) return depth;
    const same = agree(at, 0, hashes, count);
    narrowByExtents(at, depth, same);
    if (!anyAlive) return depth;
    depth += same;
    parent = segment;
  }
  return depth;
}

/** @returns number of visited segments that stood still, from the first */
function settled(): u32 {
  // The reads above must come before those of the versions: an atomic addition to a word of this thread is a full
  // barrier on every machine (asc 0.28 cannot emit a fence).
  atomic.add<u32>(ALIVE + ((<usize>SET_WORDS) << 3), 1);
  for (let i: u32 = 0; i < visited; i++) {
    const note = visitAt(i);
    const version = note.version;
    if ((version & 1) != 0 || segmentAt(note.segment).seenVersion != version) return i;
  }
  return visited;
}

function matchOnce(from: usize, blocks: u32): void {
  memory.fill(MATCH, 0, (<usize>SLOT_LIMIT) << 2);
  visited = 0;
  lastSet = NO_SET;
  begun = false;
  anyAlive = false;
  longest = 0;
  lowerBlocks = 0;
  anyLower = false;
  const depth = walk(from, blocks);
  if (lowerBlocks != 0) noteLower();
  if (!anyAlive) return;
  longest = depth;
  for (let word: u32 = 0; word < SET_WORDS; word++) {
    noteDropped(word, load<u64>(ALIVE + ((<usize>word) << 3)), depth);
  }
}

/** Cuts every match at the depth of the first segment that did not stand still. */
function cutMatches(steady: u32): u32 {
  const depth = visitAt(steady).depth;
  let longest: u32 = 0;
  for (let slot: u32 = 0; slot < SLOT_LIMIT; slot++) {
    const at = MATCH + slotOffset(slot);
    const matched = min(load<u32>(at), depth);
    store<u32>(at, matched);
    longest = max(longest, matched);
  }
  return longest;
}

/** Looks up the first `blocks` hashes of HASHES, as prefixMatchAt. */
export function prefixMatch(blocks: u32): u32 {
  if (ASSERTIONS) assert(fitsChain(blocks), 'the blocks are those of one chain');
  return prefixMatchAt(HASHES, blocks);
}

/**
 * Looks up `blocks` hashes at an address; MATCH gets, for every slot, the blocks it holds without a gap from the first
 * one.
 * @returns the largest of them
 */
export function prefixMatchAt(hashes: usize, blocks: u32): u32 {
  if (ASSERTIONS) assert(isMapped(hashes, (<usize>min(blocks, CHAIN_LIMIT)) << 3), 'the hashes are in the memory');
  const whole = min(blocks, CHAIN_LIMIT);
  let steady: u32 = 0;
  for (let i: u32 = 0; i < TRIES; i++) {
    matchOnce(hashes, whole);
    steady = settled();
    if (ASSERTIONS) assert(longest <= whole, 'no more blocks match than there are');
    if (steady == visited) return longest;
    countShared(PREFIX_COUNTER_RETRIES);
  }
  countShared(PREFIX_COUNTER_GIVE_UPS);
  return cutMatches(steady);
}

/** Blocks at a place, of counts of all places. */
export function blocksAt(counts: u64, place: u32): u32 {
  return <u32>((counts >> (<u64>(place - PLACE_GPU) * COUNT_BITS)) & (((<u64>1) << COUNT_BITS) - 1));
}

/** Part of `blocks` that loading them from a tier costs, of what computing them costs. */
function tierPrice(counts: u64, place: u32, price: f32): f64 {
  return <f64>blocksAt(counts, place) * <f64>price;
}

/** Rounding of sums of prices, far below the price of one block. */
const ROUNDING: f64 = 1e-3;

/**
 * Makes each match of the last lookup the whole blocks on the GPU that would save as much as what the endpoint holds.
 * What was cut from a match since is taken to be blocks on the GPU: less than the truth, never more.
 */
export function weighMatches(used: u32): void {
  if (ASSERTIONS) assert(used <= SLOT_LIMIT, 'the slots are those of the pool');
  if (!anyLower) return;
  const head = indexHead();
  for (let slot: u32 = 0; slot < used; slot++) {
    const counts = load<u64>(tierBlocksAt(slot));
    if (counts == 0) continue;
    const at = MATCH + slotOffset(slot);
    const held = load<u32>(at);
    const below = blocksAt(counts, PLACE_HOST) + blocksAt(counts, PLACE_DISK) + blocksAt(counts, PLACE_REMOTE);
    store<u64>(tierBlocksAt(slot), counts | <u64>(held > below ? held - below : 0));
    const price =
      tierPrice(counts, PLACE_HOST, head.hostPrice) +
      tierPrice(counts, PLACE_DISK, head.diskPrice) +
      tierPrice(counts, PLACE_REMOTE, head.remotePrice);
    store<u32>(at, <u32>max<f64>(floor(<f64>held - price + ROUNDING), 0));
  }
}

/** Of the blocks of the last lookup, those that a slot holds at a place below the GPU. */
export function matchedBelow(slot: u32, place: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(place > PLACE_GPU && place <= PLACE_REMOTE, 'the place is below the GPU');
  return anyLower ? blocksAt(load<u64>(tierBlocksAt(slot)), place) : 0;
}

/**
 * Blocks of the last lookup that a slot holds at each place, 16 bits each from the GPU on (blocksAt), once they are
 * weighed; 0 = all are on the GPU.
 */
export function placesOf(slot: u32): u64 {
  return anyLower ? load<u64>(tierBlocksAt(slot)) : 0;
}

/** Forgets the last lookup, for a request of which nothing is looked up. */
export function forgetPlaces(): void {
  anyLower = false;
}

/**
 * Sets what loading a block from each tier costs beside computing it, 0 to 1: 0 = as one on the GPU, 1 = as none.
 */
export function prefixSetPrices(host: f32, disk: f32, remote: f32): void {
  if (ASSERTIONS) assert(isPrice(host) && isPrice(disk) && isPrice(remote), 'a price is from 0 to 1');
  const head = indexHead();
  head.hostPrice = host;
  head.diskPrice = disk;
  head.remotePrice = remote;
}

/**
 * Cost of bringing back what the GPU forgets, beside computing it: that of the nearest tier in which endpoints hold
 * blocks, 1 = there is none. Takes no lock.
 */
export function returnPrice(): f32 {
  const head = indexHead();
  if (head.tieredSets == 0) return 1;
  if ((head.places & (1 << PLACE_HOST)) != 0) return head.hostPrice;
  if ((head.places & (1 << PLACE_DISK)) != 0) return head.diskPrice;
  return head.remotePrice;
}

function isPrice(price: f32): bool {
  return price >= 0 && price <= 1;
}
