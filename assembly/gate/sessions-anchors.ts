// The session that a prompt continues: the one whose last prompt it begins with.
//
// Owns: the anchor table of REGION_SESSIONS. Written under the commit lock, read by anyone: a word holds the upper bits
// of a hash together with the entry's number, so a reader sees both or neither. The mask of a bucket says which hashes
// may be in it. A chain hash stands for all blocks up to its own, so one equal hash is an equal beginning.
import { ASSERTIONS } from '../assertions';
import { isMapped } from '../preconditions';
import {
  ANCHOR_WAYS,
  anchorMask,
  anchorWord,
  isSession,
  SESSION_ANCHORS,
  SESSION_FREE,
  SESSION_RUNNING,
  Session,
  sessionAt,
} from './sessions-layout';

const WAYS: u32 = ANCHOR_WAYS;
const BUCKETS: u32 = SESSION_ANCHORS / WAYS;
const ENTRY_BITS: u64 = 0xffff;
/** Tenths of a prompt at which its early anchor stands. */
export const EARLY: u64 = 9;
/** Blocks from the end of a prompt at which an anchor is looked for. */
const LOOKED_AT_MAX: u32 = 8192;

/** The bucket comes from the bits that the word leaves out, so that it adds to what the word tells apart. */
function bucketOf(hash: u64): u32 {
  return (<u32>hash & (BUCKETS - 1)) * WAYS;
}

/** Upper bits of a hash and the number of an entry. */
export function anchorWordOf(hash: u64, entry: u32): u64 {
  return (hash & ~ENTRY_BITS) | <u64>entry;
}

function isAnchoredAt(session: Session, word: u64): bool {
  if (session.state == SESSION_FREE) return false;
  const tag = word & ~ENTRY_BITS;
  return (session.anchor & ~ENTRY_BITS) == tag || (session.earlyAnchor & ~ENTRY_BITS) == tag;
}

/** @returns entry of an anchor word while it has that anchor, 0 = it has moved on */
export function anchoredEntry(word: u64): u32 {
  const entry = <u32>(word & ENTRY_BITS);
  return entry != 0 && isAnchoredAt(sessionAt(entry), word) ? entry : 0;
}

/** Tokens of a session up to the anchor of a word: nine tenths of its last prompt, or all of it. */
export function tokensUpTo(session: Session, word: u64): u32 {
  const tokens = session.own + session.shared;
  return (session.anchor & ~ENTRY_BITS) == (word & ~ENTRY_BITS) ? tokens : <u32>((<u64>tokens * EARLY) / 10);
}

/** Bit of a bucket's mask by the lowest bits of a hash that its words keep. */
function bitOf(hash: u64): u32 {
  return 1 << (<u32>(hash >> 16) & 31);
}

/**
 * Makes the mask of a bucket anew, after a word of it was taken back. A bit too many costs a look, one that is missing
 * a session: so a bit is set before its word, and this comes behind it.
 */
function reckonMask(bucket: u32): void {
  let mask: u32 = 0;
  for (let way: u32 = 0; way < WAYS; way++) {
    const word = load<u64>(anchorWord(bucket + way));
    if (word != 0) mask |= bitOf(word);
  }
  atomic.store<u32>(anchorMask(bucket), mask);
}

/**
 * Whether a hash may be an anchor. Most hashes of a prompt are no session's: the masks of all buckets take a sixteenth
 * of their words.
 */
function mayBeAnchor(hash: u64): bool {
  return (load<u32>(anchorMask(bucketOf(hash))) & bitOf(hash)) != 0;
}

/** @returns entry that has an anchor at a hash, one without a turn in flight if there is one; 0 = none */
export function anchorOf(hash: u64): u32 {
  if (!mayBeAnchor(hash)) return 0;
  const bucket = bucketOf(hash);
  let running: u32 = 0;
  for (let way: u32 = 0; way < WAYS; way++) {
    const word = atomic.load<u64>(anchorWord(bucket + way));
    if (((word ^ hash) & ~ENTRY_BITS) != 0) continue;
    const entry = <u32>(word & ENTRY_BITS);
    const session = sessionAt(entry);
    if (entry == 0 || (session.anchor != hash && session.earlyAnchor != hash)) continue;
    if (session.state != SESSION_RUNNING) return entry;
    running = entry;
  }
  return running;
}

