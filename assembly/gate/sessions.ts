// Sessions on endpoints: what is in use, what is protected, and what the engine has to forget before it.
//
// Owns: the head, the entries and the columns of REGION_SESSIONS but PREFIX_TOKENS and PICKED. Commit lock held
// throughout.
//
//   free ─ begin → running ─ end → idle ─ lapse → listed ─ nothing protected is older → lapsed
//                    ↑               └────────────────── (the oldest one) ─────────────────┘ │
//                    └───────────────── begin, from any state but running ───────────────────┘
//
// An engine frees the blocks of a finished turn to the end of its free list and takes new ones from the head of it,
// of any request. So an endpoint's sessions between turns stand in a list in the order of their last use, from
// the oldest protected one on, and what is in use is what running sessions hold, and all that lies from the head of the
// list on: lapsed sessions and other traffic too, and each shared beginning once.
import { ASSERTIONS } from '../assertions';
import { COMMIT_LOCK, lockHeld } from '../lock';
import { SLOTS } from '../memory';
import { isSlot } from '../preconditions';
import { setAnchors } from './sessions-anchors';
import { tenths } from './sessions-found';
import { cacheTokens, hostsSessions } from './sessions-hosts';
import {
  addToSessionsColumn,
  IS_NAMED,
  isElsewhere,
  isSession,
  NO_HOME,
  SESSION_ENTRIES,
  SESSION_FREE,
  SESSION_IDLE,
  SESSION_LAPSED,
  SESSION_LISTED,
  SESSION_RUNNING,
  SESSIONS_FORGOTTEN,
  SESSIONS_LISTED_TOKENS,
  SESSIONS_NEWEST,
  SESSIONS_OLDEST,
  SESSIONS_OTHERS_RUNNING,
  SESSIONS_PICKED,
  SESSIONS_PREFIX_TOKENS,
  SESSIONS_RUNNING_TOKENS,
  SESSIONS_UNLISTED,
  Session,
  sessionAt,
  sessionsColumn,
  sessionsCount,
  sessionsHead,
  setSessionsColumn,
  setTokensLeft,
  tokensLeft,
  WAS_FORGOTTEN,
} from './sessions-layout';
import { countPrefix, nestPrefix, prefixesClear, prefixTokensOf, uncountPrefix } from './sessions-prefixes';

/** Bound on the tokens of unlisted traffic that are counted in one place: sums stay far from 32 bits. */
const UNLISTED_MAX: u32 = 1 << 26;
/** Entries that a search for one to use again looks at, and lapsed ones of them after which it ends. */
const LOOKED_AT_MAX: u32 = 64;
const LAPSED_MAX: u32 = 8;

/** Tokens of an endpoint's cache that protected sessions need, and what lies between them. */
export function sessionsUsed(slot: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  const unlisted = sessionsColumn(SESSIONS_OLDEST, slot) == 0 ? 0 : sessionsColumn(SESSIONS_UNLISTED, slot);
  const listed = sessionsColumn(SESSIONS_LISTED_TOKENS, slot) + sessionsColumn(SESSIONS_PREFIX_TOKENS, slot);
  const running = sessionsColumn(SESSIONS_RUNNING_TOKENS, slot) + sessionsColumn(SESSIONS_OTHERS_RUNNING, slot);
  return running + listed + unlisted;
}

function isListed(session: Session): bool {
  return session.state == SESSION_IDLE || session.state == SESSION_LISTED;
}

/** A request without an entry runs on an endpoint: nobody else can have its tokens. */
export function sessionsOtherBegins(slot: u32, tokens: u32): void {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  addToSessionsColumn(SESSIONS_OTHERS_RUNNING, slot, min(tokens, UNLISTED_MAX));
  if (hostsSessions(slot)) setTokensLeft(tokensLeft() - <f64>tokens);
}

/**
 * It ends, on the endpoint on which it began: its tokens are used last, before those of every session that was used
 * before it.
 * @param tokens as at its begin
 */
export function sessionsOtherEnds(slot: u32, tokens: u32): void {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  const counted = min(tokens, UNLISTED_MAX);
  addToSessionsColumn(SESSIONS_OTHERS_RUNNING, slot, -counted);
  // Nothing protected lies before it: it pushes nothing out that counts.
  if (sessionsColumn(SESSIONS_OLDEST, slot) == 0) return;
  const sum = min(sessionsColumn(SESSIONS_UNLISTED, slot), UNLISTED_MAX) + counted;
  setSessionsColumn(SESSIONS_UNLISTED, slot, min(sum, UNLISTED_MAX));
}

