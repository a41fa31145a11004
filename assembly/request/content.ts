// The prompt content of a scan: decoded bytes on their way to block hashes.
//
// Owns: in this thread's part of REGION_SCANS the segments and the page pool. No lock: all of it belongs to one thread.
// Uses this thread's OUTPUT area as a place to decode into, but only inside one scanFeed: nothing there outlives the
// call, so others may use OUTPUT between calls.
//
// Content comes in three segments: tools, system and prompt. An engine's template puts them in this order, but a body
// may bring them in any order. So each is cut into blocks by itself, and only the chain joins them.
//
// Decoded bytes are first put one behind the other into OUTPUT and then hashed together: escapes cut a prompt into
// pieces of some fifty bytes, and starting the hash anew for each costs more than copying sixteen bytes at a time. Long
// runs without escapes are hashed where they lie (grammar.ts).
import { CHAIN_BLOCKS, HASHES, OUTPUT, SCAN_REGION, SCANS } from '../memory';
import { promptBeginning } from '../request-area';
import { hashBytes, hashLink, streamAbsorb, streamHash, streamLength, streamReset } from './hash';
import {
  SCAN_FIRST_SEGMENT,
  SCAN_LAST_SEGMENT,
  SCAN_PAGE_BYTES,
  SCAN_PAGE_HASHES,
  SCAN_PROMPT_SEGMENT,
  SCAN_SYSTEM_SEGMENT,
  SCAN_TOOLS_SEGMENT,
  SEGMENT_BYTES,
  SEGMENT_INLINE_HASHES,
  scanLinksOffset,
  scanPages,
  scanPagesOffset,
} from './layout';
import { lexemesStart, plainGroupsEnd } from './lexemes';
import { mediaReset } from './media';
import { ContentSegment, RequestScan, scanHead } from './scan-state';

/** Tokens and images can be longer than their JSON: pending content is hashed before OUTPUT overflows. */
const PENDING_MAX: usize = 32768;

/**
 * Plain bytes behind which as many more are hashed where they lie: to begin a hash anew costs as much as to copy some
 * KB.
 */
export const LONG_RUN_BYTES: usize = 1024;

/** Address behind the pending content in OUTPUT. */
let out: usize = 0;
// Address of the page pool; constant once it is set.
let pages: usize = 0;
let links: usize = 0;

/** Begins a feed: nothing is pending. */
export function contentStart(): void {
  lexemesStart();
  out = OUTPUT;
  links = SCAN_REGION + <usize>scanLinksOffset(SCANS);
  pages = SCAN_REGION + <usize>scanPagesOffset(SCANS, CHAIN_BLOCKS);
}

/** Empties the segments of a new scan; the first content goes to the prompt. */
export function contentOpen(scan: RequestScan): void {
  clear(scan.contentAt(SCAN_TOOLS_SEGMENT));
  clear(scan.contentAt(SCAN_SYSTEM_SEGMENT));
  clear(scan.contentAt(SCAN_PROMPT_SEGMENT));
  scan.segment = <u32>SCAN_PROMPT_SEGMENT;
  mediaReset(scan);
}

/** Gives the pages of all segments back. */
export function contentClose(scan: RequestScan): void {
  for (let offset = SCAN_FIRST_SEGMENT; offset <= SCAN_LAST_SEGMENT; offset += SEGMENT_BYTES) {
    freePages(scan.contentAt(offset));
  }
}

/** From here on content goes to the segment at `offset` (SCAN_*_SEGMENT), behind what it has. */
export function contentSwitch(scan: RequestScan, offset: usize): void {
  contentFlush(scan);
  scan.segment = <u32>offset;
}

/** Forgets the content of the segment that takes content now. */
export function contentReset(scan: RequestScan): void {
  out = OUTPUT;
  const segment = current(scan);
  freePages(segment);
  clear(segment);
}

/** Clears a segment's words; its hash stream is reset when the first content comes. */
function clear(segment: ContentSegment): void {
  segment.hashCount = 0;
  segment.firstPage = 0;
  segment.lastPage = 0;
  segment.full = 0;
  segment.contentBytes = 0;
}

