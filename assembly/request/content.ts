// The prompt content of a scan: decoded bytes on their way to block hashes.
//
// Owns: in this thread's part of REGION_SCANS the segments and the page pool. No lock: all of it belongs to one thread.
// Uses this thread's OUTPUT area as a place to decode into, but only inside one scanFeed: nothing there outlives the
// call, so others may use OUTPUT between calls.
//
// Content comes in three segments: tools, system and prompt. An engine's template puts them in this order, but a body
// may bring them in any: so each is cut into blocks by itself, and only the chain puts them one behind the other.
//
// Decoded bytes are first put one behind the other into OUTPUT and then hashed together: escapes cut a prompt into
// pieces of some fifty bytes, and starting the hash anew for each costs more than copying sixteen bytes at a time.
import { CHAIN_BLOCKS, HASHES, OUTPUT, SCAN_REGION, SCANS } from '../memory';
import { hashBytes, hashLink, streamAbsorb, streamHash, streamLength, streamReset } from './hash';
import {
  SCAN_BLOCK,
  SCAN_FIRST_SEGMENT,
  SCAN_HEAD_FREE_PAGE,
  SCAN_HEAD_FRESH_PAGES,
  SCAN_HEAD_SHORTAGES,
  SCAN_LAST_SEGMENT,
  SCAN_PAGE_BYTES,
  SCAN_PAGE_HASHES,
  SCAN_PROMPT_SEGMENT,
  SCAN_SEGMENT,
  SCAN_SYSTEM_SEGMENT,
  SCAN_TOOLS_SEGMENT,
  SEGMENT_BYTES,
  SEGMENT_CONTENT_BYTES,
  SEGMENT_FIRST_PAGE,
  SEGMENT_FULL,
  SEGMENT_HASH_COUNT,
  SEGMENT_HASHES,
  SEGMENT_INLINE_HASHES,
  SEGMENT_LAST_PAGE,
  SEGMENT_STREAM,
  scanLinksOffset,
  scanPages,
  scanPagesOffset,
} from './layout';
import { lexemesStart } from './lexemes';
import { mediaReset } from './media';

/** What tokens and images add may be longer than their JSON: hash what is pending before OUTPUT can overflow. */
const PENDING_MAX: usize = 32768;

/** Address behind the pending content in OUTPUT. */
let out: usize = 0;
// Address of the page pool; constant once it is set.
let pages: usize = 0;
let links: usize = 0;

/** Begin a feed: nothing is pending. */
export function contentStart(): void {
  lexemesStart();
  out = OUTPUT;
  links = SCAN_REGION + <usize>scanLinksOffset(SCANS);
  pages = SCAN_REGION + <usize>scanPagesOffset(SCANS, CHAIN_BLOCKS);
}

/** A new scan has no content; what comes first goes to the prompt. */
export function contentOpen(scan: usize): void {
  clear(scan + SCAN_TOOLS_SEGMENT);
  clear(scan + SCAN_SYSTEM_SEGMENT);
  clear(scan + SCAN_PROMPT_SEGMENT);
  store<u32>(scan, <u32>SCAN_PROMPT_SEGMENT, SCAN_SEGMENT);
  mediaReset(scan);
}

/** Give the pages of all segments back. */
export function contentClose(scan: usize): void {
  for (let offset = SCAN_FIRST_SEGMENT; offset <= SCAN_LAST_SEGMENT; offset += SEGMENT_BYTES) {
    freePages(scan + offset);
  }
}

/** From here on content goes to the segment at `offset` (SCAN_*_SEGMENT), behind what it has. */
export function contentSwitch(scan: usize, offset: usize): void {
  contentFlush(scan);
  store<u32>(scan, <u32>offset, SCAN_SEGMENT);
}

/** Forget the content of the segment that takes content now. */
export function contentReset(scan: usize): void {
  out = OUTPUT;
  const segment = current(scan);
  freePages(segment);
  clear(segment);
}

/** Clear a segment's words; its hash stream is reset when the first content comes. */
function clear(segment: usize): void {
  v128.store(segment, i64x2.splat(0));
  store<u32>(segment, 0, SEGMENT_CONTENT_BYTES);
}

/** Bytes of the segment at `offset`. */
export function contentLength(scan: usize, offset: usize): u32 {
  return load<u32>(scan + offset, SEGMENT_CONTENT_BYTES);
}

function current(scan: usize): usize {
  return scan + <usize>load<u32>(scan, SCAN_SEGMENT);
}

