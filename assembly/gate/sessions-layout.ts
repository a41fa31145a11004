// Layout of the sessions: chains of prompts each of which begins with the one before, and what they hold on endpoints.
//
// Owns: REGION_SESSIONS, in this order: the head (SessionsHead and its tables), SESSION_ENTRIES entries (64 bytes
// each, number 0 stands for none), SESSION_ANCHORS words of the anchor table (8 bytes each), a mask of each of its
// buckets (4 bytes), SESSION_PREFIXES counted prefixes (24 bytes each), REQUESTS turns (16 bytes each),
// a row of SESSION_COLUMNS cells for each slot, and the news for peers (sessions-news.ts). All is written under the
// commit lock; the anchor table is read without one. A region of zeros is a valid one without sessions.
import { ASSERTIONS } from '../assertions';
import { REQUESTS, SLOTS } from '../memory';
import { SESSION_NEWS_REGION_BYTES, sessionNewsBind } from './sessions-news';

/** Milliseconds for which a pool that is crowded stays so after its sessions have room again. */
export const CROWDED_MS: f64 = 60_000;

/** Head of the region. */
@unmanaged
export class SessionsHead {
  /** Entries that were ever used, from 1 on · any thread · commit lock. */
  made: u32;
  /** Entry at which the search for one to use again goes on · any thread · commit lock. */
  hand: u32;
  /** Counted prefixes in the table · any thread · commit lock. */
  prefixes: u32;
  /** SESSIONS_* mode · control thread · commit lock, read without it. */
  mode: u32;
  /** Share of a cache below which a prompt is no session's turn · control thread · commit lock. */
  small: f32;
  /**
   * Milliseconds in which an engine computes as many tokens as its cache holds, or has them back from its tiers ·
   * control thread · commit lock.
   */
  refill: f32;
  /** Milliseconds of the pool clock of the latest event · any thread · commit lock. */
  clock: f64;
  /** Milliseconds of the pool clock at which the returns were halved last · control thread · commit lock. */
  halved: f64;
  /** Entry at which the look for idle sessions goes on · control thread · commit lock. */
  looked: u32;
  /** Place of the next length in the ring of shared lengths · any thread · commit lock. */
  lengths: u32;
  /** Tokens below which a prompt is small on every endpoint · control thread · commit lock, read without it. */
  smallTokens: u32;
  /** Share of a cache that a turn may exceed once it was held for long · control thread · commit lock. */
  stretch: f32;
  /** Milliseconds after which a held turn goes on without room, 0 = never · control thread · commit lock. */
  maxWait: f32;
  /** Turns that are held · any thread · commit lock, read without it. */
  held: u32;
}

/** Bounds that are given, where others are learned or told. Zeros are none. */
@unmanaged
export class SessionsGiven {
  /** Tokens that a cache holds while its endpoint does not tell, 0 = unknown · control thread · commit lock. */
  capacity: f32;
  /** Share of a cache that sessions may not fill · control thread · commit lock. */
  spared: f32;
  /** Milliseconds for which an idle session is kept, + 1; 0 = as is learned · control thread · commit lock. */
  lease: f32;
  /** Milliseconds after which a session without a place is forgotten, 0 = never · control thread · commit lock. */
  life: f32;
}

/** u32 × 3: for each class of sessions a bit for every age at which an idle one is kept */
export const SESSIONS_KEPT: usize = 64;
/** f32: tokens that all caches of known size hold · control thread · commit lock */
export const SESSIONS_CACHES: usize = 76;
/** f64: tokens by which sessions may grow in all caches before a turn is held · any thread · commit lock */
export const SESSIONS_LEFT: usize = 80;
/** f64: milliseconds of the pool clock until which the pool is crowded, 0 = it is not · any thread · commit lock */
export const SESSIONS_CROWDED: usize = 88;
/** u32 × SHARED_LENGTHS: blocks of the beginnings that were found to be shared last */
export const SESSIONS_LENGTHS: usize = 96;
/** u64 × SESSION_COUNTERS */
export const SESSIONS_COUNTERS: usize = 128;
/** f32 × 3 × AGES × 2: returns at an age, and sessions that reached it; of each class */
export const SESSIONS_RETURNS: usize = 512;
/** u64 × AGES: pauses that have ended, by their bin */
export const SESSIONS_PAUSES: usize = 1280;
/** f64: milliseconds of all of them */
export const SESSIONS_PAUSES_SUM: usize = 1536;
/** SessionsGiven */
export const SESSIONS_GIVEN: usize = 1552;
/** f64: tokens of caches that held turns would fill · any thread · commit lock */
export const SESSIONS_HELD_CLAIMS: usize = 1568;
export const SESSIONS_HEAD_BYTES: usize = 1600;