/** Bytes of the segment at `offset`. */
export function contentLength(scan: RequestScan, offset: usize): u32 {
  return scan.contentAt(offset).contentBytes;
}

function current(scan: RequestScan): ContentSegment {
  return scan.contentAt(scan.segment);
}

function freePages(segment: ContentSegment): void {
  const last = segment.lastPage;
  if (last == 0) return;
  store<u32>(link(last), scanHead().freePage);
  scanHead().freePage = segment.firstPage;
}

/** Returns the next address for decoded bytes of a prompt string; there is room for a whole INPUT and 16 bytes more. */
export function contentEnd(): usize {
  return out;
}

/** Notes that decoded bytes were written up to `to`. */
export function contentMove(to: usize): void {
  out = to;
}

/** Appends decoded bytes (at most a few). */
export function contentBytes(from: usize, length: u32): void {
  for (let i: u32 = 0; i < length; i++) store<u8>(out + i, load<u8>(from + i));
  out += length;
}

/** Appends a token id. */
export function contentToken(scan: RequestScan, token: u32): void {
  if (out - OUTPUT >= PENDING_MAX) contentFlush(scan);
  store<u32>(out, token);
  out += 4;
}

/** Appends the same token `count` times (at most 1,024). */
export function contentTokens(scan: RequestScan, token: u32, count: u32): void {
  if (out - OUTPUT >= PENDING_MAX) contentFlush(scan);
  const four = i32x4.splat(token);
  for (let i: u32 = 0; i < count; i += 4) v128.store(out + ((<usize>i) << 2), four);
  out += (<usize>count) << 2;
}

/** Appends bytes that need no decoding, straight from where they lie. */
export function contentRaw(scan: RequestScan, from: usize, length: u32): void {
  contentFlush(scan);
  absorb(scan, from, length);
}

/** Hashes the plain bytes of a string from `from` on where they lie, if they are many. @returns address behind them */
export function contentLongRun(scan: RequestScan, from: usize, stop: usize): usize {
  const end = plainGroupsEnd(from, stop);
  if (end - from < LONG_RUN_BYTES) return from;
  contentRaw(scan, from, <u32>(end - from));
  return end;
}

/** Hashes what is pending. */
export function contentFlush(scan: RequestScan): void {
  const length = <u32>(out - OUTPUT);
  if (length == 0) return;
  out = OUTPUT;
  absorb(scan, OUTPUT, length);
}

