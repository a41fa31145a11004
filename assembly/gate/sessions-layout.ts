// Layout of the sessions: chains of prompts each of which begins with the one before, and what they hold on endpoints.
//
// Owns: REGION_SESSIONS, in this order: the head (SessionsHead, 64 bytes), SESSION_ENTRIES entries (64 bytes each, of
// which number 0 stands for none), SESSION_ANCHORS words of the anchor table (8 bytes each), SESSION_PREFIXES counted
// prefixes (16 bytes each), and SESSION_COLUMNS columns of SLOTS cells. All is written under the commit lock; the
// anchor table is read without one. A region of zeros is a valid one without sessions.
import { ASSERTIONS } from '../assertions';
import { slotOffset } from '../columns/column';
import { SLOTS } from '../memory';

/** Head of the region. */
@unmanaged
export class SessionsHead {
  /** Entries that were ever used, from 1 on · any thread · commit lock. */
  made: u32;
  /** Entry at which the search for one to use again goes on · any thread · commit lock. */
  hand: u32;
  /** Counted prefixes in the table · any thread · commit lock. */
  prefixes: u32;
}

export const SESSIONS_HEAD_BYTES: usize = 64;

/** Numbers of entries are 1 … SESSION_ENTRIES - 1: they fit into 16 bits, and 0 is none. */
export const SESSION_ENTRIES: u32 = 65536;

/** A session. */
@unmanaged
export class Session {
  /** SESSION_* state · any thread · commit lock. */
  state: u16;
  /** Turns so far, 65,535 = that many or more · any thread · commit lock. */
  turns: u16;
  /** Endpoint slot of its last turn, NO_HOME = it is gone · any thread · commit lock. */
  home: u32;
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
  /** Ledger entry + 1 of its running turn, 0 = none · any thread · commit lock. */
  ticket: u32;
  /** Chain hash of the last block that it shares · any thread · commit lock. */
  prefix: u64;
  /** Chain hash of the last whole block of its last prompt, 0 = none · any thread · commit lock. */
  anchor: u64;
  /** Chain hash of the block at nine tenths of it, 0 = none · any thread · commit lock. */
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
export const NO_HOME: u32 = 0xffffffff;

/** Anchors: buckets of 8 words, each the upper 48 bits of a hash and the number of an entry. */
export const SESSION_ANCHORS: u32 = 262144;

/** A prefix that sessions of an endpoint share. */
@unmanaged
export class CountedPrefix {
  /** Chain hash of its last block, 0 = free · any thread · commit lock. */
  hash: u64;
  /** Endpoint slot · any thread · commit lock. */
  slot: u16;
  /** Sessions that count it there · any thread · commit lock. */
  sessions: u16;
  /** Tokens · any thread · commit lock. */
  tokens: u32;
}

export const SESSION_PREFIXES: u32 = 4096;

// Columns, u32, commit lock.
export const SESSIONS_OLDEST: u32 = 0; // entry of the oldest protected idle session, 0 = none
export const SESSIONS_NEWEST: u32 = 1; // entry used last of those between turns
/** tokens of the listed sessions alone, and of what lies behind each but the oldest */
export const SESSIONS_LISTED_TOKENS: u32 = 2;
export const SESSIONS_RUNNING_TOKENS: u32 = 3; // tokens that the running sessions hold alone
export const SESSIONS_PREFIX_TOKENS: u32 = 4; // tokens of the prefixes that these share, each once
export const SESSIONS_UNLISTED: u32 = 5; // tokens without an entry used since the newest session
export const SESSIONS_OTHERS_RUNNING: u32 = 6; // tokens of running requests without an entry
export const SESSION_COLUMNS: u32 = 7;

let head: usize = 0;
let entries: usize = 0;
let anchors: usize = 0;
let prefixes: usize = 0;
let columns: usize = 0;

export function sessionsRegionBytes(p: u32): u64 {
  const tables = SESSION_ENTRIES * SESSION_BYTES + SESSION_ANCHORS * 8 + SESSION_PREFIXES * offsetof<CountedPrefix>();
  return SESSIONS_HEAD_BYTES + tables + <u64>p * 4 * SESSION_COLUMNS;
}

/** Takes the sizes of the attached memory. */
export function sessionsBind(region: usize): void {
  head = region;
  entries = region + SESSIONS_HEAD_BYTES;
  anchors = entries + SESSION_ENTRIES * SESSION_BYTES;
  prefixes = anchors + SESSION_ANCHORS * 8;
  columns = prefixes + SESSION_PREFIXES * offsetof<CountedPrefix>();
}

export function sessionsHead(): SessionsHead {
  return changetype<SessionsHead>(head);
}

export function sessionAt(entry: u32): Session {
  return changetype<Session>(entries + <usize>entry * SESSION_BYTES);
}

/** The number is one of a session, used or not. */
export function isSession(entry: u32): bool {
  return entry != 0 && entry < SESSION_ENTRIES;
}

/** Address of a session's fields. */
export function sessionAddress(entry: u32): usize {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  return changetype<usize>(sessionAt(entry));
}

export function anchorWord(at: u32): usize {
  return anchors + ((<usize>at) << 3);
}

export function countedPrefixAt(at: u32): CountedPrefix {
  return changetype<CountedPrefix>(prefixes + <usize>at * offsetof<CountedPrefix>());
}

/** Value of a column for an endpoint slot. */
export function sessionsColumn(column: u32, slot: u32): u32 {
  return load<u32>(columns + ((<usize>column * SLOTS) << 2) + slotOffset(slot));
}

export function setSessionsColumn(column: u32, slot: u32, value: u32): void {
  store<u32>(columns + ((<usize>column * SLOTS) << 2) + slotOffset(slot), value);
}

export function addToSessionsColumn(column: u32, slot: u32, by: u32): void {
  setSessionsColumn(column, slot, sessionsColumn(column, slot) + by);
}

export const SESSION_STATE: usize = offsetof<Session>('state');
