// The check of the capacity gate: its columns against the charges of the ledger, for tests and the debug core.
//
// Owns nothing. Sums columns of REGION_GATE again in place, with the commit lock held or no other thread at work.
import { sumPendingAgain } from './capacity-gate';
import { roomSum } from './charges';
import { gateHead, gateOn, ROOM_KV_NOW, ROOM_PENDING, ROOM_PENDING_COUNT, ROOM_UNANSWERED } from './layout';

/**
 * Checks that the columns equal the charges of the live entries and that the waiting counts equal the wait slots.
 * Commit lock held, or no other thread at work.
 * @returns 0, or the first thing that does not add up: 1 pending tokens, 2 pending requests, 3 tokens in the cache,
 * 4 unanswered requests
 */
export function gateCheck(): u32 {
  if (!gateOn()) return 0;
  const bands = gateHead().bands;
  let tokens: u64 = 0;
  let requests: u64 = 0;
  let held: u64 = 0;
  const lowest = bands == 0 ? 0 : bands - 1;
  const tokensBefore = roomSum(ROOM_PENDING + lowest);
  const requestsBefore = roomSum(ROOM_PENDING_COUNT + lowest);
  const heldBefore = roomSum(ROOM_KV_NOW);
  const unansweredBefore = roomSum(ROOM_UNANSWERED);
  sumPendingAgain();
  tokens = roomSum(ROOM_PENDING + lowest);
  requests = roomSum(ROOM_PENDING_COUNT + lowest);
  held = roomSum(ROOM_KV_NOW);
  if (tokens != tokensBefore) return 1;
  if (requests != requestsBefore) return 2;
  if (held != heldBefore) return 3;
  return roomSum(ROOM_UNANSWERED) == unansweredBefore ? 0 : 4;
}
