// Turns of sessions as charges of the ledger: the session that a prompt belongs to, and what begins and ends with a
// charge.
//
// Owns: the turns and the clock of REGION_SESSIONS. Commit lock held.
//
// A turn is written before its session is running, and a session that runs names the entry of its turn: a repair finds
// out from both what was left half done.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_GENERATION } from '../endpoints';
import { entryAt, isCharged, LedgerEntry } from '../load/ledger-entries';
import { REQUESTS, SLOTS } from '../memory';
import { DECIDE_SESSION_ENDS, request } from '../request-area';
import {
  forgetBeyondCache,
  sessionBegin,
  sessionEnd,
  sessionFree,
  sessionGrow,
  sessionNest,
  sessionShare,
  sessionsKeptEnds,
  sessionsOtherBegins,
  sessionsOtherEnds,
  sessionsRepair,
  sessionTake,
} from './sessions';
import { setAnchors } from './sessions-anchors';
import { countedBlocks, forksOn, heldBlocks, nestSession, rememberLength, sharedBlocks } from './sessions-beginnings';
import { noteFound, noteUncounted } from './sessions-found';
import { cacheTokens, notePick } from './sessions-hosts';
import {
  addToSessionsColumn,
  hasTurn,
  IS_NAMED,
  isElsewhere,
  SESSION_COUNTERS,
  SESSION_IDLE,
  SESSION_RUNNING,
  SESSIONS_AGAIN_LAPSED,
  SESSIONS_AGAIN_LOST,
  SESSIONS_AGAIN_MOVED,
  SESSIONS_ENDED,
  SESSIONS_FORKED,
  SESSIONS_NAMED,
  SESSIONS_NEW,
  SESSIONS_OTHERS_RUNNING,
  SESSIONS_RECOGNISED,
  SESSIONS_RESUMED,
  SESSIONS_SAVED,
  SESSIONS_UNCOUNTED,
  Session,
  SessionTurn,
  sessionAt,
  sessionsColumn,
  sessionsCount,
  sessionsHead,
  sessionsOn,
  setSessionsColumn,
  TURN_KEPT,
  TURN_LAST,
  turnAt,
  WAS_FORGOTTEN,
} from './sessions-layout';
import { tellBegin, tellEnd, tellLapse } from './sessions-peers';
import { noteReturn } from './sessions-returns';
import {
  anchorStep,
  BLOCKS_MIN,
  disagreement,
  earlyBlocks,
  hashAt,
  isNamed,
  nameHash,
  soughtBlocks,
  soughtByHeader,
  soughtSession,
  soughtSmall,
} from './sessions-sought';

/** Bound on the tokens of one request without a session: sums stay far from 32 bits. */
const OTHER_MAX: u32 = 1 << 24;

/** Charges of this thread stand for requests of peers. For simulations, in which a peer's load is charged. */
let ofPeers: bool = false;

/** @param peers 1 = the next charges of this thread stand for requests of peers, which tell their turns themselves */
export function chargesOfPeers(peers: u32): void {
  if (ASSERTIONS) assert(peers <= 1, 'charges are of peers or not');
  ofPeers = peers != 0;
}

/** A prompt so small that it is no session's turn: chat, which passes at once. */
export function isSmall(prompt: u32, slot: u32): bool {
  return <f32>prompt < sessionsHead().small * cacheTokens(slot);
}

function tick(now: f64): f64 {
  const head = sessionsHead();
  if (now > head.clock) head.clock = now;
  return head.clock;
}

function slotIsCurrent(entry: LedgerEntry): bool {
  return column.u32(COLUMN_GENERATION, entry.slot) == entry.slotGeneration;
}

/** Counts what the turn of a known session finds in the cache, and what it has to compute again and why. */
function countReturn(session: Session, slot: u32, uncached: u32, now: f64): void {
  sessionsCount(nameHash() != 0 && isNamed(soughtSession(), nameHash()) ? SESSIONS_NAMED : SESSIONS_RECOGNISED, 1);
  const before = session.own + session.shared;
  const prompt = request().promptTokens;
  const added = prompt > before ? prompt - before : 0;
  const again = uncached > added ? uncached - added : 0;
  const kept = session.state == SESSION_IDLE;
  if (!kept) sessionsCount(SESSIONS_RESUMED, 1);
  if (kept && session.home == slot) sessionsCount(SESSIONS_SAVED, prompt > uncached ? prompt - uncached : 0);
  else if (kept) sessionsCount(SESSIONS_AGAIN_MOVED, again);
  else sessionsCount((session.ages & WAS_FORGOTTEN) != 0 ? SESSIONS_AGAIN_LOST : SESSIONS_AGAIN_LAPSED, again);
  noteReturn(session, now);
}

/** Begins the turn of a known session. @returns its entry */
function continueSession(entry: u32, slot: u32, uncached: u32, ticket: u32, now: f64): u32 {
  const session = sessionAt(entry);
  countReturn(session, slot, uncached, now);
  let shared = session.shared;
  let prefix = session.prefix;
  const counted = countedBlocks(slot, request().blocks);
  if (prefix == 0 || shared > soughtBlocks * request().blockTokens || shared < counted * request().blockTokens) {
    shared = counted * request().blockTokens;
    prefix = counted == 0 ? 0 : hashAt(counted - 1);
  }
  sessionBegin(entry, slot, request().promptTokens, shared, prefix, ticket, now);
  nestSession(entry, slot);
  return entry;
}

