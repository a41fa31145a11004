// Turns of sessions that replicas tell each other.
//
// Owns: the news of REGION_SESSIONS: the ring (any thread, commit lock) and the record behind it (control thread). The
// control thread reads the ring without a lock, and sees by the number of the records whether some were overwritten.
//
// A session of a peer is an entry as any other, so that its return to this replica is recognised and its tokens count
// as used. It is idle in the list of its endpoint also while its turn is in flight at the peer: it has no ledger entry
// here. Its `ticket` is the tag of the peer then, and it counts as returned: its room is not given away.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_GENERATION } from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockHeld, lockRelease } from '../lock';
import { SLOTS } from '../memory';
import { isTime } from '../preconditions';
import { ROOM_CAPACITY } from './layout';
import * as room from './room';
import { sessionBegin, sessionEnd, sessionsForgotten, sessionTake } from './sessions';
import { anchorOf, setAnchors } from './sessions-anchors';
import {
  HAS_RETURNED,
  isElsewhere,
  isSession,
  NEWS_WRITTEN,
  NO_HOME,
  PEER_TAG,
  SESSION_NEWS,
  SESSION_RUNNING,
  SESSIONS_FORGOTTEN,
  SESSIONS_UNCOUNTED,
  Session,
  SessionNews,
  sessionAt,
  sessionNewsAddress,
  sessionNewsAt,
  sessionNewsHead,
  sessionsCount,
  sessionsHead,
  sessionsOn,
} from './sessions-layout';
import { noteReturn } from './sessions-returns';

const SHORT: u32 = 20;
/** Milliseconds after which a turn at a peer of which no end was told counts as ended. */
const ELSEWHERE_MAX: f64 = 600_000;

/** Turns are told to peers, or not. Takes the commit lock. @returns 0, or 1 when it could not be had */
export function sessionsTell(tells: u32): u32 {
  if (ASSERTIONS) assert(tells <= 1, 'turns are told or not');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  sessionNewsHead().tells = tells;
  lockRelease(COMMIT_LOCK);
  return 0;
}

function write(session: Session, before: u64, begins: u32): void {
  const head = sessionNewsHead();
  if (head.tells == 0 || session.home == NO_HOME || session.anchor == 0) return;
  const news = sessionNewsAt(head.written % SESSION_NEWS);
  news.before = before;
  news.anchor = session.anchor;
  news.earlyAnchor = session.earlyAnchor;
  news.prefix = session.prefix;
  news.slot = session.home;
  news.generation = column.u32(COLUMN_GENERATION, session.home);
  news.tokens = session.own + session.shared;
  news.shared = session.shared;
  news.begins = begins;
  atomic.store<u32>(sessionNewsAddress() + NEWS_WRITTEN, head.written + 1);
}

/** A turn has begun here. @param before anchor that its session had, 0 = it is new */
export function tellBegin(entry: u32, before: u64): void {
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'news is written under the commit lock');
  write(sessionAt(entry), before, 1);
}

/** A turn has ended here. */
export function tellEnd(entry: u32): void {
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'news is written under the commit lock');
  write(sessionAt(entry), 0, 0);
}

function comesBack(session: Session): void {
  session.ticket = 0;
  session.ages &= ~HAS_RETURNED;
}

/** A turn at a peer of which nothing was heard for long counts as ended. */
export function endElsewhere(session: Session, now: f64): void {
  if (isElsewhere(session) && now - session.lastUse > ELSEWHERE_MAX) comesBack(session);
}

/** Entry of the session that a peer tells of, 0 = it is not known here. */
function entryOf(news: SessionNews): u32 {
  const entry = news.before == 0 ? 0 : anchorOf(news.before);
  return entry != 0 ? entry : anchorOf(news.anchor);
}

function hear(news: SessionNews, tag: u32, now: f64): void {
  let entry = entryOf(news);
  // The client has asked both: what is in flight here is what counts here.
  if (entry != 0 && sessionAt(entry).state == SESSION_RUNNING) return;
  const isKnown = entry != 0;
  if (!isKnown) entry = sessionTake();
  if (entry == 0) {
    sessionsCount(SESSIONS_UNCOUNTED, 1);
    return;
  }
  const session = sessionAt(entry);
  const turns = session.turns;
  if (isKnown && news.begins != 0) noteReturn(session, now);
  sessionBegin(entry, news.slot, news.tokens, news.shared, news.prefix, 0, now);
  sessionEnd(entry, now);
  if (!isKnown || news.begins != 0) setAnchors(entry, news.anchor, news.earlyAnchor);
  const capacity = room.f32(ROOM_CAPACITY, news.slot);
  if (capacity > 0) sessionsCount(SESSIONS_FORGOTTEN, sessionsForgotten(news.slot, <u32>capacity));
  if (news.begins == 0) {
    if (turns != 0) session.turns = turns;
    return;
  }
  session.ticket = tag | PEER_TAG;
  session.ages |= HAS_RETURNED;
}

/**
 * Takes the record behind the ring, which a peer tells. Takes the commit lock.
 * @param tag number of the peer, below 2^31
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function sessionsHear(tag: u32, now: f64): u32 {
  const news = sessionNewsAt(SESSION_NEWS);
  if (ASSERTIONS) assert((tag & PEER_TAG) == 0, 'the tag of a peer has 31 bits');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (ASSERTIONS) assert(news.slot < SLOTS, 'the slot is one of the pool');
  if (ASSERTIONS) assert(news.shared <= news.tokens, 'what is shared is a part of the tokens');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  const head = sessionsHead();
  if (now > head.clock) head.clock = now;
  const isCurrent = column.u32(COLUMN_GENERATION, news.slot) == news.generation;
  if (sessionsOn() && isCurrent && news.anchor != 0) hear(news, tag, head.clock);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/**
 * A peer is gone, or news of it was lost: its turns in flight count as ended. Takes the commit lock.
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function sessionsPeerGone(tag: u32): u32 {
  if (ASSERTIONS) assert((tag & PEER_TAG) == 0, 'the tag of a peer has 31 bits');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  const made = sessionsHead().made;
  for (let entry: u32 = 1; entry <= made; entry++) {
    const session = sessionAt(entry);
    if (isElsewhere(session) && session.ticket == (tag | PEER_TAG)) comesBack(session);
  }
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** Whether a session has a turn in flight at a peer. For tests. */
export function sessionIsElsewhere(entry: u32): u32 {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  return u32(isElsewhere(sessionAt(entry)));
}
