// Load of other replicas, as the control thread learns it from their messages.
//
// Owns nothing: the columns are those of load/peers.ts and the REMOTE columns of the gate. Takes the commit lock.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_ACTIVE_BLOCKS, COLUMN_GENERATION, COLUMN_PEER_PREFILL, COLUMN_PEER_REQUESTS } from '../endpoints';
import { setPeers } from '../load/peers';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { SLOTS } from '../memory';
import { isSlot } from '../preconditions';
import { gateOpened } from './capacity-gate';
import { gateHead, ROOM_KV_NOW, ROOM_REMOTE_COUNT, ROOM_REMOTE_KV, ROOM_REMOTE_TOKENS } from './layout';
import { lowestPendingCount } from './learn';
import * as room from './room';

/**
 * Wait for the lock, in milliseconds. Short: while the control thread waits, nothing repairs a lock of a dead thread.
 */
const PATIENCE: u32 = 20;

/**
 * Replaces the load of all other replicas on a slot.
 * @param pending their requests without a first token
 * @param held tokens of their requests in the KV cache
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function peerLoad(
  slot: u32,
  generation: u32,
  requests: u32,
  tokens: u32,
  prefill: u32,
  prompt: u32,
  output: u32,
  pending: u32,
  held: u32,
): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(pending <= requests, 'those that are pending are among the requests');
  if (slot >= SLOTS) return 0;
  if (!lockAcquire(COMMIT_LOCK, PATIENCE)) return 1;
  let less = false;
  if (column.u32(COLUMN_GENERATION, slot) == generation) {
    less = requests < column.u32(COLUMN_PEER_REQUESTS, slot) || prefill < column.u32(COLUMN_PEER_PREFILL, slot);
    setPeers(slot, requests, tokens, prefill, prompt, output);
    // INFLIGHT already includes the requests; the gate adds these columns to those of its own charges.
    room.setU32(ROOM_REMOTE_TOKENS, slot, prefill);
    room.setU32(ROOM_REMOTE_COUNT, slot, pending);
    room.setU32(ROOM_REMOTE_KV, slot, held);
  }
  lockRelease(COMMIT_LOCK);
  if (less) gateOpened();
  return 0;
}

/** Own requests without a first token on a slot; 0 without a gate. Takes no lock. */
export function pendingRequests(slot: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  return lowestPendingCount(slot);
}

/** Tokens that own requests hold in the KV cache of a slot; 0 without a gate. Takes no lock. */
export function heldTokens(slot: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  return column.u32(COLUMN_ACTIVE_BLOCKS, slot) * gateHead().blockTokens + room.u32(ROOM_KV_NOW, slot);
}