export const SESSIONS_OFF: u32 = 0;
export const SESSIONS_SHADOW: u32 = 1; // counted, and decisions do not ask it
export const SESSIONS_ON: u32 = 2; // turns without room are held

/** Lengths of shared beginnings that are remembered. */
export const SHARED_LENGTHS: u32 = 8;
/** Classes of sessions by their turns: 1, 2 to 4, 5 and more. */
export const SESSION_CLASSES: u32 = 3;
/** Bins of ages: up to half a second, then each 1.35 times as long as the one before. */
export const AGES: u32 = 32;

// Counters, u64.
export const SESSIONS_RECOGNISED: u32 = 0; // turns of known sessions, by their prompts alone
export const SESSIONS_NEW: u32 = 1; // first turns
export const SESSIONS_FORKED: u32 = 2; // first turns that go on from a prompt of a session with a turn in flight
export const SESSIONS_UNCOUNTED: u32 = 3; // turns without an entry: no session could be forgotten for them
export const SESSIONS_SMALL: u32 = 4; // prompts too small to be a turn
export const SESSIONS_AT_HOME: u32 = 5; // turns of protected sessions
export const SESSIONS_FIT: u32 = 6; // other turns for which an endpoint had room
export const SESSIONS_HELD: u32 = 7; // turns for which none had
export const SESSIONS_GIVEN_UP: u32 = 8; // idle sessions whose room was given away for a turn
export const SESSIONS_FORGOTTEN: u32 = 9; // protected sessions that the engine has forgotten
export const SESSIONS_AGAIN_LAPSED: u32 = 10; // tokens computed again of sessions whose room was given away
export const SESSIONS_AGAIN_LOST: u32 = 11; // tokens computed again of sessions that the engine has forgotten
export const SESSIONS_AGAIN_MOVED: u32 = 12; // tokens computed again of protected sessions that went elsewhere
export const SESSIONS_SAVED: u32 = 13; // tokens of protected sessions that were found in the cache
export const SESSIONS_FORCED: u32 = 14; // held turns that went on without room after the longest wait
export const SESSIONS_NAMED: u32 = 15; // turns of known sessions that their header names
/** first turns of which an endpoint holds a half or more, and turns by header that begin otherwise than the last one */
export const SESSIONS_REWRITTEN: u32 = 16;
export const SESSIONS_MERGED: u32 = 17; // turns under the header of a session from which their prompt does not go on
export const SESSIONS_RENAMED: u32 = 18; // turns whose prompt goes on from an idle session with another header
export const SESSIONS_ENDED: u32 = 19; // sessions that their client has ended
export const SESSIONS_RESUMED: u32 = 20; // turns of sessions that had lost their place
export const SESSIONS_HOLDS_NEW: u32 = 21; // first turns that were held
export const SESSIONS_HOLDS_RESUMED: u32 = 22; // held turns of sessions that had lost their place
export const SESSIONS_HOLDS_PROTECTED: u32 = 23; // held turns of protected sessions, whose home cannot be picked
export const SESSION_COUNTERS: u32 = 24;

/** Numbers of entries are 1 … SESSION_ENTRIES - 1: they fit into 16 bits, and 0 is none. */
export const SESSION_ENTRIES: u32 = 65536;