/** A place that was kept for a turn is free again: nothing was computed there. */
export function sessionsKeptEnds(slot: u32, tokens: u32): void {
  addToSessionsColumn(SESSIONS_OTHERS_RUNNING, slot, -min(tokens, UNLISTED_MAX));
  if (hostsSessions(slot)) setTokensLeft(tokensLeft() + <f64>tokens);
}

function uncount(session: Session): void {
  if (session.prefix != 0) uncountPrefix(session.prefix, session.home);
}

/** Takes the oldest entry of a list out. */
function unlinkOldest(slot: u32, session: Session): void {
  const next = session.newer;
  addToSessionsColumn(SESSIONS_LISTED_TOKENS, slot, -session.own);
  setSessionsColumn(SESSIONS_OLDEST, slot, next);
  if (next == 0) {
    setSessionsColumn(SESSIONS_NEWEST, slot, 0);
    setSessionsColumn(SESSIONS_UNLISTED, slot, 0);
    return;
  }
  const following = sessionAt(next);
  addToSessionsColumn(SESSIONS_LISTED_TOKENS, slot, -following.behind);
  following.behind = 0;
  following.older = 0;
}

/** Takes an entry with an older one out. @param left tokens of it that stay where they are */
function unlinkLater(slot: u32, session: Session, left: u32): void {
  const more = session.behind + left;
  addToSessionsColumn(SESSIONS_LISTED_TOKENS, slot, -(session.own + session.behind));
  sessionAt(session.older).newer = session.newer;
  if (session.newer == 0) {
    setSessionsColumn(SESSIONS_NEWEST, slot, session.older);
    setSessionsColumn(SESSIONS_UNLISTED, slot, min(sessionsColumn(SESSIONS_UNLISTED, slot) + more, UNLISTED_MAX));
    return;
  }
  const following = sessionAt(session.newer);
  following.older = session.older;
  following.behind += more;
  addToSessionsColumn(SESSIONS_LISTED_TOKENS, slot, more);
}

/** Lapsed entries at the head of a list lie behind no protected one: they leave it. */
function dropLapsed(slot: u32): void {
  for (let entry = sessionsColumn(SESSIONS_OLDEST, slot); entry != 0; entry = sessionsColumn(SESSIONS_OLDEST, slot)) {
    const session = sessionAt(entry);
    if (session.state != SESSION_LISTED) return;
    session.state = SESSION_LAPSED;
    unlinkOldest(slot, session);
    uncount(session);
  }
}

/** Takes an entry out of its home's list. @param left tokens of it that stay where they are */
function unlink(session: Session, left: u32): void {
  const slot = session.home;
  if (session.older == 0) unlinkOldest(slot, session);
  else unlinkLater(slot, session, left);
  uncount(session);
  dropLapsed(slot);
}

/** Appends an entry at the end of its home's list, as the one used last. */
function append(entry: u32, session: Session): void {
  const slot = session.home;
  const newest = sessionsColumn(SESSIONS_NEWEST, slot);
  session.behind = newest == 0 ? 0 : sessionsColumn(SESSIONS_UNLISTED, slot);
  session.older = newest;
  session.newer = 0;
  setSessionsColumn(SESSIONS_UNLISTED, slot, 0);
  if (newest == 0) setSessionsColumn(SESSIONS_OLDEST, slot, entry);
  else sessionAt(newest).newer = entry;
  setSessionsColumn(SESSIONS_NEWEST, slot, entry);
  addToSessionsColumn(SESSIONS_LISTED_TOKENS, slot, session.own + session.behind);
}

/** Returns whether a new session may have an entry. */
function mayBeTaken(at: u32): bool {
  const state = sessionAt(at).state;
  return state == SESSION_FREE || state == SESSION_LAPSED;
}

/** Returns whether sessionTake() would find an entry. */
export function sessionAvailable(): bool {
  const head = sessionsHead();
  if (head.made + 1 < SESSION_ENTRIES) return true;
  let at = head.hand;
  for (let i: u32 = 0; i < LOOKED_AT_MAX; i++) {
    at = (at % head.made) + 1;
    if (mayBeTaken(at)) return true;
  }
  return false;
}

/**
 * An entry for a new session: one that was never used, a free one, or the lapsed one of some that was used longest ago.
 * @returns 0 when none was found: the request passes without one
 */
