// Turns of sessions that replicas tell each other.
//
// Owns: the news of REGION_SESSIONS: the ring (any thread, commit lock) and the record behind it (control thread). The
// control thread reads the ring without a lock, and sees by the number of the records whether some were overwritten.
//
// A session of a peer is an entry as any other, so that its return to this replica is recognised and its tokens count
// as used. While its turn is in flight at the peer it runs here too, without a ledger entry: its `ticket` is the tag of
// the peer. So every replica sees the same sessions run, and finds the pool crowded at the same load. While its turn
// waits at the peer it has come back here too, with the same tag: else the odds of a return would count each wait as a
// long pause, and replicas would give away what is worth its room. What one gives away the others do not protect. News
// of a wait is a begin without tokens, and of what lapses an end without tokens.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_GENERATION } from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockHeld, lockRelease } from '../lock';
import { SLOTS } from '../memory';
import { isTime } from '../preconditions';
import {
  forgetBeyondCache,
  sessionBegin,
  sessionEnd,
  sessionLapse,
  sessionNestIn,
  sessionShare,
  sessionTake,
} from './sessions';
import { anchorOf, setAnchors } from './sessions-anchors';
import { notePick } from './sessions-hosts';
import {
  IS_NAMED,
  isElsewhere,
  isSession,
  NO_HOME,
  PEER_TAG,
  SESSION_RUNNING,
  SESSIONS_UNCOUNTED,
  Session,
  sessionAt,
  sessionsCount,
  sessionsHead,
  sessionsOn,
} from './sessions-layout';
import {
  NEWS_IS_NAMED,
  NEWS_WRITTEN,
  SESSION_NEWS,
  SessionNews,
  sessionNewsAddress,
  sessionNewsAt,
  sessionNewsHead,
} from './sessions-news';
import { countedPrefix, prefixWithin } from './sessions-prefixes';
import { noteGone, noteReturn, noteWait } from './sessions-returns';

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

/** Names the shorter beginning that what a session shares begins with. */
export function writeWithin(news: SessionNews): void {
  const within: u64 = news.prefix == 0 || news.shared == 0 ? 0 : prefixWithin(news.prefix, news.slot);
  const tokens: u32 = within == 0 ? 0 : countedPrefix(within, news.slot);
  const isShorter = tokens != 0 && tokens < news.shared;
  news.within = isShorter ? within : 0;
  news.withinTokens = isShorter ? tokens : 0;
}

/**
 * Takes what a beginning begins with, and lets a session from which it goes on share as far: with the peer's own turn
 * that session has been found to share it.
 */
export function hearWithin(entry: u32, news: SessionNews): void {
  if (news.within != 0) {
    shareWith(news.within, news.withinTokens, news.slot, entry);
    sessionNestIn(entry, news.within, news.withinTokens);
  }
  if (news.prefix != 0) shareWith(news.prefix, news.shared, news.slot, entry);
}

/** The session in flight that a beginning ends with, if there is one on the endpoint, shares all of it. */
function shareWith(hash: u64, tokens: u32, slot: u32, fork: u32): void {
  const parent = anchorOf(hash);
  if (parent == 0 || parent == fork || sessionAt(parent).home != slot) return;
  sessionShare(parent, tokens, hash);
}

function write(session: Session, before: u64, begins: u32, tokens: u32): void {
  const head = sessionNewsHead();
  if (head.tells == 0 || session.home == NO_HOME || session.anchor == 0) return;
  const news = sessionNewsAt(head.written % SESSION_NEWS);
  news.before = before;
  news.anchor = session.anchor;
  news.earlyAnchor = session.earlyAnchor;
  news.prefix = session.prefix;
  news.slot = session.home;
  news.generation = column.u32(COLUMN_GENERATION, session.home);
  news.tokens = tokens;
  news.shared = min(session.shared, tokens);
  writeWithin(news);
  news.begins = begins;
  news.marks = (session.ages & IS_NAMED) != 0 ? NEWS_IS_NAMED : 0;
  atomic.store<u32>(sessionNewsAddress() + NEWS_WRITTEN, head.written + 1);
}

/** A turn has begun here. @param before anchor that its session had, 0 = it is new */
export function tellBegin(entry: u32, before: u64): void {
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'news is written under the commit lock');
  const session = sessionAt(entry);
  write(session, before, 1, session.own + session.shared);
}

/** A turn has ended here. */
export function tellEnd(entry: u32): void {
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'news is written under the commit lock');
  const session = sessionAt(entry);
  write(session, 0, 0, session.own + session.shared);
}