function freePages(segment: usize): void {
  const last = load<u32>(segment, SEGMENT_LAST_PAGE);
  if (last == 0) return;
  store<u32>(link(last), load<u32>(SCAN_REGION, SCAN_HEAD_FREE_PAGE));
  store<u32>(SCAN_REGION, load<u32>(segment, SEGMENT_FIRST_PAGE), SCAN_HEAD_FREE_PAGE);
}

/** Where decoded bytes of a prompt string go next; there is room for a whole INPUT and 16 bytes more. */
export function contentEnd(): usize {
  return out;
}

/** Decoded bytes were written up to `to`. */
export function contentMove(to: usize): void {
  out = to;
}

/** Append decoded bytes (at most a few). */
export function contentBytes(from: usize, length: u32): void {
  for (let i: u32 = 0; i < length; i++) store<u8>(out + i, load<u8>(from + i));
  out += length;
}

/** Append a token id. */
export function contentToken(scan: usize, token: u32): void {
  if (out - OUTPUT >= PENDING_MAX) contentFlush(scan);
  store<u32>(out, token);
  out += 4;
}

/** Append the same token `count` times (at most 1,024). */
export function contentTokens(scan: usize, token: u32, count: u32): void {
  if (out - OUTPUT >= PENDING_MAX) contentFlush(scan);
  const four = i32x4.splat(token);
  for (let i: u32 = 0; i < count; i += 4) v128.store(out + ((<usize>i) << 2), four);
  out += (<usize>count) << 2;
}

/** Append bytes that need no decoding, straight from where they lie. */
export function contentRaw(scan: usize, from: usize, length: u32): void {
  contentFlush(scan);
  absorb(scan, from, length);
}

/** Hash what is pending. */
export function contentFlush(scan: usize): void {
  const length = <u32>(out - OUTPUT);
  if (length == 0) return;
  out = OUTPUT;
  absorb(scan, OUTPUT, length);
}

function absorb(scan: usize, from: usize, length: u32): void {
  const segment = current(scan);
  const before = load<u32>(segment, SEGMENT_CONTENT_BYTES);
  const stream = segment + SEGMENT_STREAM;
  if (before == 0) streamReset(stream);
  store<u32>(segment, before + length, SEGMENT_CONTENT_BYTES);
  if (load<u32>(segment, SEGMENT_FULL) != 0) return;
  const block = load<u32>(scan, SCAN_BLOCK);
  const fill = streamLength(stream);
  if (fill > 0) {
    const room = block - fill;
    const taken = length < room ? length : room;
    streamAbsorb(stream, from, taken);
    if (taken < room) return;
    from += taken;
    length -= taken;
    const hash = streamHash(stream);
    streamReset(stream);
    if (!append(segment, hash)) return;
  }
  while (length >= block) {
    if (!append(segment, hashBytes(from, block))) return;
    from += block;
    length -= block;
  }
  if (length > 0) streamAbsorb(stream, from, length);
}

/** Keep one more content hash; false (and the segment is full) when there is no place for it. */
function append(segment: usize, hash: u64): bool {
  const count = load<u32>(segment, SEGMENT_HASH_COUNT);
  let to = segment + SEGMENT_HASHES + ((<usize>count) << 3);
  if (count >= SEGMENT_INLINE_HASHES) {
    const inPage = (count - SEGMENT_INLINE_HASHES) % SCAN_PAGE_HASHES;
    if (count >= CHAIN_BLOCKS || (inPage == 0 && !addPage(segment))) {
      store<u32>(segment, 1, SEGMENT_FULL);
      return false;
    }
    to = page(load<u32>(segment, SEGMENT_LAST_PAGE)) + ((<usize>inPage) << 3);
  } else if (count >= CHAIN_BLOCKS) {
    store<u32>(segment, 1, SEGMENT_FULL);
    return false;
  }
  store<u64>(to, hash);
  store<u32>(segment, count + 1, SEGMENT_HASH_COUNT);
  return true;
}

function page(numberPlusOne: u32): usize {
  return pages + <usize>(numberPlusOne - 1) * SCAN_PAGE_BYTES;
}

function link(numberPlusOne: u32): usize {
  return links + ((<usize>(numberPlusOne - 1)) << 2);
}