export function sessionTake(): u32 {
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'a session is made under the commit lock');
  const head = sessionsHead();
  if (head.made + 1 < SESSION_ENTRIES) return ++head.made;
  let best: u32 = 0;
  let lapsed: u32 = 0;
  for (let i: u32 = 0; i < LOOKED_AT_MAX && lapsed < LAPSED_MAX; i++) {
    head.hand = (head.hand % head.made) + 1;
    const session = sessionAt(head.hand);
    if (session.state == SESSION_FREE) return head.hand;
    if (session.state != SESSION_LAPSED) continue;
    lapsed++;
    if (best == 0 || session.lastUse < sessionAt(best).lastUse) best = head.hand;
  }
  if (best != 0) sessionFree(best);
  return best;
}

/** Forgets a session. */
export function sessionFree(entry: u32): void {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  const session = sessionAt(entry);
  const state = session.state;
  if (state == SESSION_RUNNING) return;
  setAnchors(entry, 0, 0);
  session.ages = 0;
  session.state = SESSION_FREE;
  if (state == SESSION_IDLE || state == SESSION_LISTED) unlink(session, session.own);
  session.turns = 0;
}

/** Counts what a session shares with others on its home, and what it holds alone. */
function countTokens(session: Session, tokens: u32, shared: u32, prefix: u64): void {
  const counted = shared != 0 && prefix != 0 && countPrefix(prefix, session.home, shared);
  session.prefix = counted ? prefix : 0;
  session.shared = counted ? shared : 0;
  session.own = tokens > session.shared ? tokens - session.shared : 0;
}

/**
 * A turn of a session begins on an endpoint.
 * @param tokens of its prompt
 * @param shared tokens of its beginning that others share, up to the block with the hash `prefix`
 * @param ticket ledger entry + 1
 */
export function sessionBegin(
  entry: u32,
  slot: u32,
  tokens: u32,
  shared: u32,
  prefix: u64,
  ticket: u32,
  now: f64,
): void {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  const session = sessionAt(entry);
  if (ASSERTIONS) assert(session.state != SESSION_RUNNING, 'a session has one turn at a time');
  // What it protects already, the prefix left out: that is counted for others as well.
  const before = session.state == SESSION_IDLE && session.home == slot ? session.own : 0;
  if (isListed(session)) {
    // What it leaves on another endpoint stays there until the engine forgets it.
    const left = session.home == slot ? 0 : session.own;
    session.state = session.state == SESSION_IDLE ? SESSION_LAPSED : session.state;
    unlink(session, left);
  }
  session.state = SESSION_RUNNING;
  session.home = <u16>slot;
  session.ticket = ticket;
  session.lastUse = now;
  session.ages &= IS_NAMED;
  if (session.turns != 0xff) session.turns++;
  countTokens(session, tokens, shared, prefix);
  addToSessionsColumn(SESSIONS_RUNNING_TOKENS, slot, session.own);
  setTokensLeft(tokensLeft() - (<f64>session.own - <f64>before));
}

/**
 * A session turns out to share its beginning: others go on from it.
 * @param shared tokens up to the block with the hash `prefix`, no more than it has
 */
export function sessionShare(entry: u32, shared: u32, prefix: u64): void {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  const session = sessionAt(entry);
  const runs = session.state == SESSION_RUNNING;
  if ((!runs && !isListed(session)) || session.home == NO_HOME || session.prefix == prefix) return;
  const tokens = session.own + session.shared;
  if (shared <= session.shared || shared > tokens || !countPrefix(prefix, session.home, shared)) return;
  if (session.prefix != 0) nestPrefix(prefix, session.prefix, session.home);
  uncount(session);
  session.prefix = prefix;
  const column = runs ? SESSIONS_RUNNING_TOKENS : SESSIONS_LISTED_TOKENS;
  addToSessionsColumn(column, session.home, tokens - shared - session.own);
  session.shared = shared;
  session.own = tokens - shared;
}

/** What a session shares begins with what others share too, up to the block with the hash `within`. */
export function sessionNest(entry: u32, within: u64): void {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  const session = sessionAt(entry);
  if (session.prefix != 0 && session.home != NO_HOME) nestPrefix(session.prefix, within, session.home);
}

/** The same for a beginning of `tokens` tokens that no session here may count by itself. */
export function sessionNestIn(entry: u32, within: u64, tokens: u32): void {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  const slot = sessionAt(entry).home;
  if (sessionAt(entry).prefix == 0 || slot == NO_HOME || !countPrefix(within, slot, tokens)) return;
  sessionNest(entry, within);
  uncountPrefix(within, slot);
}