/**
 * Begins the first turn of a session. A fork counts what it has of its parent as shared wherever it goes, as the next
 * ones of its burst may follow it.
 * @param fork running session from whose last prompt it goes on, 0 = none
 */
function beginSession(entry: u32, fork: u32, slot: u32, ticket: u32, now: f64): void {
  const size = request().blockTokens;
  const forks = fork != 0 && forksOn(slot);
  let blocks = forks ? heldBlocks(slot) : sharedBlocks(slot);
  // A prompt that is shared as a whole would have no anchor.
  if (fork != 0 && soughtBlocks < request().blocks) blocks = max(blocks, soughtBlocks);
  if (forks) sessionShare(fork, soughtBlocks * size, hashAt(soughtBlocks - 1));
  if (blocks != 0) rememberLength(blocks, slot, fork != 0);
  sessionsCount(fork == 0 ? SESSIONS_NEW : SESSIONS_FORKED, 1);
  const prefix = blocks == 0 ? 0 : hashAt(blocks - 1);
  sessionBegin(entry, slot, request().promptTokens, blocks * size, prefix, ticket, now);
  nestSession(entry, slot);
  if (forks && soughtBlocks < blocks) sessionNest(entry, hashAt(soughtBlocks - 1));
}

/**
 * Anchors a session at its prompt. An anchor lies behind what others share, and the early one, for a client that writes
 * its last message anew, needs a second turn: what the first one shares may not be known yet. The name of a header
 * stands in its place.
 */
function anchorSession(entry: u32): void {
  const session = sessionAt(entry);
  const shared = session.shared / max<u32>(request().blockTokens, 1);
  const blocks = request().blocks & ~(anchorStep() - 1);
  const anchor = blocks > shared ? hashAt(blocks - 1) : 0;
  const name = nameHash();
  if (name != 0 || (session.ages & IS_NAMED) != 0) {
    session.ages |= IS_NAMED;
    return setAnchors(entry, anchor, name != 0 ? name : session.earlyAnchor);
  }
  const early = earlyBlocks(blocks);
  const isEarly = session.turns > 1 && early > shared;
  setAnchors(entry, anchor, isEarly ? hashAt(early - 1) : 0);
}

/** A charge that is no turn: chat, or a request whose session cannot be counted. */
function beginOther(index: u32, slot: u32, tokens: u32): void {
  const turn = turnAt(index);
  turn.generation = 0;
  turn.session = 0;
  turn.kind = 0;
  turn.tokens = min(tokens, OTHER_MAX);
  turn.generation = entryAt(index).generation;
  sessionsOtherBegins(slot, turn.tokens);
}

/** A dispatch keeps a place for a turn: nobody else may have it until its shard has decided. */
export function turnKeeps(index: u32, slot: u32, tokens: u32): void {
  beginOther(index, slot, tokens);
  turnAt(index).kind = TURN_KEPT;
}

/**
 * A request was charged as ledger entry `index`, of the decision that this thread is in.
 * @param uncached prompt tokens that the endpoint does not hold
 * @param first whether it is the first pick of its request
 */
export function turnBegins(index: u32, slot: u32, uncached: u32, first: bool): void {
  if (!sessionsOn() || ofPeers) return;
  notePick(slot, first);
  const now = tick(request().now);
  const prompt = request().promptTokens;
  const counted = first && !soughtSmall && request().blocks >= BLOCKS_MIN && !isSmall(prompt, slot);
  const found = counted ? soughtSession() : 0;
  const running = found != 0 && hasTurn(sessionAt(found));
  const entry = !counted ? 0 : found != 0 && !running ? found : sessionTake();
  if (counted) noteTurn(found, now);
  if (entry == 0) {
    if (counted) countUncounted();
    beginOther(index, slot, uncached);
  } else {
    const turn = turnAt(index);
    turn.generation = 0;
    turn.session = entry;
    turn.kind = (request().flags & DECIDE_SESSION_ENDS) != 0 ? TURN_LAST : 0;
    turn.tokens = prompt;
    turn.generation = entryAt(index).generation;
    const before = entry == found ? sessionAt(entry).anchor : 0;
    if (entry == found) continueSession(entry, slot, uncached, index + 1, now);
    else beginSession(entry, running ? found : 0, slot, index + 1, now);
    anchorSession(entry);
    tellBegin(entry, before);
  }
  forgetBeyondCache(slot);
}

/** Notes the session of a turn that begins, and what its header says otherwise. */
function noteTurn(found: u32, now: f64): void {
  noteFound(found, soughtByHeader(), now);
  if (disagreement != SESSION_COUNTERS) sessionsCount(disagreement, 1);
}

function countUncounted(): void {
  sessionsCount(SESSIONS_UNCOUNTED, 1);
  noteUncounted();
}

