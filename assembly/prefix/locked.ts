// The prefix index for callers that do not hold the index lock: each takes it, waiting at most PATIENCE milliseconds.
//
// Owns nothing.
import { ASSERTIONS } from '../assertions';
import { INDEX_LOCK, lockAcquire, lockRelease } from '../lock';
import { fitsChain, isMapped, isSlot, isTruth } from '../preconditions';
import { LOSS_GONE, LOSS_TOLD, LOSS_UNCONFIRMED } from './losses';
import { PLACE_GPU, PLACE_REMOTE } from './sets';
import {
  prefixClearLocked,
  prefixHeld,
  prefixInsertLocked,
  prefixMoveLocked,
  prefixRemoveAt,
  prefixRemoveEndpointLocked,
  prefixRemoveLocked,
  prefixSetCapacityLocked,
  prefixStoreAt,
  prefixStoreLocked,
} from './store';
import { tailInsertLocked } from './tails';

const LOCK: usize = INDEX_LOCK;
const PATIENCE: u32 = 100;
/** In the second word of an event's record. */
export const EVENT_REMOVE: u32 = 0x80000000;
export const EVENT_PARENT: u32 = 0x40000000;
/** The hash of a tail follows those of the blocks. */
export const EVENT_TAIL: u32 = 0x20000000;
/** Place of the blocks of a record without EVENT_REMOVE: PLACE_* - PLACE_GPU, in two bits. */
export const EVENT_PLACE_SHIFT: u32 = 27;
const EVENT_PLACE_MASK: u32 = 3;
const EVENT_COUNT: u32 = 0x7ffffff;

/** Head of one record of an event log, whole 8-byte words; the hashes follow. */
@unmanaged
class EventHead {
  /** Endpoint slot · host · none, in the caller's own input. */
  slot: u32;
  /** Blocks, with EVENT_REMOVE, EVENT_PARENT, EVENT_TAIL and the place in the high bits · host · none. */
  blocks: u32;
  /** Chain hash of the block before, used with EVENT_PARENT · host · none. */
  parent: u64;
}

export const EVENT_SLOT: usize = offsetof<EventHead>('slot');
export const EVENT_BLOCKS: usize = offsetof<EventHead>('blocks');
export const EVENT_PARENT_HASH: usize = offsetof<EventHead>('parent');
export const EVENT_HEAD_BYTES: usize = offsetof<EventHead>();

/** The lock could not be had in time; nothing was changed. */
export const PREFIX_BUSY: i32 = -1;

function isPlace(place: u32): bool {
  return place >= PLACE_GPU && place <= PLACE_REMOTE;
}

/** As prefixInsertLocked. @returns blocks newly stored, or PREFIX_BUSY */
export function prefixInsert(slot: u32, blocks: u32): i32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(fitsChain(blocks), 'the blocks are those of one chain');
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const stored = prefixInsertLocked(slot, blocks);
  lockRelease(LOCK);
  return stored;
}

/** As prefixStoreLocked. @returns blocks newly stored, or PREFIX_BUSY */
export function prefixStore(slot: u32, hasParent: u32, parentPointer: usize, blocks: u32, place: u32): i32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(isTruth(hasParent), '`hasParent` is 0 or 1');
  if (ASSERTIONS) assert(isMapped(parentPointer, 8), 'the hash of the parent is in the memory');
  if (ASSERTIONS) assert(fitsChain(blocks), 'the blocks are those of one chain');
  if (ASSERTIONS) assert(isPlace(place), 'the place is one that has blocks');
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const stored = prefixStoreLocked(slot, hasParent, parentPointer, blocks, place);
  lockRelease(LOCK);
  return stored;
}

/** As prefixMoveLocked. @returns 0, or PREFIX_BUSY */
export function prefixMove(slot: u32, blocks: u32, place: u32): i32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(fitsChain(blocks), 'the blocks are those of one chain');
  if (ASSERTIONS) assert(isPlace(place), 'the place is one that has blocks');
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  prefixMoveLocked(slot, blocks, place);
  lockRelease(LOCK);
  return 0;
}

/** As prefixRemoveLocked. @returns blocks removed, or PREFIX_BUSY */
export function prefixRemove(slot: u32, blocks: u32, lost: u32): i32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(fitsChain(blocks), 'the blocks are those of one chain');
  if (ASSERTIONS) assert(lost <= LOSS_UNCONFIRMED, 'the reason of the loss is a known one');
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const removed = prefixRemoveLocked(slot, blocks, lost);
  if (ASSERTIONS) assert(removed <= blocks, 'no more blocks are removed than were named');
  lockRelease(LOCK);
  return removed;
}

/** As prefixRemoveEndpointLocked, for an endpoint that left the pool. @returns blocks that it held, or PREFIX_BUSY */
export function prefixRemoveEndpoint(slot: u32): i32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const removed = prefixRemoveEndpointLocked(slot, LOSS_GONE);
  if (ASSERTIONS) assert(prefixHeld(slot) == 0, 'a removed endpoint holds no block');
  lockRelease(LOCK);
  return removed;
}

/** As prefixClearLocked. @returns blocks that it held, or PREFIX_BUSY */
export function prefixClear(slot: u32, lost: u32): i32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(lost <= LOSS_UNCONFIRMED, 'the reason of the loss is a known one');
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const removed = prefixClearLocked(slot, lost);
  if (ASSERTIONS) assert(prefixHeld(slot) == 0, 'a cleared endpoint holds no block');
  lockRelease(LOCK);
  return removed;
}

function storeEvent(event: EventHead, hashes: usize, blocks: u32): void {
  const parent = changetype<usize>(event) + offsetof<EventHead>('parent');
  const place = PLACE_GPU + ((event.blocks >> EVENT_PLACE_SHIFT) & EVENT_PLACE_MASK);
  prefixStoreAt(event.slot, event.blocks & EVENT_PARENT, parent, hashes, blocks, place);
}

/**
 * Applies a log of events, of engines or of other replicas, under one hold of the lock. Each record is an EventHead and
 * its hashes.
 * @returns records applied (all of them that are whole), or PREFIX_BUSY
 */
export function prefixApply(log: usize, bytes: u32): i32 {
  if (ASSERTIONS) assert(isMapped(log, bytes), 'the log is in the memory');
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const end = log + bytes;
  let at = log;
  let records = 0;
  while (end - at >= offsetof<EventHead>()) {
    const event = changetype<EventHead>(at);
    const hashes = at + offsetof<EventHead>();
    const blocks = event.blocks & EVENT_COUNT;
    const tail = (event.blocks & EVENT_TAIL) != 0;
    if ((end - hashes) >> 3 < <usize>blocks + <usize>tail) break;
    if ((event.blocks & EVENT_REMOVE) != 0) prefixRemoveAt(event.slot, hashes, blocks, LOSS_TOLD);
    else storeEvent(event, hashes, blocks);
    at = hashes + ((<usize>blocks) << 3);
    if (tail) {
      tailInsertLocked(event.slot, at);
      at += sizeof<u64>();
    }
    records++;
  }
  if (ASSERTIONS) assert(at <= end, 'the records that were applied are whole');
  lockRelease(LOCK);
  return records;
}

/** As prefixSetCapacityLocked. @returns 0, or PREFIX_BUSY */
export function prefixSetCapacity(slot: u32, blocks: u32): i32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  prefixSetCapacityLocked(slot, blocks);
  if (ASSERTIONS) assert(blocks == 0 || prefixHeld(slot) <= blocks, 'an endpoint holds no more than its capacity');
  lockRelease(LOCK);
  return 0;
}