/** A running turn has `tokens` tokens of prompt and output by now. */
export function sessionGrow(entry: u32, tokens: u32): void {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  const session = sessionAt(entry);
  if (session.state != SESSION_RUNNING || tokens <= session.own + session.shared) return;
  const grown = tokens - session.shared - session.own;
  session.own += grown;
  if (session.home != NO_HOME) addToSessionsColumn(SESSIONS_RUNNING_TOKENS, session.home, grown);
}

/** The turn of a session ends: its tokens are the ones that the engine forgets last. */
export function sessionEnd(entry: u32, now: f64): void {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  const session = sessionAt(entry);
  if (session.state != SESSION_RUNNING) return;
  session.ticket = 0;
  session.lastUse = now;
  if (session.home == NO_HOME) {
    session.state = SESSION_LAPSED;
    return;
  }
  session.state = SESSION_IDLE;
  addToSessionsColumn(SESSIONS_RUNNING_TOKENS, session.home, -session.own);
  append(entry, session);
}

/**
 * A new session that was used some time ago takes its place in the list of its endpoint; a lapsed one only where a
 * protected session is older.
 * @param tokens as at the begin of a turn, with `shared` and `prefix`
 * @param idle tenths of a second that it was idle when it lapsed, -1 = it is protected
 */
export function sessionPut(entry: u32, slot: u32, tokens: u32, shared: u32, prefix: u64, idle: i32, time: f64): void {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  const session = sessionAt(entry);
  if (ASSERTIONS) assert(session.state == SESSION_FREE, 'the session is a new one');
  session.home = <u16>slot;
  session.ticket = 0;
  session.lastUse = time;
  session.behind = 0;
  session.idle = <u16>max(idle, 0);
  countTokens(session, tokens, shared, prefix);
  session.state = idle < 0 ? SESSION_IDLE : SESSION_LISTED;
  insert(entry, session);
  addToSessionsColumn(SESSIONS_LISTED_TOKENS, slot, session.own);
  dropLapsed(slot);
  if (isListed(session)) setTokensLeft(tokensLeft() - <f64>session.own);
}

/** The tokens of an idle session are given away. */
export function sessionLapse(entry: u32): void {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  const session = sessionAt(entry);
  if (session.state != SESSION_IDLE) return;
  session.idle = <u16>tenths(sessionsHead().clock - session.lastUse);
  session.state = SESSION_LISTED;
  dropLapsed(session.home);
}

/**
 * Lapses the sessions that the engine has forgotten: what is in use beyond its cache pushed the oldest ones out.
 * @param capacity tokens of the cache
 * @returns how many
 */
export function sessionsForgotten(slot: u32, capacity: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  let count: u32 = 0;
  for (let entry = sessionsColumn(SESSIONS_OLDEST, slot); entry != 0; entry = sessionsColumn(SESSIONS_OLDEST, slot)) {
    if (sessionsUsed(slot) <= capacity) break;
    sessionAt(entry).ages |= WAS_FORGOTTEN;
    sessionLapse(entry);
    count++;
  }
  return count;
}

/** Lapses and counts the sessions that an engine has forgotten beyond its cache, where its size is known. */
export function forgetBeyondCache(slot: u32): void {
  if (sessionsColumn(SESSIONS_OLDEST, slot) == 0) return;
  const capacity = cacheTokens(slot);
  if (capacity <= 0) return;
  const count = sessionsForgotten(slot, <u32>capacity);
  if (count != 0) sessionsCount(SESSIONS_FORGOTTEN, count);
}

/** An endpoint is gone, and all that was on it: its idle sessions lapse, and none has its home there. */
export function sessionsLeave(slot: u32): void {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  for (let entry = sessionsColumn(SESSIONS_OLDEST, slot); entry != 0; entry = sessionsColumn(SESSIONS_OLDEST, slot)) {
    sessionLapse(entry);
  }
  for (let entry: u32 = 1; entry <= sessionsHead().made; entry++) {
    const session = sessionAt(entry);
    if (session.state == SESSION_FREE || session.home != slot) continue;
    if (session.state == SESSION_RUNNING) {
      uncount(session);
      session.prefix = 0;
      addToSessionsColumn(SESSIONS_RUNNING_TOKENS, slot, -session.own);
    }
    // The next endpoint in the slot is no session's home.
    session.home = <u16>NO_HOME;
    // No end is heard of a turn on an endpoint that is gone.
    if (isElsewhere(session)) sessionEnd(entry, session.lastUse);
  }
  setSessionsColumn(SESSIONS_OTHERS_RUNNING, slot, 0);
  setSessionsColumn(SESSIONS_PICKED, slot, 0);
}