/** Whether an entry counts as a turn or as a request without one. */
function isCounted(index: u32): bool {
  return sessionsOn() && turnAt(index).generation == entryAt(index).generation;
}

/** The output of an entry has grown to `tokens`. */
export function turnGrows(index: u32, tokens: u32): void {
  if (!isCounted(index)) return;
  const turn = turnAt(index);
  if (turn.session != 0) sessionGrow(turn.session, turn.tokens + tokens);
}

/** The latest event of the pool was at `now`. */
export function turnsSeen(now: f64): void {
  if (sessionsOn()) tick(now);
}

function endSession(turn: SessionTurn): void {
  sessionEnd(turn.session, sessionsHead().clock);
  tellEnd(turn.session);
  if (turn.kind != TURN_LAST) return;
  // Peers give its room away as well: to them it has ended one turn of several.
  tellLapse(turn.session);
  sessionFree(turn.session);
  sessionsCount(SESSIONS_ENDED, 1);
}

/** An entry is about to be released; it is still charged. */
export function turnEnds(index: u32): void {
  if (!isCounted(index)) return;
  const entry = entryAt(index);
  const turn = turnAt(index);
  const isCurrent = slotIsCurrent(entry);
  turn.generation = 0;
  if (turn.session != 0) endSession(turn);
  else if (isCurrent) {
    if (turn.kind == TURN_KEPT) sessionsKeptEnds(entry.slot, turn.tokens);
    else sessionsOtherEnds(entry.slot, turn.tokens);
  }
  if (isCurrent) forgetBeyondCache(entry.slot);
}

/** An entry is about to be charged to another slot: another endpoint computes all of it. */
export function turnMoves(index: u32, to: u32): void {
  if (!isCounted(index)) return;
  const entry = entryAt(index);
  const turn = turnAt(index);
  if (turn.session == 0) {
    if (slotIsCurrent(entry)) sessionsOtherEnds(entry.slot, turn.tokens);
    sessionsOtherBegins(to, turn.tokens);
  } else {
    const now = sessionsHead().clock;
    sessionEnd(turn.session, now);
    sessionBegin(turn.session, to, turn.tokens, 0, 0, index + 1, now);
  }
  forgetBeyondCache(to);
}

/** Ends the turns of which a dead thread left one half only, and counts the other requests again. */
export function turnsRepair(): void {
  const head = sessionsHead();
  sessionsRepair();
  for (let entry: u32 = 1; entry <= head.made; entry++) {
    const session = sessionAt(entry);
    if (runsHere(session) && !runsIn(entry, session.ticket)) sessionEnd(entry, head.clock);
  }
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const turn = turnAt(i);
    if (!isCharged(entryAt(i)) || !isCounted(i) || turn.session == 0) continue;
    if (!runsIn(turn.session, i + 1) || sessionAt(turn.session).state != SESSION_RUNNING) turn.generation = 0;
  }
  for (let slot: u32 = 0; slot < SLOTS; slot++) setSessionsColumn(SESSIONS_OTHERS_RUNNING, slot, 0);
  addOthers(1);
}

/** Whether a turn of the session is in flight here, and not at a peer. */
function runsHere(session: Session): bool {
  return session.state == SESSION_RUNNING && !isElsewhere(session);
}

/** Whether both the session and the ledger's entry say that it is its turn. */
function runsIn(entry: u32, ticket: u32): bool {
  if (ticket == 0 || ticket > REQUESTS || sessionAt(entry).ticket != ticket) return false;
  return isCharged(entryAt(ticket - 1)) && isCounted(ticket - 1) && turnAt(ticket - 1).session == entry;
}

/** Adds the tokens of all other requests to the sums of their endpoints, `sign` times. */
function addOthers(sign: i32): void {
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const entry = entryAt(i);
    if (!isCharged(entry) || !isCounted(i) || turnAt(i).session != 0 || !slotIsCurrent(entry)) continue;
    addToSessionsColumn(SESSIONS_OTHERS_RUNNING, entry.slot, <u32>(sign * <i32>turnAt(i).tokens));
  }
}

/**
 * Checks that each running session has its turn, and that the other requests add up.
 * @returns 0, or 1 a session without its turn, 2 a turn without its session, 3 tokens of other requests
 */
export function turnsCheck(): u32 {
  if (!sessionsOn()) return 0;
  const made = sessionsHead().made;
  for (let entry: u32 = 1; entry <= made; entry++) {
    const session = sessionAt(entry);
    if (runsHere(session) && !runsIn(entry, session.ticket)) return 1;
  }
  for (let i: u32 = 0; i < REQUESTS; i++) {
    if (!isCharged(entryAt(i)) || !isCounted(i) || turnAt(i).session == 0) continue;
    if (!runsIn(turnAt(i).session, i + 1)) return 2;
  }
  addOthers(-1);
  let wrong = false;
  for (let slot: u32 = 0; slot < SLOTS; slot++) wrong = wrong || sessionsColumn(SESSIONS_OTHERS_RUNNING, slot) != 0;
  addOthers(1);
  return wrong ? 3 : 0;
}
