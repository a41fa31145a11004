// Ring of placed prompts: the prompts that this thread has placed, with their endpoints, for the other replicas of the
// pool.
//
// Owns: REGION_CHANGES, one ring per thread. Its thread writes `written`, `lost` and the records; the control thread
// writes `read`. No lock: a record is complete before `written` moves, and its space is free once `read` has passed it.
// Both count bytes modulo 2^32. A record without room is counted as lost; the control thread then tells its peers of a
// gap. Without replication the region is empty and the thread's CHANGES is 0.
//
// A record is whole 8-byte words: a ChangeHead, then the hashes of the blocks, then the hash of the tail if there is
// one. A record that would cross the end of the ring begins at its start; CHANGE_SKIP fills the rest.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_GENERATION, COLUMN_PREFIX_CAPACITY } from '../endpoints';
import { CHANGE_BYTES, CHANGE_HEAD_BYTES, CHANGES, HASHES } from '../memory';

/** Head of a ring. The fields of each of the two threads have cache lines of their own. */
@unmanaged
class ChangeRing {
  /** Bytes ever written · its thread, atomically · none. */
  written: u32;
  /** Records that found no space · its thread, atomically · none. */
  lost: u32;
  private gap0: u64;
  private gap1: v128;
  private gap2: v128;
  private gap3: v128;
  /** Bytes ever read · control thread, atomically · none. */
  read: u32;
}

/** One placed prompt. */
@unmanaged
class ChangeHead {
  /** Endpoint slot, with the low 18 bits of its generation above bit 14 · its thread · none. */
  slot: u32;
  /** Blocks, with CHANGE_PARENT and CHANGE_TAIL in the high bits · its thread · none. */
  blocks: u32;
  /** Chain hash of the block before, used with CHANGE_PARENT · its thread · none. */
  parent: u64;
}

export const CHANGE_WRITTEN: usize = offsetof<ChangeRing>('written');
export const CHANGE_LOST: usize = offsetof<ChangeRing>('lost');
export const CHANGE_READ: usize = offsetof<ChangeRing>('read');
export const CHANGE_SLOT: usize = offsetof<ChangeHead>('slot');
export const CHANGE_BLOCKS: usize = offsetof<ChangeHead>('blocks');
export const CHANGE_PARENT_HASH: usize = offsetof<ChangeHead>('parent');
export const CHANGE_RECORD_BYTES: usize = offsetof<ChangeHead>();
/** Bit from which on the generation stands above the slot. */
export const CHANGE_GENERATION_SHIFT: u32 = 14;
/** Bits of the second word of a record. */
export const CHANGE_PARENT: u32 = 0x40000000;
export const CHANGE_TAIL: u32 = 0x20000000;
/** First word of the rest of the ring that no record uses. */
export const CHANGE_SKIP: u32 = 0xffffffff;

/**
 * Place of a record of `bytes` bytes, 0 = there is no space. Sets `taken` to these bytes and those skipped before them.
 */
function place(ring: ChangeRing, bytes: u32): usize {
  const written = ring.written;
  const at = written & (CHANGE_BYTES - 1);
  const left = CHANGE_BYTES - at;
  const skipped = left < bytes ? left : 0;
  const used = written - atomic.load<u32>(changetype<usize>(ring), CHANGE_READ);
  if (<u64>used + skipped + bytes > CHANGE_BYTES) return 0;
  const data = CHANGES + CHANGE_HEAD_BYTES;
  if (skipped != 0) store<u32>(data + at, CHANGE_SKIP);
  taken = skipped + bytes;
  return skipped != 0 ? data : data + at;
}

let taken: u32 = 0;

/**
 * Notes that the prompt in HASHES was placed on a slot. Only what is new to the slot is written; of a prompt that it
 * holds already the last block, so that peers see the use.
 * @param blocks whole blocks that were stored, 0 = none: the record only counts the request
 * @param fresh blocks of them that were new to the slot
 * @param tail whether the hash behind the blocks is that of a tail
 */
export function changeNote(slot: u32, blocks: u32, fresh: u32, tail: bool): void {
  const ring = changetype<ChangeRing>(CHANGES);
  const capacity = column.u32(COLUMN_PREFIX_CAPACITY, slot);
  const whole = capacity == 0 ? blocks : min(blocks, capacity);
  const count = min(whole, max(fresh, 1));
  const from = whole - count;
  const hashes = (<usize>count) << 3;
  const at = place(ring, <u32>(offsetof<ChangeHead>() + hashes + ((<usize>tail) << 3)));
  if (at == 0) {
    atomic.store<u32>(CHANGES, ring.lost + 1, CHANGE_LOST);
    return;
  }
  const head = changetype<ChangeHead>(at);
  head.slot = slot | (column.u32(COLUMN_GENERATION, slot) << CHANGE_GENERATION_SHIFT);
  head.blocks = count | (from != 0 ? CHANGE_PARENT : 0) | (tail ? CHANGE_TAIL : 0);
  head.parent = from == 0 ? 0 : load<u64>(HASHES + ((<usize>(from - 1)) << 3));
  const content = at + offsetof<ChangeHead>();
  memory.copy(content, HASHES + ((<usize>from) << 3), hashes);
  if (tail) store<u64>(content + hashes, load<u64>(HASHES + ((<usize>blocks) << 3)));
  atomic.store<u32>(CHANGES, ring.written + taken, CHANGE_WRITTEN);
  if (ASSERTIONS)
    assert(ring.written - atomic.load<u32>(CHANGES, CHANGE_READ) <= CHANGE_BYTES, 'a ring holds what was noted in it');
}
