// Room for the turns of sessions: which endpoints have it, and whose is given away.
//
// Owns: the thread's CANDIDATES column while it looks. Commit lock held throughout, but for waitSlotNeed(). The order
// of a look: a small prompt needs no place; a pool with room to spare has one for all; a protected session has its
// own; any other turn must fit beside what is protected, or is held. Of a cache, replicas whose sessions are not known
// have their share. The time until which the pool is crowded, in the head of REGION_SESSIONS, is set here and ends in
// the tick.
import { slotsUsed } from '../columns/candidates';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { COLUMN_STATE, STATE_FREE } from '../endpoints';
import { CANDIDATES, SLOTS } from '../memory';
import { request } from '../request-area';
import { othersWait } from './bands';
import { gateHead, ROOM_CAPACITY, roomColumn, WAIT_FLAG_HELD, WaitSlot, waitSlotAt } from './layout';
import { sessionAvailable, sessionLapse, sessionsUsed } from './sessions';
import { anchoredEntry, tokensUpTo } from './sessions-anchors';
import { countedBeginning, shareBeginning, usedBlocks } from './sessions-beginnings';
import { noteFound } from './sessions-found';
import { cacheTokens } from './sessions-hosts';
import {
  CROWDED_MS,
  cachesTokens,
  crowdedUntil,
  hasTurn,
  heldClaims,
  NO_HOME,
  SESSION_IDLE,
  SESSIONS_AT_HOME,
  SESSIONS_FIT,
  SESSIONS_FORCED,
  SESSIONS_GIVEN_UP,
  SESSIONS_HELD,
  SESSIONS_HOLDS_NEW,
  SESSIONS_HOLDS_PROTECTED,
  SESSIONS_HOLDS_RESUMED,
  SESSIONS_OLDEST,
  SESSIONS_SMALL,
  SESSIONS_UNLISTED,
  sessionAt,
  sessionsColumn,
  sessionsCount,
  sessionsGiven,
  sessionsHead,
  setCrowdedUntil,
  tokensLeft,
} from './sessions-layout';
import { tellLapse, tellWait } from './sessions-peers';
import { countedPrefix } from './sessions-prefixes';
import { hasNext, isKept, noteGone, noteWait } from './sessions-returns';
import { soughtBlocks, soughtByHeader, soughtSession, soughtSmall } from './sessions-sought';
import { turnsSeen } from './sessions-turns';

/** Sessions that one look at an endpoint may give up. */
const GIVEN_UP_MAX: u32 = 256;
/** Share of all caches that is between room to spare and a crowd: sessions use 0.9 and 1.1 of them. */
const CROWDING: f64 = 0.2;
/** Refills of a cache after which a held turn may exceed it by `stretch`. */
const STRETCH_REFILLS: f64 = 3;

/** What a look has found for a request; the endpoints follow with keepHome() or keepFitting(). */
export const LOOK_FREE: u32 = 0; // any endpoint will do
export const LOOK_HOME: u32 = 1; // its session is protected: its home
export const LOOK_FITS: u32 = 2; // the endpoints with room for it
export const LOOK_HELD: u32 = 3; // no endpoint has room: it is held
export const LOOK_OPEN: u32 = 4; // the pool has room for it and for others: any endpoint, whatever is pending there

// The turn that is looked at. Scratch of one look.
/** Tokens of its prompt. */
let prompt: u32 = 0;
/** Session that it goes on with, 0 = a new one. */
let known: u32 = 0;
/** Session with a turn in flight that it goes on from, 0 = none. */
let parent: u32 = 0;
/** Tokens of that session up to the anchor by which a waiting turn found it. */
let forked: u32 = 0;
/** Hash of the end of the beginning that its session shares with others, 0 = none. */
let prefix: u64 = 0;
/** Hash of the end of the longest beginning of a waiting turn that was counted when it began to wait, 0 = none. */
let beginning: u64 = 0;
/** The prompt is the one of this decision: its hashes are in this thread's HASHES. */
let decides: bool = false;
/** Share of a cache by which it may exceed it. */
let excess: f64 = 0;