/** The turn of a session waits here: a begin without tokens. It is away no longer. */
export function tellWait(entry: u32): void {
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'news is written under the commit lock');
  write(sessionAt(entry), 0, 1, 0);
}

/** Its room is given away here, or its turn that waited is given up: an end without tokens. */
export function tellLapse(entry: u32): void {
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'news is written under the commit lock');
  write(sessionAt(entry), 0, 0, 0);
}

/** A turn at a peer of which nothing was heard for long counts as ended. */
export function endElsewhere(entry: u32, now: f64): void {
  const session = sessionAt(entry);
  if (now - session.lastUse <= ELSEWHERE_MAX) return;
  if (isElsewhere(session)) sessionEnd(entry, now);
  else if (session.state != SESSION_RUNNING) waitsNoMore(session);
}

/** Entry of the session that a peer tells of, 0 = it is not known here. */
function entryOf(news: SessionNews): u32 {
  const entry = news.before == 0 ? 0 : anchorOf(news.before);
  return entry != 0 ? entry : anchorOf(news.anchor);
}

/** A session without a turn in flight has come back at a peer and waits there, or has lapsed there. */
function hearOfIdle(entry: u32, waits: bool, tag: u32, now: f64): void {
  const session = sessionAt(entry);
  if (session.state == SESSION_RUNNING) return;
  if (waits) {
    noteWait(session, now);
    session.ticket = tag | PEER_TAG;
    return;
  }
  waitsNoMore(session);
  sessionLapse(entry);
}

/** No turn of a session waits at a peer. */
function waitsNoMore(session: Session): void {
  if ((session.ticket & PEER_TAG) == 0) return;
  session.ticket = 0;
  noteGone(session);
}

function hear(news: SessionNews, tag: u32, now: f64): void {
  let entry = entryOf(news);
  // The client has asked both: what is in flight here is what counts here.
  if (entry != 0 && sessionAt(entry).state == SESSION_RUNNING && !isElsewhere(sessionAt(entry))) return;
  if (news.tokens == 0) {
    if (entry != 0) hearOfIdle(entry, news.begins != 0, tag, now);
    return;
  }
  const isKnown = entry != 0;
  if (!isKnown) entry = sessionTake();
  if (entry == 0) {
    sessionsCount(SESSIONS_UNCOUNTED, 1);
    return;
  }
  const session = sessionAt(entry);
  const turns = session.turns;
  const begins = news.begins != 0;
  if (isElsewhere(session)) sessionEnd(entry, now);
  else if (isKnown && begins) noteReturn(session, now);
  // As a pick of one's own, so that caches which only peers pick are room for sessions here as well.
  notePick(news.slot, true);
  sessionBegin(entry, news.slot, news.tokens, news.shared, news.prefix, begins ? tag | PEER_TAG : 0, now);
  hearWithin(entry, news);
  if (!isKnown || begins) {
    setAnchors(entry, news.anchor, news.earlyAnchor);
    if ((news.marks & NEWS_IS_NAMED) != 0 && news.earlyAnchor != 0) session.ages |= IS_NAMED;
  }
  if (!begins) {
    sessionEnd(entry, now);
    if (turns != 0) session.turns = turns;
  }
  forgetBeyondCache(news.slot);
}

/** Whether the shorter beginning of a record is none, or shorter than the one that it tells. */
function namesShorter(news: SessionNews): bool {
  const tokens = news.withinTokens;
  return news.within == 0 ? tokens == 0 : tokens != 0 && tokens < news.shared;
}

/** Asserts what holds of a record that a peer tells. */
export function checkTold(news: SessionNews, tag: u32, now: f64): void {
  if (ASSERTIONS) assert((tag & PEER_TAG) == 0, 'the tag of a peer has 31 bits');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (ASSERTIONS) assert(news.slot < SLOTS, 'the slot is one of the pool');
  if (ASSERTIONS) assert(news.shared <= news.tokens, 'what is shared is a part of the tokens');
  if (ASSERTIONS) assert(namesShorter(news), 'what lies within what is shared is a part of it');
}

/**
 * Takes the record behind the ring, which a peer tells. Takes the commit lock.
 * @param tag number of the peer, below 2^31
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function sessionsHear(tag: u32, now: f64): u32 {
  const news = sessionNewsAt(SESSION_NEWS);
  checkTold(news, tag, now);
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
    if (session.ticket != (tag | PEER_TAG)) continue;
    if (isElsewhere(session)) sessionEnd(entry, sessionsHead().clock);
    else waitsNoMore(session);
  }
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** Whether a session has a turn in flight at a peer. For tests. */
export function sessionIsElsewhere(entry: u32): u32 {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  return u32(isElsewhere(sessionAt(entry)));
}
