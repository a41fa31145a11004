// Caches with room for sessions: their sizes, and which endpoints have one.
//
// Owns: the PICKED column of REGION_SESSIONS (any thread, commit lock held).
//
// Where requests have several stages, their session has its home on the pick of the first one. The caches of endpoints
// that are picked for later stages only have no room for sessions, however empty they are.
import { gateHead, ROOM_CAPACITY } from './layout';
import * as room from './room';
import {
  cachesTokens,
  SESSIONS_PICKED,
  SESSIONS_PICKED_FIRST,
  SESSIONS_PICKED_LATER,
  sessionsColumn,
  sessionsGiven,
  setCachesTokens,
  setSessionsColumn,
  setTokensLeft,
  tokensLeft,
} from './sessions-layout';

/**
 * Share of the caches of a pool up to which sessions change no decision in a crowded pool too
 * (docs/internals/held-turns.md, from simulations there).
 */
export const SPACIOUS: f64 = 0.9;

/** Tokens that the cache of an endpoint holds, 0 = unknown. */
export function cacheTokens(slot: u32): f32 {
  const told = room.f32(ROOM_CAPACITY, slot);
  return told > 0 ? told : sessionsGiven().capacity;
}

/** Whether sessions may have their home on an endpoint; so it is until it is picked for a later stage alone. */
export function hostsSessions(slot: u32): bool {
  return sessionsColumn(SESSIONS_PICKED, slot) != SESSIONS_PICKED_LATER;
}

/** A request was charged to an endpoint. @param first whether it is the first pick of its request */
export function notePick(slot: u32, first: bool): void {
  const before = sessionsColumn(SESSIONS_PICKED, slot);
  const picked = before | (first ? SESSIONS_PICKED_FIRST : SESSIONS_PICKED_LATER);
  if (picked == before) return;
  setSessionsColumn(SESSIONS_PICKED, slot, picked);
  if (picked == SESSIONS_PICKED_LATER) takeOut(slot);
}

/** Takes the cache of an endpoint out of what the pool has left, until the next tick reckons it. */
function takeOut(slot: u32): void {
  const tokens = <f64>cacheTokens(slot) * <f64>gateHead().share * (1 - <f64>sessionsGiven().spared);
  setCachesTokens(max<f64>(cachesTokens() - tokens, 0));
  setTokensLeft(tokensLeft() - SPACIOUS * tokens);
}
