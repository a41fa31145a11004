// Tails: the partial last blocks of prompts, which no other block can follow.
//
// Owns: the tails and tail-epoch parts of REGION_PREFIX. Written under the index lock, read by anyone. A bucket of 128
// bytes has eight entries of two words, `hash ^ data` and `data`: a reader that comes between two writes gets a pair
// that does not give the hash it looks for (Hyatt, "A lock-less transposition table implementation"), so it may miss an
// entry but never believe a wrong one. The table forgets its oldest entries when a bucket is full. data: slot (14 bits)
// · epoch of the slot's clearing (17 bits) · generation of the slot (32 bits) · 1

import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { COLUMN_GENERATION } from '../endpoints';
import { INDEX_LOCK, lockHeld } from '../lock';
import { MATCH } from '../memory';
import { fitsChain, isMapped, isSlot } from '../preconditions';
import { count, PREFIX_COUNTER_TAILS } from './counters';
import { SLOT_LIMIT, TAIL_BUCKETS, TAIL_EPOCHS, TAILS } from './layout';

/** A tail that an endpoint holds. */
@unmanaged
class Tail {
  /** Chain hash, exclusive or with `data` · any thread · index lock. */
  check: u64;
  /** Slot, epoch and generation, 0 = free (dataOf) · any thread · index lock. */
  data: u64;
}

const ENTRIES: u32 = 8;
const GOLDEN: u64 = 0x9e3779b97f4a7c15;
const SLOT_BITS: u32 = 14;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;
const EPOCH_MASK: u64 = 0x1ffff;

function bucketOf(hash: u64): usize {
  const mixed = hash * GOLDEN;
  return TAILS + ((<usize>(((mixed >> 32) * <u64>TAIL_BUCKETS) >> 32)) << 7);
}

function tailAt(bucket: usize, i: u32): Tail {
  return changetype<Tail>(bucket + <usize>i * offsetof<Tail>());
}

function dataOf(slot: u32): u64 {
  const epoch = <u64>load<u32>(TAIL_EPOCHS + slotOffset(slot)) & EPOCH_MASK;
  const generation = <u64>column.u32(COLUMN_GENERATION, slot);
  return <u64>slot | (epoch << SLOT_BITS) | (generation << 31) | ((<u64>1) << 63);
}

/** Believes that `slot` holds the tail whose hash stands at `hashPointer`. */
export function tailInsertLocked(slot: u32, hashPointer: usize): void {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'the tails change under the index lock');
  if (ASSERTIONS) assert(isMapped(hashPointer, 8), 'the hash is in the memory');
  if (slot >= SLOT_LIMIT) return;
  const hash = load<u64>(hashPointer);
  const data = dataOf(slot);
  const bucket = bucketOf(hash);
  let last: u32 = ENTRIES - 1;
  for (let i: u32 = 0; i < ENTRIES; i++) {
    const tail = tailAt(bucket, i);
    const known = tail.data;
    if (known == data && (tail.check ^ known) == hash) {
      if (i == 0) return;
      last = i;
      break;
    }
    if (known == 0) {
      last = i;
      break;
    }
  }
  const first = tailAt(bucket, 0);
  memory.copy(changetype<usize>(tailAt(bucket, 1)), bucket, <usize>last * offsetof<Tail>());
  first.data = data;
  first.check = hash ^ data;
  count(PREFIX_COUNTER_TAILS, 1);
}

/** One block more for every slot that matches all of the prompt's `wholeBlocks` and holds its tail. */
export function tailMatch(hashPointer: usize, wholeBlocks: u32): void {
  if (ASSERTIONS) assert(isMapped(hashPointer, 8), 'the hash is in the memory');
  if (ASSERTIONS) assert(fitsChain(wholeBlocks), 'the blocks are those of one chain');
  const hash = load<u64>(hashPointer);
  const bucket = bucketOf(hash);
  for (let i: u32 = 0; i < ENTRIES; i++) {
    const tail = tailAt(bucket, i);
    const data = tail.data;
    if (data == 0 || (tail.check ^ data) != hash) continue;
    const slot = <u32>(data & SLOT_MASK);
    const matched = MATCH + slotOffset(slot);
    if (slot >= SLOT_LIMIT || data != dataOf(slot) || load<u32>(matched) != wholeBlocks) continue;
    store<u32>(matched, wholeBlocks + 1);
  }
}

/** Every tail of a slot is forgotten, without a look at the table. */
export function forgetTails(slot: u32): void {
  const at = TAIL_EPOCHS + slotOffset(slot);
  store<u32>(at, load<u32>(at) + 1);
}
