// The prefix index for callers that do not hold the index lock: each takes it, waiting at most PATIENCE milliseconds.
//
// Owns nothing.
import { INDEX_LOCK, lockAcquire, lockRelease } from '../lock';
import {
  prefixInsertLocked,
  prefixRemoveAt,
  prefixRemoveEndpointLocked,
  prefixRemoveLocked,
  prefixSetCapacityLocked,
  prefixStoreAt,
  prefixStoreLocked,
} from './store';

const LOCK: usize = INDEX_LOCK;
const PATIENCE: u32 = 100;
/** In the second word of an event's record. */
export const EVENT_REMOVE: u32 = 0x80000000;
export const EVENT_PARENT: u32 = 0x40000000;
const EVENT_BLOCKS: u32 = 0x3fffffff;
/** The lock could not be had in time; nothing was changed. */
export const PREFIX_BUSY: i32 = -1;

/** As prefixInsertLocked. @returns blocks newly stored, or PREFIX_BUSY */
export function prefixInsert(slot: u32, blocks: u32): i32 {
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const stored = prefixInsertLocked(slot, blocks);
  lockRelease(LOCK);
  return stored;
}

/** As prefixStoreLocked. @returns blocks newly stored, or PREFIX_BUSY */
export function prefixStore(slot: u32, hasParent: u32, parentPointer: usize, blocks: u32): i32 {
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const stored = prefixStoreLocked(slot, hasParent, parentPointer, blocks);
  lockRelease(LOCK);
  return stored;
}

/** As prefixRemoveLocked. @returns blocks removed, or PREFIX_BUSY */
export function prefixRemove(slot: u32, blocks: u32): i32 {
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const removed = prefixRemoveLocked(slot, blocks);
  lockRelease(LOCK);
  return removed;
}

/** As prefixRemoveEndpointLocked. @returns blocks that it held, or PREFIX_BUSY */
export function prefixRemoveEndpoint(slot: u32): i32 {
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const removed = prefixRemoveEndpointLocked(slot);
  lockRelease(LOCK);
  return removed;
}

/**
 * Apply a log of engine events under one hold of the lock. Records of whole 8-byte words: u32 slot · u32 blocks, with
 * EVENT_REMOVE or EVENT_PARENT in its high bits · u64 parent (used with EVENT_PARENT) · the hashes.
 * @returns records applied (all of them that are whole), or PREFIX_BUSY
 */
export function prefixApply(log: usize, bytes: u32): i32 {
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  const end = log + bytes;
  let at = log;
  let records = 0;
  while (end - at >= 16) {
    const slot = load<u32>(at);
    const word = load<u32>(at, 4);
    const blocks = word & EVENT_BLOCKS;
    if ((end - at - 16) >> 3 < <usize>blocks) break;
    if ((word & EVENT_REMOVE) != 0) prefixRemoveAt(slot, at + 16, blocks);
    else prefixStoreAt(slot, word & EVENT_PARENT, at + 8, at + 16, blocks);
    at += 16 + ((<usize>blocks) << 3);
    records++;
  }
  lockRelease(LOCK);
  return records;
}

/** As prefixSetCapacityLocked. @returns 0, or PREFIX_BUSY */
export function prefixSetCapacity(slot: u32, blocks: u32): i32 {
  if (!lockAcquire(LOCK, PATIENCE)) return PREFIX_BUSY;
  prefixSetCapacityLocked(slot, blocks);
  lockRelease(LOCK);
  return 0;
}