/**
 * Reads the bucket of a hash, so that its lines of the cache are there when it is written under the lock. Such reads
 * wait for memory side by side, the writes one after the other.
 */
export function touchAnchor(hash: u64): void {
  const bucket = bucketOf(hash);
  atomic.load<u32>(anchorMask(bucket));
  atomic.load<u64>(anchorWord(bucket));
}

/** Blocks of the prompt up to the anchor that sessionOf() found last on this thread. */
let anchored: u32 = 0;

/**
 * Looks for the session whose anchor is deepest in a prompt. Takes no lock: the caller looks again at the anchor with
 * the lock held.
 * @param hashes address of the prompt's chain hashes
 * @param step power of 2: anchors stand at multiples of so many blocks
 * @returns its entry, 0 = none
 */
export function sessionOf(hashes: usize, blocks: u32, step: u32): u32 {
  if (ASSERTIONS) assert(isMapped(hashes, (<usize>blocks) << 3), 'the hashes are in the memory');
  if (ASSERTIONS) assert(step != 0 && (step & (step - 1)) == 0, 'the step is a power of 2');
  const last = blocks > LOOKED_AT_MAX ? blocks - LOOKED_AT_MAX : 0;
  for (let i = blocks & ~(step - 1); i > last; i -= step) {
    const hash = load<u64>(hashes + ((<usize>(i - 1)) << 3));
    if (!mayBeAnchor(hash)) continue;
    const entry = anchorOf(hash);
    if (entry == 0) continue;
    anchored = i;
    return entry;
  }
  anchored = 0;
  return 0;
}

/** Blocks of the prompt that the session found last begins with. */
export function anchoredBlocks(): u32 {
  return anchored;
}

/** A free word of the bucket, else one whose session has moved on, else one by its hash. */
function victimOf(hash: u64): usize {
  const bucket = bucketOf(hash);
  for (let way: u32 = 0; way < WAYS; way++)
    if (load<u64>(anchorWord(bucket + way)) == 0) return anchorWord(bucket + way);
  // Only a full bucket is worth a look at its sessions, each of which is another line of the cache.
  for (let way: u32 = 0; way < WAYS; way++) {
    const at = anchorWord(bucket + way);
    const word = load<u64>(at);
    if (!isAnchoredAt(sessionAt(<u32>(word & ENTRY_BITS)), word)) return at;
  }
  return anchorWord(bucket + (<u32>(hash >> 61) & (WAYS - 1)));
}

function removeAnchor(hash: u64, entry: u32): void {
  if (hash == 0) return;
  const bucket = bucketOf(hash);
  for (let way: u32 = 0; way < WAYS; way++) {
    const at = anchorWord(bucket + way);
    if (load<u64>(at) == anchorWordOf(hash, entry)) atomic.store<u64>(at, 0);
  }
  reckonMask(bucket);
}

function addAnchor(hash: u64, entry: u32): void {
  const bucket = bucketOf(hash);
  const at = victimOf(hash);
  const isFree = load<u64>(at) == 0;
  atomic.store<u32>(anchorMask(bucket), load<u32>(anchorMask(bucket)) | bitOf(hash));
  atomic.store<u64>(at, anchorWordOf(hash, entry));
  if (!isFree) reckonMask(bucket);
}

/** Moves the anchors of a session to its new prompt; 0 = no anchor. Commit lock held. */
export function setAnchors(entry: u32, anchor: u64, early: u64): void {
  if (ASSERTIONS) assert(isSession(entry), 'the number is one of a session');
  const session = sessionAt(entry);
  if (session.anchor == anchor && session.earlyAnchor == early) return;
  removeAnchor(session.anchor, entry);
  removeAnchor(session.earlyAnchor, entry);
  session.anchor = anchor;
  session.earlyAnchor = early;
  if (anchor != 0) addAnchor(anchor, entry);
  if (early != 0 && early != anchor) addAnchor(early, entry);
}