function isCandidate(slot: u32): bool {
  return load<i32>(CANDIDATES + slotOffset(slot)) != 0;
}

function takeSession(found: u32): void {
  const running = found != 0 && hasTurn(sessionAt(found));
  known = running ? 0 : found;
  parent = running ? found : 0;
}

/** Takes the request of this decision. */
function takeDecision(): void {
  takeSession(soughtSession());
  prompt = request().promptTokens;
  forked = 0;
  prefix = known == 0 ? 0 : sessionAt(known).prefix;
  beginning = 0;
  decides = true;
  excess = 0;
}

/**
 * Times that the other held turns would fill all caches, 1 where they would not fill them once: a turn waits for so
 * much longer. A sub-agent does not, as its agent waits for it.
 * @param claim tokens that the turn itself would fill
 */
function demand(claim: u32): f64 {
  const caches = cachesTokens();
  return caches <= 0 || parent != 0 ? 1 : max<f64>((heldClaims() - <f64>claim) / caches, 1);
}

/**
 * Share of a cache by which a turn may exceed it: `stretch` after three refills for each time that others would fill
 * all caches, and with the cube of the wait, so that it is next to nothing for most turns and lets the last ones
 * through.
 */
function excessAfter(waited: f64, claim: u32): f64 {
  const full = STRETCH_REFILLS * <f64>sessionsHead().refill * demand(claim);
  if (full <= 0) return 0;
  const share = waited / full;
  return <f64>sessionsHead().stretch * share * share * share;
}

/** Takes a waiting turn. */
function takeWaiting(at: WaitSlot, now: f64): void {
  takeSession(anchoredEntry(at.session));
  prompt = at.prompt;
  forked = parent == 0 ? 0 : tokensUpTo(sessionAt(parent), at.session);
  prefix = known == 0 ? 0 : sessionAt(known).prefix;
  beginning = at.prefix;
  decides = false;
  excess = excessAfter(max<f64>(now - at.since, 0), (at.flags & WAIT_FLAG_HELD) == 0 ? 0 : at.claim);
}

/** Tokens of the prompt that sessions of an endpoint have in use already. */
function sharedOn(slot: u32): u32 {
  const own = prefix == 0 ? 0 : countedPrefix(prefix, slot);
  if (own != 0) return own;
  if (decides) return usedBlocks(slot) * request().blockTokens;
  const counted = beginning == 0 ? 0 : countedPrefix(beginning, slot);
  return parent != 0 && sessionAt(parent).home == slot ? max(counted, forked) : counted;
}

/** Tokens of the prompt that an endpoint must have room for. */
function needOf(slot: u32): u32 {
  const shared = sharedOn(slot);
  return prompt > shared ? prompt - shared : 0;
}

/** Tokens by which the room of an endpoint exceeds what the turn needs; one that nobody uses always has room. */
function spare(slot: u32): f64 {
  const capacity = <f64>cacheTokens(slot) * <f64>gateHead().share;
  if (capacity <= 0) return Infinity;
  const used = <f64>sessionsUsed(slot);
  return used == 0 ? Infinity : capacity * (1 - <f64>sessionsGiven().spared + excess) - used - <f64>needOf(slot);
}

/** Slot of the home of a protected session between turns that is a candidate, -1 = there is none. */
function protectedHome(): i32 {
  if (known == 0 || sessionAt(known).state != SESSION_IDLE) return -1;
  const home = sessionAt(known).home;
  return home != NO_HOME && isCandidate(home) ? <i32>home : -1;
}

/**
 * Looks how many of the sessions at the head of an endpoint's list would have to go for `missing` tokens.
 * @returns how many, 0 = those that are not worth their room do not suffice
 */