function absorb(scan: RequestScan, from: usize, length: u32): void {
  const segment = current(scan);
  const before = segment.contentBytes;
  const stream = segment.stream;
  if (before == 0) streamReset(stream);
  segment.contentBytes = before + length;
  if (segment.full != 0) return;
  const block = scan.block;
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

/** Keeps one more content hash; false (and the segment is full) when there is no place for it. */
function append(segment: ContentSegment, hash: u64): bool {
  const count = segment.hashCount;
  let to = segment.hashes + ((<usize>count) << 3);
  if (count >= SEGMENT_INLINE_HASHES) {
    const inPage = (count - SEGMENT_INLINE_HASHES) % SCAN_PAGE_HASHES;
    if (count >= CHAIN_BLOCKS || (inPage == 0 && !addPage(segment))) {
      segment.full = 1;
      return false;
    }
    to = page(segment.lastPage) + ((<usize>inPage) << 3);
  } else if (count >= CHAIN_BLOCKS) {
    segment.full = 1;
    return false;
  }
  store<u64>(to, hash);
  segment.hashCount = count + 1;
  return true;
}

function page(numberPlusOne: u32): usize {
  return pages + <usize>(numberPlusOne - 1) * SCAN_PAGE_BYTES;
}

function link(numberPlusOne: u32): usize {
  return links + ((<usize>(numberPlusOne - 1)) << 2);
}

function addPage(segment: ContentSegment): bool {
  let taken = scanHead().freePage;
  if (taken != 0) {
    scanHead().freePage = load<u32>(link(taken));
  } else {
    const fresh = scanHead().freshPages;
    if (fresh >= scanPages(SCANS, CHAIN_BLOCKS)) {
      scanHead().shortages += 1;
      return false;
    }
    taken = fresh + 1;
    scanHead().freshPages = taken;
  }
  store<u32>(link(taken), 0);
  const last = segment.lastPage;
  if (last != 0) store<u32>(link(last), taken);
  else segment.firstPage = taken;
  segment.lastPage = taken;
  return true;
}

/** Whether the chain's last block has at least one byte but is not whole, and nothing before it is missing. */
export function contentTail(scan: RequestScan): bool {
  let blocks: u32 = 0;
  for (let offset = SCAN_FIRST_SEGMENT; offset <= SCAN_LAST_SEGMENT; offset += SEGMENT_BYTES) {
    if (scan.contentAt(offset).full != 0) return false;
    blocks += scan.contentAt(offset).hashCount;
  }
  return blocks < CHAIN_BLOCKS && unfinished(scan.contentAt(SCAN_LAST_SEGMENT));
}

/** Whether the segment ends with a block that is not whole. */
function unfinished(segment: ContentSegment): bool {
  return segment.contentBytes != 0 && streamLength(segment.stream) != 0;
}

/**
 * Links the content hashes behind `root` into HASHES: tools, system, prompt; the tail's hash, if there is a tail, right
 * behind the whole ones. Of tools and system a block that is not whole is linked, so that what follows depends on it,
 * but is no block of the chain.
 * @returns whole blocks.
 */
export function contentChain(scan: RequestScan, root: u64): u32 {
  let before = root;
  let done: u32 = 0;
  promptBeginning().content = 0;
  promptBeginning().root = root;
  for (let offset = SCAN_FIRST_SEGMENT; offset <= SCAN_LAST_SEGMENT; offset += SEGMENT_BYTES) {
    const segment = scan.contentAt(offset);
    if (segment.contentBytes == 0) continue;
    // The same bytes in another segment are another prompt: 1 stands for tools, 2 for system.
    if (offset != SCAN_LAST_SEGMENT)
      before = hashLink(before, <u64>((offset - SCAN_FIRST_SEGMENT) / SEGMENT_BYTES + 1));
    const count = segment.hashCount;
    if (offset == SCAN_LAST_SEGMENT) {
      promptBeginning().content = beginningContent(segment);
      promptBeginning().front = before;
    }
    const linked = count < CHAIN_BLOCKS - done ? count : CHAIN_BLOCKS - done;
    before = linkSegment(segment, before, HASHES + ((<usize>done) << 3), linked);
    done += linked;
    if (linked < count || segment.full != 0) return done;
    if (offset != SCAN_LAST_SEGMENT && unfinished(segment)) before = hashLink(before, streamHash(segment.stream));
  }
  if (contentTail(scan)) {
    store<u64>(HASHES + ((<usize>done) << 3), hashLink(before, streamHash(scan.contentAt(SCAN_LAST_SEGMENT).stream)));
  }
  return done;
}

/** Content hash of the segment's first whole block, 0 = it has none. */
function beginningContent(segment: ContentSegment): u64 {
  return segment.hashCount == 0 ? 0 : load<u64>(segment.hashes);
}

/**
 * Notes the first block of the prompt's text beside the chain of its tokens, which stands in HASHES. The tokens depend
 * on the template: other tokens for the same text and root tell that it has changed.
 */
export function contentBeginning(scan: RequestScan): void {
  const segment = scan.contentAt(SCAN_LAST_SEGMENT);
  promptBeginning().content = segment.contentBytes == 0 ? 0 : beginningContent(segment);
  promptBeginning().front = load<u64>(HASHES);
}

/** Links the first `count` content hashes of a segment behind `before`. @returns the last link. */
function linkSegment(segment: ContentSegment, before: u64, to: usize, count: u32): u64 {
  const inline = count < SEGMENT_INLINE_HASHES ? count : SEGMENT_INLINE_HASHES;
  before = linkRun(before, segment.hashes, to, inline);
  let next = segment.firstPage;
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