/** A session. */
@unmanaged
export class Session {
  /** SESSION_* state · any thread · commit lock. */
  state: u16;
  /** Turns so far, 255 = that many or more · any thread · commit lock. */
  turns: u8;
  /**
   * Bins of ages that it was counted in since its last turn, and WAS_FORGOTTEN, HAS_RETURNED, IS_NAMED · any thread ·
   * commit lock.
   */
  ages: u8;
  /** Endpoint slot of its last turn, NO_HOME = it is gone · any thread · commit lock. */
  home: u16;
  /** Tenths of a second that it was idle when it lapsed, 65,535 at most · any thread · commit lock. */
  idle: u16;
  /** Tokens that it holds alone · any thread · commit lock. */
  own: u32;
  /** Tokens of its beginning that it shares with others, counted once for each endpoint · any thread · commit lock. */
  shared: u32;
  /** Tokens without an entry used on its home between the next older session and it · any thread · commit lock. */
  behind: u32;
  /** Entry used on its home before it, 0 = none · any thread · commit lock. */
  older: u32;
  /** Entry used on its home after it, 0 = none · any thread · commit lock. */
  newer: u32;
  /**
   * Ledger entry + 1 of its running turn, 0 = none; of one that runs or waits at a peer, the tag of the peer · any
   * thread · commit lock.
   */
  ticket: u32;
  /** Chain hash of the last block that it shares · any thread · commit lock. */
  prefix: u64;
  /** Chain hash of the last whole block of its last prompt, 0 = none · any thread · commit lock. */
  anchor: u64;
  /**
   * Hash of its header's name; of one without, chain hash of the block at nine tenths, 0 = none · any thread · commit
   * lock.
   */
  earlyAnchor: u64;
  /** Milliseconds of the pool clock at which its last turn began or ended · any thread · commit lock. */
  lastUse: f64;
}

export const SESSION_BYTES: usize = 64;

export const SESSION_FREE: u16 = 0;
export const SESSION_RUNNING: u16 = 1; // a turn is in flight
export const SESSION_IDLE: u16 = 2; // between turns, and its tokens are protected
export const SESSION_LISTED: u16 = 3; // lapsed, and younger than a protected one of its home
export const SESSION_LAPSED: u16 = 4; // its tokens are given away
export const NO_HOME: u32 = 0xffff;

/** Bit of `ages`: the engine has forgotten the session while it was protected. */
export const WAS_FORGOTTEN: u8 = 0x80;
/** Bit of `ages`: its next turn waits. */
export const HAS_RETURNED: u8 = 0x40;
/** Bit of `ages`: its header names it, and that is its early anchor. */
export const IS_NAMED: u8 = 0x20;
export const COUNTED_AGES: u8 = 0x1f;
/** Bit of the tag of a peer, which tells it from a ledger entry. */
export const PEER_TAG: u32 = 0x80000000;

/** Anchors: buckets of 8 words, each the upper 48 bits of a hash and the number of an entry. */
export const SESSION_ANCHORS: u32 = 262144;
/** Words of a bucket. */
export const ANCHOR_WAYS: u32 = 8;
const ANCHOR_MASKS_BYTES: usize = (SESSION_ANCHORS / ANCHOR_WAYS) * 4;

/** A prefix that sessions of an endpoint share. */
@unmanaged
export class CountedPrefix {
  /** Chain hash of its last block, 0 = free · any thread · commit lock. */
  hash: u64;
  /** Chain hash of the last block of a shorter one that it begins with, 0 = none · any thread · commit lock. */
  within: u64;
  /** Endpoint slot · any thread · commit lock. */
  slot: u16;
  /** Sessions that count it there, and longer prefixes that begin with it · any thread · commit lock. */
  sessions: u16;
  /** Tokens · any thread · commit lock. */
  tokens: u32;
}

export const SESSION_PREFIXES: u32 = 4096;

/** What a ledger entry of the same number counts as. */
@unmanaged
export class SessionTurn {
  /** Generation of the ledger entry that it is about, another one = nothing is counted · any thread · commit lock. */
  generation: u32;
  /** Session whose turn it is, 0 = a request without one · any thread · commit lock. */
  session: u32;
  /** Tokens: of the prompt of a turn, or in use by a request without a session · any thread · commit lock. */
  tokens: u32;
  /** TURN_KEPT or TURN_LAST, 0 = neither · any thread · commit lock. */
  kind: u32;
}

const TURN_BYTES: usize = 16;
export const TURN_KEPT: u32 = 1; // a place that is kept for a turn: nothing was computed for it yet
export const TURN_LAST: u32 = 2; // the session ends with it