function dispensable(slot: u32, missing: f64, now: f64): u32 {
  let left = missing;
  let count: u32 = 0;
  for (let entry = sessionsColumn(SESSIONS_OLDEST, slot); entry != 0 && count < GIVEN_UP_MAX; ) {
    const session = sessionAt(entry);
    if (session.state == SESSION_IDLE && isKept(session, now)) return 0;
    count++;
    left -= <f64>session.own;
    // What lies behind the next one is given up with it.
    const next = session.newer;
    left -= <f64>(next == 0 ? sessionsColumn(SESSIONS_UNLISTED, slot) : sessionAt(next).behind);
    if (left <= 0) return count;
    entry = next;
  }
  return 0;
}

/** Gives up the room of `count` sessions at the head of an endpoint's list. */
function giveUp(slot: u32, count: u32): void {
  let given: u32 = 0;
  let entry = sessionsColumn(SESSIONS_OLDEST, slot);
  for (let i: u32 = 0; i < count && entry != 0; i++) {
    const session = sessionAt(entry);
    const next = session.newer;
    if (session.state == SESSION_IDLE) {
      tellLapse(entry);
      sessionLapse(entry);
      given++;
    }
    entry = next;
  }
  sessionsCount(SESSIONS_GIVEN_UP, given);
}

/** Makes room on the candidate whose sessions were away longest. @returns whether one has room now */
function makeRoom(used: u32, now: f64): bool {
  let best: u32 = SLOTS;
  let bestCount: u32 = 0;
  let longest: f64 = Infinity;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (!isCandidate(slot)) continue;
    const missing = -spare(slot);
    const count = missing > 0 ? dispensable(slot, missing, now) : 0;
    if (count == 0) continue;
    const last = sessionAt(sessionsColumn(SESSIONS_OLDEST, slot)).lastUse;
    const home = known != 0 && sessionAt(known).home == slot;
    if (!home && last >= longest) continue;
    best = slot;
    bestCount = count;
    longest = home ? -Infinity : last;
  }
  if (best == SLOTS) return false;
  turnsSeen(now);
  giveUp(best, bestCount);
  return true;
}

function anyFits(used: u32): bool {
  for (let slot: u32 = 0; slot < used; slot++) if (isCandidate(slot) && spare(slot) >= 0) return true;
  return false;
}

/** Tokens that the turn which was taken last adds to what sessions use, at most. */
function growth(): u32 {
  if (known == 0 || sessionAt(known).state != SESSION_IDLE) return prompt;
  const before = sessionAt(known).own + sessionAt(known).shared;
  return prompt > before ? prompt - before : 0;
}

/**
 * Whether the caches of the pool have room for the turn that was taken last, and nothing else waits. A pool is crowded
 * once they have not, and from then on until they have had room to spare for long.
 */
function isSpacious(used: u32, now: f64): bool {
  if (othersWait()) return false;
  if (tokensLeft() >= 0) return true;
  if (crowdedUntil() != 0) return false;
  const left = tokensLeft() + CROWDING * cachesTokens();
  if (left >= <f64>growth() || left >= <f64>leastNeed(used)) return true;
  setCrowdedUntil(now + CROWDED_MS);
  return false;
}

/**
 * Looks for room for the turn that was taken last.
 * @param others held turns go first: it may not take what they wait for
 * @param gives whether sessions that are not worth their room give it up
 */
function lookForRoom(used: u32, others: bool, gives: bool, now: f64): u32 {
  if (!others && anyFits(used)) return LOOK_FITS;
  return !others && gives && makeRoom(used, now) ? LOOK_FITS : LOOK_HELD;
}

/** Whether the prompt is small on some candidate: isSmall(), four slots at a time. */
function isSmallAnywhere(used: u32): bool {
  const tokens = f32x4.splat(<f32>prompt);
  const small = f32x4.splat(sessionsHead().small);
  const told = roomColumn(ROOM_CAPACITY);
  const given = f32x4.splat(sessionsGiven().capacity);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const capacity = v128.load(told + at);
    const known = f32x4.gt(capacity, f32x4.splat(0));
    const bounds = f32x4.mul(small, v128.bitselect(capacity, given, known));
    if (v128.any_true(v128.and(f32x4.lt(tokens, bounds), v128.load(CANDIDATES + at)))) return true;
  }
  return false;
}