/** Puts an entry into its home's list by its last use. */
function insert(entry: u32, session: Session): void {
  const slot = session.home;
  let older = sessionsColumn(SESSIONS_NEWEST, slot);
  while (older != 0 && sessionAt(older).lastUse > session.lastUse) older = sessionAt(older).older;
  const newer = older == 0 ? sessionsColumn(SESSIONS_OLDEST, slot) : sessionAt(older).newer;
  session.older = older;
  session.newer = newer;
  if (older == 0) setSessionsColumn(SESSIONS_OLDEST, slot, entry);
  else sessionAt(older).newer = entry;
  if (newer == 0) setSessionsColumn(SESSIONS_NEWEST, slot, entry);
  else sessionAt(newer).older = entry;
}

function countAgain(session: Session): void {
  if (session.prefix == 0 || countPrefix(session.prefix, session.home, session.shared)) return;
  session.prefix = 0;
  session.own += session.shared;
  session.shared = 0;
}

/** Makes lists, sums and prefixes again from the entries, after a thread was ended with the lock. */
export function sessionsRepair(): void {
  prefixesClear();
  for (let slot: u32 = 0; slot < SLOTS; slot++) {
    setSessionsColumn(SESSIONS_OLDEST, slot, 0);
    setSessionsColumn(SESSIONS_NEWEST, slot, 0);
    setSessionsColumn(SESSIONS_LISTED_TOKENS, slot, 0);
    setSessionsColumn(SESSIONS_RUNNING_TOKENS, slot, 0);
  }
  for (let entry: u32 = 1; entry <= sessionsHead().made; entry++) {
    const session = sessionAt(entry);
    if (session.state == SESSION_RUNNING && session.home < SLOTS) {
      countAgain(session);
      addToSessionsColumn(SESSIONS_RUNNING_TOKENS, session.home, session.own);
    } else if (isListed(session)) {
      countAgain(session);
      insert(entry, session);
    }
  }
  for (let slot: u32 = 0; slot < SLOTS; slot++) {
    let sum: u32 = 0;
    for (let entry = sessionsColumn(SESSIONS_OLDEST, slot); entry != 0; entry = sessionAt(entry).newer) {
      const session = sessionAt(entry);
      if (session.older == 0) session.behind = 0;
      sum += session.own + session.behind;
    }
    setSessionsColumn(SESSIONS_LISTED_TOKENS, slot, sum);
    if (sum == 0) setSessionsColumn(SESSIONS_UNLISTED, slot, 0);
    dropLapsed(slot);
  }
}

/**
 * Checks that lists, sums and prefixes follow from the entries.
 * @returns 0, or the first thing that does not add up: 1 tokens of running sessions, 2 a list or its tokens, 3 tokens
 * of prefixes, 4 a lapsed session at the head of a list, 5 entries of the lists
 */
export function sessionsCheck(): u32 {
  const made = sessionsHead().made;
  if (made == 0) return 0;
  let listed: u32 = 0;
  for (let slot: u32 = 0; slot < SLOTS; slot++) {
    let running: u32 = 0;
    for (let entry: u32 = 1; entry <= made; entry++) {
      const session = sessionAt(entry);
      if (session.state == SESSION_RUNNING && session.home == slot) running += session.own;
    }
    if (running != sessionsColumn(SESSIONS_RUNNING_TOKENS, slot)) return 1;
    let sum: u32 = 0;
    let older: u32 = 0;
    for (let entry = sessionsColumn(SESSIONS_OLDEST, slot); entry != 0; entry = sessionAt(entry).newer) {
      const session = sessionAt(entry);
      if (session.older != older || session.home != slot || !isListed(session) || ++listed > made) return 2;
      if (older == 0 && session.state != SESSION_IDLE) return 4;
      sum += session.own + session.behind;
      older = entry;
    }
    if (older != sessionsColumn(SESSIONS_NEWEST, slot) || sum != sessionsColumn(SESSIONS_LISTED_TOKENS, slot)) return 2;
    if (prefixTokensOf(slot) != sessionsColumn(SESSIONS_PREFIX_TOKENS, slot)) return 3;
  }
  for (let entry: u32 = 1; entry <= made; entry++) if (isListed(sessionAt(entry))) listed--;
  return listed == 0 ? 0 : 5;
}
