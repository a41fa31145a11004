// Beginnings that sessions of an endpoint share: their tokens are counted once for the endpoint.
//
// Owns: the counted prefixes of REGION_SESSIONS and their column PREFIX_TOKENS. Commit lock held throughout. An open
// table with linear probing: a row that goes leaves no gap between a row and its place by hash.
//
// A longer prefix can begin with a shorter one: what sub-agents share begins with the tools of all agents. Such a row
// names the shorter one, counts only what it has beyond it, and keeps it counted.
import { SLOTS } from '../memory';
import {
  addToSessionsColumn,
  CountedPrefix,
  countedPrefixAt,
  SESSION_PREFIXES,
  SESSIONS_PREFIX_TOKENS,
  sessionsHead,
  setSessionsColumn,
} from './sessions-layout';

const MASK: u32 = SESSION_PREFIXES - 1;
const GOLDEN: u64 = 0x9e3779b97f4a7c15;
/** Rows in use at most: probing stays short. */
const ROWS_MAX: u32 = 3072;

function placeOf(hash: u64, slot: u32): u32 {
  return <u32>(((hash ^ ((<u64>slot) << 48)) * GOLDEN) >> 52) & MASK;
}

/** @returns row of the prefix, or of the free place where it would stand */
function rowOf(hash: u64, slot: u32): u32 {
  let at = placeOf(hash, slot);
  let row = countedPrefixAt(at);
  while (row.hash != 0 && (row.hash != hash || row.slot != slot)) {
    at = (at + 1) & MASK;
    row = countedPrefixAt(at);
  }
  return at;
}

/** One more session counts the prefix. @returns false when it cannot be counted: the table is full */
export function countPrefix(hash: u64, slot: u32, tokens: u32): bool {
  const row = countedPrefixAt(rowOf(hash, slot));
  if (row.hash == 0) {
    if (sessionsHead().prefixes >= ROWS_MAX) return false;
    row.slot = <u16>slot;
    row.sessions = 0;
    row.within = 0;
    row.tokens = tokens;
    row.hash = hash;
    sessionsHead().prefixes++;
  }
  if (row.sessions == 0xffff) return false;
  if (row.sessions++ == 0) addToSessionsColumn(SESSIONS_PREFIX_TOKENS, slot, row.tokens);
  return true;
}

/** Tokens of a prefix that sessions of the endpoint count, 0 = none does. */
export function countedPrefix(hash: u64, slot: u32): u32 {
  const row = countedPrefixAt(rowOf(hash, slot));
  return row.hash == 0 ? 0 : row.tokens;
}

/** Hash of the shorter prefix that a counted one begins with, 0 = there is none. */
export function prefixWithin(hash: u64, slot: u32): u64 {
  const row = countedPrefixAt(rowOf(hash, slot));
  return row.hash == 0 ? 0 : row.within;
}

/** Tokens of the shorter prefix that a row begins with, 0 = there is none. */
function tokensWithin(row: CountedPrefix): u32 {
  return row.within == 0 ? 0 : countedPrefix(row.within, row.slot);
}

/** A counted prefix begins with a shorter counted one, of both of which a prompt has the hashes; the longest counts. */
export function nestPrefix(hash: u64, within: u64, slot: u32): void {
  const row = countedPrefixAt(rowOf(hash, slot));
  const outer = countedPrefixAt(rowOf(within, slot));
  const before = tokensWithin(row);
  if (row.hash == 0 || outer.hash == 0 || outer.sessions == 0xffff) return;
  if (outer.tokens >= row.tokens || outer.tokens <= before) return;
  const old = row.within;
  outer.sessions++;
  row.within = within;
  addToSessionsColumn(SESSIONS_PREFIX_TOKENS, slot, before - outer.tokens);
  if (old != 0) uncountPrefix(old, slot);
}

/** One session less counts it, or one longer prefix less begins with it. */
export function uncountPrefix(hash: u64, slot: u32): void {
  for (let gone = hash; gone != 0; ) {
    const at = rowOf(gone, slot);
    const row = countedPrefixAt(at);
    if (row.hash == 0 || --row.sessions != 0) return;
    addToSessionsColumn(SESSIONS_PREFIX_TOKENS, slot, tokensWithin(row) - row.tokens);
    gone = row.within;
    removeRow(at);
  }
}

function copyRow(to: CountedPrefix, from: CountedPrefix): void {
  memory.copy(changetype<usize>(to), changetype<usize>(from), offsetof<CountedPrefix>());
}

/** Moves later rows up, so that each is found from its own place. */
function removeRow(gone: u32): void {
  let gap = gone;
  let at = (gap + 1) & MASK;
  for (let row = countedPrefixAt(at); row.hash != 0; row = countedPrefixAt(at)) {
    const place = placeOf(row.hash, row.slot);
    if (((at - place) & MASK) >= ((at - gap) & MASK)) {
      copyRow(countedPrefixAt(gap), row);
      gap = at;
    }
    at = (at + 1) & MASK;
  }
  countedPrefixAt(gap).hash = 0;
  sessionsHead().prefixes--;
}

/** Sum of the tokens of an endpoint's prefixes, from the rows. */
export function prefixTokensOf(slot: u32): u32 {
  let sum: u32 = 0;
  for (let at: u32 = 0; at < SESSION_PREFIXES; at++) {
    const row = countedPrefixAt(at);
    if (row.hash != 0 && row.slot == slot) sum += row.tokens - tokensWithin(row);
  }
  return sum;
}

/** Forgets all of them. */
export function prefixesClear(): void {
  for (let at: u32 = 0; at < SESSION_PREFIXES; at++) countedPrefixAt(at).hash = 0;
  for (let slot: u32 = 0; slot < SLOTS; slot++) setSessionsColumn(SESSIONS_PREFIX_TOKENS, slot, 0);
  sessionsHead().prefixes = 0;
}