// Columns, u32, commit lock. The cells of a slot lie in one row: a charge touches one line of the cache for all.
export const SESSIONS_OLDEST: u32 = 0; // entry of the oldest protected idle session, 0 = none
export const SESSIONS_NEWEST: u32 = 1; // entry used last of those between turns
/** tokens of the listed sessions alone, and of what lies behind each but the oldest */
export const SESSIONS_LISTED_TOKENS: u32 = 2;
export const SESSIONS_RUNNING_TOKENS: u32 = 3; // tokens that the running sessions hold alone
export const SESSIONS_PREFIX_TOKENS: u32 = 4; // tokens of the prefixes that these share, each once
export const SESSIONS_UNLISTED: u32 = 5; // tokens without an entry used since the newest session
export const SESSIONS_OTHERS_RUNNING: u32 = 6; // tokens of running requests without an entry
export const SESSIONS_PICKED: u32 = 7; // SESSIONS_PICKED_* bits: stages for which it was picked
export const SESSION_COLUMNS: u32 = 8;
const ROW_BYTES: usize = 4 * SESSION_COLUMNS;

export const SESSIONS_PICKED_FIRST: u32 = 1;
export const SESSIONS_PICKED_LATER: u32 = 2;

let head: usize = 0;
let entries: usize = 0;
let anchors: usize = 0;
let masks: usize = 0;
let prefixes: usize = 0;
let turns: usize = 0;
let columns: usize = 0;

export function sessionsRegionBytes(p: u32, requests: u32): u64 {
  const anchored = SESSION_ENTRIES * SESSION_BYTES + SESSION_ANCHORS * 8 + ANCHOR_MASKS_BYTES;
  const tables = anchored + SESSION_PREFIXES * offsetof<CountedPrefix>();
  return SESSIONS_HEAD_BYTES + tables + <u64>requests * TURN_BYTES + columnsBytes(p) + SESSION_NEWS_REGION_BYTES;
}

/** Bytes of the columns. */
function columnsBytes(p: u32): u64 {
  return <u64>p * ROW_BYTES;
}

/** Takes the sizes of the attached memory. */
export function sessionsBind(region: usize): void {
  head = region;
  entries = region + SESSIONS_HEAD_BYTES;
  anchors = entries + SESSION_ENTRIES * SESSION_BYTES;
  masks = anchors + SESSION_ANCHORS * 8;
  prefixes = masks + ANCHOR_MASKS_BYTES;
  turns = prefixes + SESSION_PREFIXES * offsetof<CountedPrefix>();
  columns = turns + <usize>REQUESTS * TURN_BYTES;
  sessionNewsBind(columns + <usize>columnsBytes(SLOTS));
}

export function sessionsHead(): SessionsHead {
  return changetype<SessionsHead>(head);
}

export function sessionsGiven(): SessionsGiven {
  return changetype<SessionsGiven>(head + SESSIONS_GIVEN);
}

/** Whether sessions are counted. */
export function sessionsOn(): bool {
  return sessionsHead().mode != SESSIONS_OFF;
}

/** SESSIONS_* mode. Takes no lock. */
export function sessionsMode(): u32 {
  return sessionsHead().mode;
}

/** Tokens that the pool has left for sessions until the next tick. */
export function tokensLeft(): f64 {
  return load<f64>(head, SESSIONS_LEFT);
}

export function setTokensLeft(tokens: f64): void {
  store<f64>(head, tokens, SESSIONS_LEFT);
}

/** Tokens that all caches of known size hold, as of the last tick. */
export function cachesTokens(): f64 {
  return <f64>load<f32>(head, SESSIONS_CACHES);
}

export function setCachesTokens(tokens: f64): void {
  store<f32>(head, <f32>tokens, SESSIONS_CACHES);
}

/** Milliseconds of the pool clock until which the pool is crowded at least, 0 = it is not. */
export function crowdedUntil(): f64 {
  return load<f64>(head, SESSIONS_CROWDED);
}

export function setCrowdedUntil(ms: f64): void {
  store<f64>(head, ms, SESSIONS_CROWDED);
}

/** Tokens of caches that held turns would fill. */
export function heldClaims(): f64 {
  return load<f64>(head, SESSIONS_HELD_CLAIMS);
}

export function setHeldClaims(tokens: f64): void {
  store<f64>(head, tokens, SESSIONS_HELD_CLAIMS);
}

/** Turns that are held. Takes no lock. */
export function sessionsHeld(): u32 {
  return atomic.load<u32>(head, SESSIONS_HEAD_HELD);
}

