// The session that the prompt of a decision goes on with or from: by its anchors, and by the name that a header gives
// it.
//
// Owns: scratch of one decision of this thread, nothing in shared memory. seekSession() takes no lock; what it found is
// looked at again with the commit lock held.
import { HASHES } from '../memory';
import { namedSession, request } from '../request-area';
import { anchoredBlocks, anchorOf, anchorWordOf, EARLY, sessionOf, touchAnchor } from './sessions-anchors';
import {
  hasTurn,
  IS_NAMED,
  NO_HOME,
  SESSION_COUNTERS,
  SESSIONS_MERGED,
  SESSIONS_RENAMED,
  SESSIONS_REWRITTEN,
  sessionAddress,
  sessionAt,
  sessionsHead,
  sessionsOn,
} from './sessions-layout';

/** Anchors stand at multiples of so many tokens, or of a block: a look at a prompt probes these. */
const ANCHOR_TOKENS: u32 = 64;
/** A prompt with fewer blocks has no session, and a beginning with fewer is not counted as shared. */
export const BLOCKS_MIN: u32 = 2;

/** Whether the prompt is small on every endpoint, so that it is no session's turn. Scratch of one decision. */
export let soughtSmall: bool = false;
/** Session that the prompt of this decision, or its header, belongs to, 0 = none. */
let sought: u32 = 0;
/** Blocks of the prompt up to its anchor, 0 = the header alone says so. */
export let soughtBlocks: u32 = 0;
/** Hash by which it was found: of its anchor, or of its header. */
let soughtHash: u64 = 0;
/** Counter of what its header and the prompt disagree on, SESSION_COUNTERS = nothing. */
export let disagreement: u32 = SESSION_COUNTERS;

export function hashAt(block: u32): u64 {
  return load<u64>(HASHES + ((<usize>block) << 3));
}

/** Blocks from one anchor to the next, a power of 2. */
export function anchorStep(): u32 {
  const size = request().blockTokens;
  let step: u32 = 1;
  while (size != 0 && step * size < ANCHOR_TOKENS) step <<= 1;
  return step;
}

/** Blocks up to the early anchor of a prompt with anchors up to `blocks`. */
export function earlyBlocks(blocks: u32): u32 {
  return <u32>((<u64>blocks * EARLY) / 10) & ~(anchorStep() - 1);
}

/** Looks for the session of the prompt in HASHES, and of its header. Takes no lock. */
export function seekSession(blocks: u32): void {
  soughtSmall = request().promptTokens < sessionsHead().smallTokens;
  sought = 0;
  if (soughtSmall || blocks < BLOCKS_MIN) return;
  sought = sessionOf(HASHES, blocks, anchorStep());
  soughtBlocks = anchoredBlocks();
  soughtHash = sought == 0 ? 0 : hashAt(soughtBlocks - 1);
  disagreement = SESSION_COUNTERS;
  const name = nameHash();
  if (name != 0 && !isNamed(sought, name)) seekNamed(name);
  touchTurn(blocks, name);
}

/** Reads ahead what the turn of the session will write: its anchors, before and now, and its neighbours in a list. */
function touchTurn(blocks: u32, name: u64): void {
  const whole = blocks & ~(anchorStep() - 1);
  if (whole != 0) touchAnchor(hashAt(whole - 1));
  if (sought == 0) return;
  const session = sessionAt(sought);
  if (name == 0) {
    touchAnchor(session.earlyAnchor);
    const early = earlyBlocks(whole);
    if (early != 0) touchAnchor(hashAt(early - 1));
  }
  atomic.load<u32>(sessionAddress(max(session.older, 1)));
  atomic.load<u32>(sessionAddress(max(session.newer, 1)));
}

/** Hash of the name that the headers give the session, for this model; 0 = none. */
export function nameHash(): u64 {
  const name = namedSession().name;
  if (name == 0) return 0;
  const hash = (name ^ request().adapter) * 0x9e3779b97f4a7c15;
  return hash == 0 ? 1 : hash;
}

export function isNamed(entry: u32, name: u64): bool {
  return entry != 0 && (sessionAt(entry).ages & IS_NAMED) != 0 && sessionAt(entry).earlyAnchor == name;
}

/** Looks by a header where the prompt goes on from no session with it. */
function seekNamed(name: u64): void {
  const byPrompt = sought;
  const named = anchorOf(name);
  if (named != 0) {
    disagreement = byPrompt == 0 && !hasTurn(sessionAt(named)) ? SESSIONS_REWRITTEN : SESSIONS_MERGED;
    if (hasTurn(sessionAt(named))) {
      // A turn of it is in flight: this one is of another conversation under the same header.
      if (byPrompt != 0 && (sessionAt(byPrompt).ages & IS_NAMED) != 0) sought = 0;
      return;
    }
    sought = named;
    soughtBlocks = 0;
    soughtHash = name;
  } else if (byPrompt != 0 && (sessionAt(byPrompt).ages & IS_NAMED) != 0) {
    if (hasTurn(sessionAt(byPrompt))) return;
    // Another header names the session that the prompt goes on from, or it is the same prompt of another client.
    if (request().blocks > soughtBlocks) disagreement = SESSIONS_RENAMED;
    sought = 0;
  }
}

/** The session that was found, if it is still known by the same. @returns 0 when there is none */
export function soughtSession(): u32 {
  if (sought == 0) return 0;
  const session = sessionAt(sought);
  const isSame = session.anchor == soughtHash || session.earlyAnchor == soughtHash;
  return session.state != 0 && isSame ? sought : 0;
}

/** Slot of the last turn of that session, -1 = there is none, its endpoint is gone, or a turn of it is in flight. */
export function soughtHome(): i32 {
  const entry = sessionsOn() ? soughtSession() : 0;
  if (entry == 0 || hasTurn(sessionAt(entry))) return -1;
  const home = sessionAt(entry).home;
  return home == NO_HOME ? -1 : <i32>home;
}

/** Whether the header alone led to it. */
export function soughtByHeader(): bool {
  return sought != 0 && soughtBlocks == 0;
}

/** Word by which a wait slot remembers that session, 0 = none. */
export function soughtWord(): u64 {
  return soughtSession() == 0 ? 0 : anchorWordOf(soughtHash, sought);
}