function addPage(segment: usize): bool {
  let taken = load<u32>(SCAN_REGION, SCAN_HEAD_FREE_PAGE);
  if (taken != 0) {
    store<u32>(SCAN_REGION, load<u32>(link(taken)), SCAN_HEAD_FREE_PAGE);
  } else {
    const fresh = load<u32>(SCAN_REGION, SCAN_HEAD_FRESH_PAGES);
    if (fresh >= scanPages(SCANS, CHAIN_BLOCKS)) {
      store<u32>(SCAN_REGION, load<u32>(SCAN_REGION, SCAN_HEAD_SHORTAGES) + 1, SCAN_HEAD_SHORTAGES);
      return false;
    }
    taken = fresh + 1;
    store<u32>(SCAN_REGION, taken, SCAN_HEAD_FRESH_PAGES);
  }
  store<u32>(link(taken), 0);
  const last = load<u32>(segment, SEGMENT_LAST_PAGE);
  if (last != 0) store<u32>(link(last), taken);
  else store<u32>(segment, taken, SEGMENT_FIRST_PAGE);
  store<u32>(segment, taken, SEGMENT_LAST_PAGE);
  return true;
}

/** The chain's last block has at least one byte but is not whole, and nothing before it is missing. */
export function contentTail(scan: usize): bool {
  let blocks: u32 = 0;
  for (let offset = SCAN_FIRST_SEGMENT; offset <= SCAN_LAST_SEGMENT; offset += SEGMENT_BYTES) {
    if (load<u32>(scan + offset, SEGMENT_FULL) != 0) return false;
    blocks += load<u32>(scan + offset, SEGMENT_HASH_COUNT);
  }
  return blocks < CHAIN_BLOCKS && unfinished(scan + SCAN_LAST_SEGMENT);
}

/** The segment ends with a block that is not whole. */
function unfinished(segment: usize): bool {
  return load<u32>(segment, SEGMENT_CONTENT_BYTES) != 0 && streamLength(segment + SEGMENT_STREAM) != 0;
}

/**
 * Link the content hashes behind `root` into HASHES: tools, system, prompt; the tail's hash, if there is a tail, right
 * behind the whole ones. Of tools and system a block that is not whole is linked, so that what follows depends on it,
 * but is no block of the chain.
 * @returns whole blocks.
 */
export function contentChain(scan: usize, root: u64): u32 {
  let before = root;
  let done: u32 = 0;
  for (let offset = SCAN_FIRST_SEGMENT; offset <= SCAN_LAST_SEGMENT; offset += SEGMENT_BYTES) {
    const segment = scan + offset;
    if (load<u32>(segment, SEGMENT_CONTENT_BYTES) == 0) continue;
    // The same bytes in another segment are another prompt: 1 stands for tools, 2 for system.
    if (offset != SCAN_LAST_SEGMENT)
      before = hashLink(before, <u64>((offset - SCAN_FIRST_SEGMENT) / SEGMENT_BYTES + 1));
    const count = load<u32>(segment, SEGMENT_HASH_COUNT);
    const linked = count < CHAIN_BLOCKS - done ? count : CHAIN_BLOCKS - done;
    before = linkSegment(segment, before, HASHES + ((<usize>done) << 3), linked);
    done += linked;
    if (linked < count || load<u32>(segment, SEGMENT_FULL) != 0) return done;
    if (offset != SCAN_LAST_SEGMENT && unfinished(segment))
      before = hashLink(before, streamHash(segment + SEGMENT_STREAM));
  }
  if (contentTail(scan)) {
    store<u64>(HASHES + ((<usize>done) << 3), hashLink(before, streamHash(scan + SCAN_LAST_SEGMENT + SEGMENT_STREAM)));
  }
  return done;
}

/** Link the first `count` content hashes of a segment behind `before`. @returns the last link. */
function linkSegment(segment: usize, before: u64, to: usize, count: u32): u64 {
  const inline = count < SEGMENT_INLINE_HASHES ? count : SEGMENT_INLINE_HASHES;
  before = linkRun(before, segment + SEGMENT_HASHES, to, inline);
  let next = load<u32>(segment, SEGMENT_FIRST_PAGE);
  for (let done = inline; done < count; done += SCAN_PAGE_HASHES) {
    const left = count - done;
    const run = left < SCAN_PAGE_HASHES ? left : SCAN_PAGE_HASHES;
    before = linkRun(before, page(next), to + ((<usize>done) << 3), run);
    next = load<u32>(link(next));
  }
  return before;
}

function linkRun(before: u64, from: usize, to: usize, count: u32): u64 {
  for (let i: u32 = 0; i < count; i++) {
    before = hashLink(before, load<u64>(from));
    store<u64>(to, before);
    from += 8;
    to += 8;
  }
  return before;
}