/** Takes the request of this decision. @returns whether its prompt is small on some candidate */
function isSmallHere(used: u32): bool {
  if (soughtSmall) return true;
  takeDecision();
  return isSmallAnywhere(used);
}

/**
 * Looks whether the request of this decision has room among its candidates, and counts what it found. Sessions that are
 * not worth their room give it up if that makes room for it.
 * @param others held turns go first: it may not take what they wait for
 * @returns LOOK_*
 */
export function sessionsLook(used: u32, others: bool): u32 {
  if (isSmallHere(used)) {
    sessionsCount(SESSIONS_SMALL, 1);
    return LOOK_FREE;
  }
  const now = request().now;
  const atHome = known != 0 && sessionAt(known).state == SESSION_IDLE;
  if (isSpacious(used, now)) {
    sessionsCount(atHome ? SESSIONS_AT_HOME : SESSIONS_FIT, 1);
    return LOOK_OPEN;
  }
  if (atHome) {
    sessionsCount(SESSIONS_AT_HOME, 1);
    // The home of a protected session that cannot be picked now: it needs room elsewhere.
    return protectedHome() >= 0 ? LOOK_HOME : lookForRoom(used, others, false, now);
  }
  const found = lookForRoom(used, others, true, now);
  sessionsCount(found == LOOK_HELD ? SESSIONS_HELD : SESSIONS_FIT, 1);
  return found == LOOK_HELD && isUncountable() ? LOOK_FREE : found;
}

/** A new turn that no entry is left for, or whose prompt cannot be recognised: it is not held. */
function isUncountable(): bool {
  return known == 0 && (request().blocks < 2 || !sessionAvailable());
}

/** As sessionsLook(), for a request that comes back with a dispatch: its place is kept. @returns LOOK_* */
export function sessionsLookAgain(used: u32): u32 {
  if (isSmallHere(used)) return LOOK_FREE;
  return protectedHome() >= 0 ? LOOK_HOME : LOOK_FITS;
}

/** Tokens of a cache that the turn which was taken last would fill: its prompt, of a sub-agent what it needs. */
export function claimOf(used: u32): u32 {
  return parent != 0 ? leastNeed(used) : prompt;
}

/** Least tokens that a candidate must have room for. */
export function leastNeed(used: u32): u32 {
  let least: u32 = u32.MAX_VALUE;
  for (let slot: u32 = 0; slot < used; slot++) if (isCandidate(slot)) least = min(least, needOf(slot));
  return least == u32.MAX_VALUE ? prompt : least;
}

/** Least tokens that an endpoint must have room for, of a waiting turn. No lock: a figure for pages. */
export function waitSlotNeed(thread: u32, slot: u32): u32 {
  const at = waitSlotAt(thread, slot);
  takeWaiting(at, at.since);
  let least: u32 = prompt;
  for (let i: u32 = 0, used = slotsUsed(); i < used; i++) {
    if (column.u32(COLUMN_STATE, i) != STATE_FREE) least = min(least, needOf(i));
  }
  return least;
}

/** Tokens of an endpoint's cache that sessions leave, NaN = its cache is of unknown size. */
export function sessionsRoom(slot: u32): f32 {
  const capacity = cacheTokens(slot);
  return capacity <= 0 ? NaN : capacity * (1 - sessionsGiven().spared) - <f32>sessionsUsed(slot);
}

/** Keeps one candidate, and the one that a dispatch held. @param held slot + 1, 0 = none @returns how many */
function keepSlot(used: u32, only: u32, held: u32): u32 {
  const own = only < used && isCandidate(only);
  const promised = held != 0 && held - 1 != only && held - 1 < used && isCandidate(held - 1);
  memory.fill(CANDIDATES, 0, slotOffset(used));
  if (own) store<i32>(CANDIDATES + slotOffset(only), -1);
  if (promised) store<i32>(CANDIDATES + slotOffset(held - 1), -1);
  return u32(own) + u32(promised);
}

