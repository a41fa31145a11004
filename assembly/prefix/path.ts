// The path of a chain through the segments: found, and made where it does not exist yet.
//
// Owns: the path part of REGION_PREFIX, one Step for every segment of the chain. Index lock held throughout.
import { count, PREFIX_COUNTER_CONFLICTS, PREFIX_COUNTER_REFUSED } from './counters';
import { makeRoom } from './evict';
import { indexHead } from './head';
import { PATH, SEGMENT_BLOCKS, SEGMENT_MASK, SEGMENT_SHIFT, STAMPS } from './layout';
import { Segment, segmentAt } from './segment';
import { append, createSegment, pin, unpin } from './segments';
import { tableFind } from './table';

/** The blocks [from, to) of one segment, which the chain uses. */
@unmanaged
export class Step {
  /** Number of the segment · any thread · index lock. */
  segment: u32;
  /** Position in the segment · any thread · index lock. */
  from: u32;
  /** Position in the segment · any thread · index lock. */
  to: u32;
  private unused: u32;
}

/** Steps of the path found or made last. */
export let steps: u32 = 0;

export function stepAt(step: u32): Step {
  return changetype<Step>(PATH + <usize>step * offsetof<Step>());
}

/** Notes that the segment is used now. */
export function touch(segment: u32): void {
  store<u32>(STAMPS + ((<usize>segment) << 2), indexHead().tick);
}

/** One more change: what is touched from now on is younger than all before. Lookups after it stamp the odd number. */
export function tick(): void {
  indexHead().tick += 2;
}

/** Lengthens the path by the first `at` blocks of a segment. */
export function addStep(segment: u32, at: u32): void {
  const step = stepAt(steps);
  step.segment = segment;
  step.from = at;
  step.to = at;
  touch(segment);
  steps++;
}

/** Returns the number of leading hashes, of `blocks`, that are equal at both addresses. */
export function sameRun(a: usize, b: usize, blocks: u32): u32 {
  let i: u32 = 0;
  for (; i + 8 <= blocks; i += 8) {
    const x = a + ((<usize>i) << 3);
    const y = b + ((<usize>i) << 3);
    const one = v128.xor(v128.load(x), v128.load(y));
    const two = v128.xor(v128.load(x, 16), v128.load(y, 16));
    const three = v128.xor(v128.load(x, 32), v128.load(y, 32));
    const four = v128.xor(v128.load(x, 48), v128.load(y, 48));
    if (v128.any_true(v128.or(v128.or(one, two), v128.or(three, four)))) break;
  }
  while (i < blocks && load<u64>(a + ((<usize>i) << 3)) == load<u64>(b + ((<usize>i) << 3))) i++;
  return i;
}

/**
 * Number of the `blocks` hashes at `hashes` stand in a segment from `position` on. The hashes are chained, so when the
 * last one is the same all are, unless HEAD_VERIFY asks for every one.
 */
export function agree(at: Segment, position: u32, hashes: usize, blocks: u32): u32 {
  const content = at.content + ((<usize>position) << 3);
  const last = (<usize>(blocks - 1)) << 3;
  if (indexHead().verify == 0) {
    // The header has the last hash of all, on the line that a lookup reads anyway.
    const stored = position + blocks == at.length ? at.last : load<u64>(content + last);
    if (stored == load<u64>(hashes + last)) return blocks;
  }
  return sameRun(content, hashes, blocks);
}

/** Begins at the root (segment 0) or behind the first `position` blocks of a segment. */
export function beginPath(segment: u32, position: u32): void {
  steps = 0;
  if (segment != 0) addStep(segment, position);
}

/** Depth of the block behind the path. */
function pathDepth(): u32 {
  if (steps == 0) return 0;
  const last = steps - 1;
  return <u32>segmentAt(stepAt(last).segment).depth + stepAt(last).to;
}

/** Follows the content behind the last step. @returns blocks followed */
function followContent(hashes: usize, blocks: u32): u32 {
  if (steps == 0) return 0;
  const last = steps - 1;
  const at = segmentAt(stepAt(last).segment);
  const position = stepAt(last).to;
  const left = <u32>at.length - position;
  if (left == 0 || blocks == 0) return 0;
  const same = agree(at, position, hashes, min(left, blocks));
  stepAt(last).to = position + same;
  return same;
}

/** Steps into the child that begins with `hash`. @returns 0 stepped, 1 there is none, 2 the hash stands elsewhere */
function stepInto(hash: u64): u32 {
  const location = tableFind(hash);
  if (location == 0) return 1;
  const child = location >> SEGMENT_SHIFT;
  const at = segmentAt(child);
  const parent = steps == 0 ? 0 : stepAt(steps - 1).segment;
  if ((location & SEGMENT_MASK) != 0 || at.parent != parent || at.depth != pathDepth()) return 2;
  addStep(child, 0);
  return 0;
}

/**
 * Follows what exists of a chain.
 * @returns blocks found; `conflict` says whether the next one's hash stands elsewhere
 */
export function followPath(hashes: usize, blocks: u32): u32 {
  conflict = false;
  let found = followContent(hashes, blocks);
  while (found < blocks) {
    const missing = stepInto(load<u64>(hashes + ((<usize>found) << 3)));
    if (missing != 0) {
      conflict = missing == 2;
      break;
    }
    found += followContent(hashes + ((<usize>found) << 3), blocks - found);
  }
  return found;
}

/** Two different chains claim one hash: happens with short hashes only; the later one is not stored from there on. */
export let conflict: bool = false;

/** Makes the next piece of a chain behind the path: at most what fits into one segment. @returns blocks made */
function extendOnce(hashes: usize, blocks: u32): u32 {
  const depth = pathDepth();
  const window = SEGMENT_BLOCKS - (depth & SEGMENT_MASK);
  const parent = steps == 0 ? 0 : stepAt(steps - 1).segment;
  const fork = steps == 0 ? 0 : stepAt(steps - 1).to;
  const above = segmentAt(parent);
  // At a window's beginning, behind a whole window or the root, a new segment is due.
  const appends = parent != 0 && window != SEGMENT_BLOCKS && fork == above.length;
  if (parent != 0) pin(parent);
  const room = makeRoom(min(window, blocks), !appends);
  if (parent != 0) unpin(parent);
  if (room == 0) {
    count(PREFIX_COUNTER_REFUSED, blocks);
    return 0;
  }
  if (appends) {
    append(parent, hashes, room);
    touch(parent);
    stepAt(steps - 1).to = fork + room;
    return room;
  }
  const child = createSegment(parent, fork, depth, hashes, room);
  if (child == 0) {
    count(PREFIX_COUNTER_CONFLICTS, blocks);
    return 0;
  }
  addStep(child, 0);
  stepAt(steps - 1).to = room;
  return room;
}

/**
 * Makes the rest of a chain whose first `found` blocks the path has.
 * @returns blocks of the chain that exist now
 */
export function extendPath(hashes: usize, found: u32, blocks: u32): u32 {
  if (conflict) {
    count(PREFIX_COUNTER_CONFLICTS, blocks - found);
    return found;
  }
  while (found < blocks) {
    const more = extendOnce(hashes + ((<usize>found) << 3), blocks - found);
    if (more == 0) break;
    found += more;
  }
  return found;
}
