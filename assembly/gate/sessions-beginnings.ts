// Beginnings that the prompt of a decision shares with sessions: what endpoints hold of it, and what counts there.
//
// Owns: the ring of shared lengths in the head of REGION_SESSIONS. Commit lock held throughout.
import { slotOffset } from '../columns/column';
import { MATCH } from '../memory';
import { request } from '../request-area';
import { sessionNest, sessionShare } from './sessions';
import {
  hasTurn,
  SESSIONS_REWRITTEN,
  SHARED_LENGTHS,
  sessionAt,
  sessionsCount,
  sessionsHead,
  sharedLength,
} from './sessions-layout';
import { countedPrefix } from './sessions-prefixes';
import { BLOCKS_MIN, hashAt, nameHash, soughtBlocks, soughtSession } from './sessions-sought';

/**
 * Hash of the end of the longest beginning of the prompt that sessions on some candidate share, 0 = none.
 * @param from session that the prompt goes on with or from, 0 = none
 */
export function countedBeginning(used: u32, from: u32): u64 {
  let blocks: u32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) blocks = max(blocks, countedHere(slot));
  if (from != 0 && soughtBlocks > blocks && sessionAt(from).prefix == hashAt(soughtBlocks - 1)) blocks = soughtBlocks;
  return blocks == 0 ? 0 : hashAt(blocks - 1);
}

/**
 * Blocks of a new session's prompt that others have too: those that the endpoint holds already. A beginning that is
 * nearly as long as one that was shared before is that one: what both have behind it is chance.
 */
export function sharedBlocks(slot: u32): u32 {
  const held = heldBlocks(slot);
  if (held < BLOCKS_MIN) return 0;
  let best: u32 = 0;
  for (let i: u32 = 0; i < SHARED_LENGTHS; i++) {
    const length = load<u32>(sharedLength(i));
    if (length <= held && length > best) best = length;
  }
  return best >= held - (held >> 2) ? best : held;
}

/** @param fork whether others go on from it now */
export function rememberLength(blocks: u32, slot: u32, fork: bool): void {
  for (let i: u32 = 0; i < SHARED_LENGTHS; i++) if (load<u32>(sharedLength(i)) == blocks) return;
  // A beginning that is most of the prompt, and that nobody was seen to share: a history that its client has changed.
  const isMost = !fork && nameHash() == 0 && blocks * 2 > request().blocks;
  if (isMost && countedPrefix(hashAt(blocks - 1), slot) == 0) sessionsCount(SESSIONS_REWRITTEN, 1);
  const head = sessionsHead();
  store<u32>(sharedLength(head.lengths), blocks);
  head.lengths = (head.lengths + 1) % SHARED_LENGTHS;
}

/** Blocks of the longest beginning of the prompt, of `blocksMax` at most, that other sessions on the endpoint share. */
export function countedBlocks(slot: u32, blocksMax: u32): u32 {
  let best: u32 = 0;
  for (let i: u32 = 0; i < SHARED_LENGTHS; i++) {
    const length = load<u32>(sharedLength(i));
    if (length > best && length <= blocksMax && countedPrefix(hashAt(length - 1), slot) != 0) best = length;
  }
  return best;
}

/** Blocks of the prompt that an endpoint holds. */
export function heldBlocks(slot: u32): u32 {
  return min(load<u32>(MATCH + slotOffset(slot)), request().blocks);
}

/** Whether the session that was found has a turn in flight on the endpoint, which holds what this prompt has of it. */
export function forksOn(slot: u32): bool {
  const fork = soughtSession();
  return fork != 0 && hasTurn(sessionAt(fork)) && sessionAt(fork).home == slot && heldBlocks(slot) >= soughtBlocks;
}

/** Others go on from the session that was found: what the prompt begins with of it is shared. */
export function shareBeginning(entry: u32): void {
  sessionShare(entry, soughtBlocks * request().blockTokens, hashAt(soughtBlocks - 1));
  rememberLength(soughtBlocks, sessionAt(entry).home, true);
}

/** Blocks of the longest beginning of the prompt that an endpoint holds and its sessions share. */
function countedHere(slot: u32): u32 {
  const held = heldBlocks(slot);
  if (held < BLOCKS_MIN) return 0;
  return countedPrefix(hashAt(held - 1), slot) != 0 ? held : countedBlocks(slot, held);
}

/** Blocks of the prompt of this decision that sessions of an endpoint have in use already. */
export function usedBlocks(slot: u32): u32 {
  return max(countedHere(slot), forksOn(slot) ? soughtBlocks : 0);
}

/** What a session shares on an endpoint begins with what others share there. */
export function nestSession(entry: u32, slot: u32): void {
  const session = sessionAt(entry);
  const blocks = session.shared / max<u32>(request().blockTokens, 1);
  const within = blocks < BLOCKS_MIN || blocks > request().blocks ? 0 : countedBlocks(slot, blocks - 1);
  if (within != 0) sessionNest(entry, hashAt(within - 1));
}