/** Keeps the home of the protected session that was looked at. @returns how many candidates are left */
export function keepHome(used: u32, held: u32): u32 {
  return keepSlot(used, <u32>protectedHome(), held);
}

/** Keeps the candidates with room for the turn that was looked at: its home alone if it has room. @returns how many */
export function keepFitting(used: u32, held: u32): u32 {
  const home = known == 0 ? NO_HOME : sessionAt(known).home;
  if (home < used && isCandidate(home) && spare(home) >= 0) return keepSlot(used, home, held);
  let count: u32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    const stays = isCandidate(slot) && (slot + 1 == held || spare(slot) >= 0);
    store<i32>(CANDIDATES + slotOffset(slot), stays ? -1 : 0);
    count += u32(stays);
  }
  return count;
}

/**
 * The turn that was looked at waits: its session has come back. One that finds the next turn of its session there is
 * one of several that go on from the same prompt. What they begin with is shared from now on, so that it counts for
 * those that wait after the session has gone on.
 * @param used slots in use
 * @param again it has waited before: the turn that is there may be itself
 * @returns hash of the end of the longest beginning of its prompt that counts, 0 = none
 */
export function lookedWaits(used: u32, again: bool, now: f64): u64 {
  const from = known == 0 ? parent : known;
  noteFound(from, soughtByHeader(), now);
  if (!again && from != 0 && soughtBlocks != 0 && hasNext(sessionAt(from))) shareBeginning(from);
  if (known != 0) {
    noteWait(sessionAt(known), now);
    tellWait(known);
  }
  return countedBeginning(used, from);
}

/** The turn that was looked at is held: no endpoint has room. */
export function lookedHeld(): void {
  const kind = known == 0 ? SESSIONS_HOLDS_NEW : SESSIONS_HOLDS_RESUMED;
  const kept = known != 0 && sessionAt(known).state == SESSION_IDLE;
  sessionsCount(kept ? SESSIONS_HOLDS_PROTECTED : kind, 1);
}

/** A waiting turn is given up. */
export function waitingGone(at: WaitSlot): void {
  const entry = anchoredEntry(at.session);
  if (entry == 0) return;
  noteGone(sessionAt(entry));
  tellLapse(entry);
}

/** Slot of the protected home of the turn that was looked at, -1 = none. */
export function lookedHome(): i32 {
  return known == 0 || sessionAt(known).home == NO_HOME ? -1 : <i32>sessionAt(known).home;
}

/** Takes a waiting turn, and keeps its home alone if its session is protected. @returns whether it has kept it */
export function waitingHome(at: WaitSlot, used: u32, now: f64): bool {
  takeWaiting(at, now);
  const home = protectedHome();
  if (home < 0) return false;
  keepSlot(used, <u32>home, 0);
  return true;
}

/** The candidate with most room. */
function roomiest(used: u32): u32 {
  let best: u32 = 0;
  let largest: f64 = -Infinity;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (!isCandidate(slot)) continue;
    const room = spare(slot);
    if (room <= largest) continue;
    largest = room;
    best = slot;
  }
  return best;
}

/**
 * Keeps the candidates with room for the waiting turn that was taken last. One that was held for long may exceed a
 * cache a little, and after the longest wait the next open endpoint is its own.
 * @returns whether there is one
 */
export function waitingFits(at: WaitSlot, used: u32, now: f64): bool {
  if (isSpacious(used, now)) return true;
  if (anyFits(used) || makeRoom(used, now)) {
    keepFitting(used, 0);
    return true;
  }
  const longest = <f64>sessionsHead().maxWait;
  if (longest <= 0 || now - at.since < longest) return false;
  sessionsCount(SESSIONS_FORCED, 1);
  keepSlot(used, roomiest(used), 0);
  return true;
}

/** Tokens that the turn which was taken last adds to what sessions use on an endpoint. */
export function waitingNeed(slot: u32): u32 {
  return protectedHome() == <i32>slot ? growth() : needOf(slot);
}