/** Returns whether turns are held. */
export function sessionsHold(): bool {
  return sessionsHead().mode == SESSIONS_ON;
}

export function turnAt(index: u32): SessionTurn {
  return changetype<SessionTurn>(turns + <usize>index * TURN_BYTES);
}

/** Adds to a counter. */
export function sessionsCount(counter: u32, by: u32): void {
  const at = head + SESSIONS_COUNTERS + ((<usize>counter) << 3);
  store<u64>(at, load<u64>(at) + <u64>by);
}

/** Value of a counter, as a number that TypeScript takes. */
export function sessionsCounter(counter: u32): f64 {
  if (ASSERTIONS) assert(counter < SESSION_COUNTERS, 'the counter is one of the sessions');
  return <f64>load<u64>(head + SESSIONS_COUNTERS + ((<usize>counter) << 3));
}

export function keptAges(kind: u32): usize {
  return head + SESSIONS_KEPT + ((<usize>kind) << 2);
}

export function sharedLength(at: u32): usize {
  return head + SESSIONS_LENGTHS + ((<usize>at) << 2);
}

/** Address of the returns at an age. */
export function returnsAt(kind: u32, age: u32): usize {
  return head + SESSIONS_RETURNS + ((<usize>(kind * AGES + age)) << 3);
}

/** Address of the number of pauses in a bin. */
export function pausesAt(age: u32): usize {
  return head + SESSIONS_PAUSES + ((<usize>age) << 3);
}

/** Address of the sum of all pauses. */
export function pausesSum(): usize {
  return head + SESSIONS_PAUSES_SUM;
}

/** Address of the sessions that reached an age. */
export function reachedAt(kind: u32, age: u32): usize {
  return returnsAt(kind, age) + sizeof<f32>();
}

/** Forgets all sessions. Commit lock held. */
export function sessionsClear(): void {
  memory.fill(head, 0, columns + <usize>columnsBytes(SLOTS) - head);
}

export function sessionAt(entry: u32): Session {
  return changetype<Session>(entries + <usize>entry * SESSION_BYTES);
}

/** The number is one of a session, used or not. */
export function isSession(entry: u32): bool {
  return entry != 0 && entry < SESSION_ENTRIES;
}

/** Whether a session has a turn in flight at a peer: idle here, with the tag of the peer. */
export function isElsewhere(session: Session): bool {
  return session.state == SESSION_RUNNING && (session.ticket & PEER_TAG) != 0;
}

/** Whether a session has a turn in flight, here or at a peer: a further prompt goes on beside it. */
export function hasTurn(session: Session): bool {
  return session.state == SESSION_RUNNING;
}

/** Entries that were ever used: 1 to this number. Takes no lock. */
export function sessionsMade(): u32 {
  return sessionsOn() ? sessionsHead().made : 0;
}

/** Address of a session's fields. */
export function sessionAddress(entry: u32): usize {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  return changetype<usize>(sessionAt(entry));
}

export function anchorWord(at: u32): usize {
  return anchors + ((<usize>at) << 3);
}

/** Address of the mask of a bucket: bits that the hashes in it may have. @param at number of its first word */
export function anchorMask(at: u32): usize {
  return masks + ((<usize>(at / ANCHOR_WAYS)) << 2);
}

export function countedPrefixAt(at: u32): CountedPrefix {
  return changetype<CountedPrefix>(prefixes + <usize>at * offsetof<CountedPrefix>());
}

function cellOf(column: u32, slot: u32): usize {
  return columns + <usize>slot * ROW_BYTES + ((<usize>column) << 2);
}

/** Value of a column for an endpoint slot. */
export function sessionsColumn(column: u32, slot: u32): u32 {
  return load<u32>(cellOf(column, slot));
}

export function setSessionsColumn(column: u32, slot: u32, value: u32): void {
  store<u32>(cellOf(column, slot), value);
}

export function addToSessionsColumn(column: u32, slot: u32, by: u32): void {
  const cell = cellOf(column, slot);
  store<u32>(cell, load<u32>(cell) + by);
}

export const SESSIONS_HEAD_HELD: usize = offsetof<SessionsHead>('held');
export const SESSION_STATE: usize = offsetof<Session>('state');
export const SESSION_HOME: usize = offsetof<Session>('home');
export const SESSION_LAST_USE: usize = offsetof<Session>('lastUse');
