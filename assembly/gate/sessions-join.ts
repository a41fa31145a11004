// Sessions as a whole: what a replica that joins is told of them, and those that this one is told.
//
// Owns: the record behind the news of REGION_SESSIONS (control thread, commit lock held). It enters sessions, in the
// entries and lists of the same region, with the functions of sessions.ts.
//
// A session that is told stands in the list of its endpoint by its last use, as if its turns had been told one by one.
// What is known already is newer, and stays.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_GENERATION } from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { forgetBeyondCache, sessionBegin, sessionPut, sessionTake } from './sessions';
import { anchorOf, setAnchors } from './sessions-anchors';
import { notePick } from './sessions-hosts';
import {
  HAS_RETURNED,
  IS_NAMED,
  isSession,
  NO_HOME,
  PEER_TAG,
  SESSION_FREE,
  SESSION_LAPSED,
  SESSION_LISTED,
  SESSION_RUNNING,
  SESSIONS_NEWEST,
  Session,
  sessionAt,
  sessionsColumn,
  sessionsHead,
  sessionsOn,
  WAS_FORGOTTEN,
} from './sessions-layout';
import {
  NEWS_IS_FORGOTTEN,
  NEWS_IS_LAPSED,
  NEWS_IS_NAMED,
  NEWS_IS_WAITING,
  SESSION_NEWS,
  SessionNews,
  sessionNewsAt,
} from './sessions-news';
import { checkTold, hearWithin, writeWithin } from './sessions-peers';

const SHORT: u32 = 20;
/** Sessions used later, in the list of an endpoint, behind which the place of one that is told is not looked for. */
const LATER_MAX: u32 = 1024;

function marksOf(session: Session): u32 {
  const isLapsed = session.state == SESSION_LISTED || session.state == SESSION_LAPSED;
  return (
    ((session.ages & IS_NAMED) != 0 ? NEWS_IS_NAMED : 0) |
    ((session.ages & HAS_RETURNED) != 0 ? NEWS_IS_WAITING : 0) |
    ((session.ages & WAS_FORGOTTEN) != 0 ? NEWS_IS_FORGOTTEN : 0) |
    (isLapsed ? NEWS_IS_LAPSED : 0)
  );
}

function write(session: Session): void {
  const news = sessionNewsAt(SESSION_NEWS);
  news.before = 0;
  news.anchor = session.anchor;
  news.earlyAnchor = session.earlyAnchor;
  news.prefix = session.prefix;
  news.slot = session.home;
  news.generation = column.u32(COLUMN_GENERATION, session.home);
  news.tokens = session.own + session.shared;
  news.shared = session.shared;
  writeWithin(news);
  news.begins = u32(session.state == SESSION_RUNNING);
  news.marks = marksOf(session);
  news.turns = session.turns;
  news.age = <u32>min<f64>(max<f64>(sessionsHead().clock - session.lastUse, 0), i32.MAX_VALUE);
  news.idle = session.idle;
  news.peer = (session.ticket & PEER_TAG) == 0 ? 0 : session.ticket & ~PEER_TAG;
}

/**
 * Writes a session into the record behind the ring. Takes the commit lock.
 * @returns 0, 1 when the lock could not be had, or 2 when there is nothing to tell: its entry is free by now, its
 * endpoint is gone, or no prompt is known to go on from it
 */
export function sessionExport(entry: u32): u32 {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  const session = sessionAt(entry);
  const told = sessionsOn() && session.state != SESSION_FREE && session.anchor != 0 && session.home != NO_HOME;
  if (told) write(session);
  lockRelease(COMMIT_LOCK);
  return told ? 0 : 2;
}

/** Whether few sessions of an endpoint's list were used after a time. */
function isNear(slot: u32, time: f64): bool {
  let entry = sessionsColumn(SESSIONS_NEWEST, slot);
  for (let i: u32 = 0; entry != 0 && sessionAt(entry).lastUse > time; i++) {
    if (i == LATER_MAX) return false;
    entry = sessionAt(entry).older;
  }
  return true;
}

/** @param ticket tag of the peer where its turn is in flight or waits, with PEER_TAG */
function put(entry: u32, news: SessionNews, ticket: u32, time: f64): void {
  const session = sessionAt(entry);
  if (news.begins != 0) {
    sessionBegin(entry, news.slot, news.tokens, news.shared, news.prefix, ticket, time);
  } else {
    const idle = (news.marks & NEWS_IS_LAPSED) == 0 ? -1 : <i32>news.idle;
    sessionPut(entry, news.slot, news.tokens, news.shared, news.prefix, idle, time);
    if ((news.marks & NEWS_IS_WAITING) != 0) {
      session.ticket = ticket;
      session.ages |= HAS_RETURNED;
    }
  }
  hearWithin(entry, news);
  if ((news.marks & NEWS_IS_FORGOTTEN) != 0) session.ages |= WAS_FORGOTTEN;
  if ((news.marks & NEWS_IS_NAMED) != 0) session.ages |= IS_NAMED;
  session.turns = <u8>min<u32>(news.turns, 0xff);
  setAnchors(entry, news.anchor, news.earlyAnchor);
}

/** @returns whether the session is known by it now */
function learn(news: SessionNews, tag: u32, now: f64): bool {
  const named = (news.marks & NEWS_IS_NAMED) == 0 ? 0 : news.earlyAnchor;
  if (anchorOf(news.anchor) != 0 || (named != 0 && anchorOf(named) != 0)) return false;
  const time = max<f64>(now - <f64>news.age, 0);
  if (!isNear(news.slot, time)) return false;
  const entry = sessionTake();
  if (entry == 0) return false;
  notePick(news.slot, true);
  put(entry, news, (news.peer == 0 ? tag : news.peer) | PEER_TAG, time);
  forgetBeyondCache(news.slot);
  return true;
}

/**
 * Takes the session in the record behind the ring, which a peer tells. Takes the commit lock.
 * @param tag number of the peer, below 2^31
 * @returns 0, 1 when the lock could not be had, or 2 when it is passed over: it is known already, its endpoint has
 * left, too many sessions were used there later, or no entry is left for it
 */
export function sessionImport(tag: u32, now: f64): u32 {
  const news = sessionNewsAt(SESSION_NEWS);
  checkTold(news, tag, now);
  if (ASSERTIONS) assert((news.peer & PEER_TAG) == 0, 'the tag of a peer has 31 bits');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  const head = sessionsHead();
  if (now > head.clock) head.clock = now;
  const isCurrent = column.u32(COLUMN_GENERATION, news.slot) == news.generation;
  const learnt = sessionsOn() && isCurrent && news.anchor != 0 && learn(news, tag, head.clock);
  lockRelease(COMMIT_LOCK);
  return learnt ? 0 : 2;
}
