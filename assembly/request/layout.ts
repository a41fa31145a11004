// Layout of one thread's part of REGION_SCANS.
//
// Owns: the part's size and every offset in it. Only the thread itself writes it, without a lock; after its death the
// next thread with the same number starts with scanReset(). Nothing needs to be written before first use: the two
// free lists hand out untouched places until something has been freed.
//
//   +0                 head: counters, then the name that the host wants at the root of the next chain
//   +4,096             `scans` scan states of SCAN_BYTES
//   behind them        one u32 per page: the page that follows it in its list, + 1 (padded to 64 bytes)
//   behind them        pages of 512 content hashes, for segments longer than the 64 blocks that a state holds itself
//
// All pages together bound the blocks of all open scans of a thread. When none is left, hashing of that prompt stops:
// its tail is not matched, which is an under-count, and SCAN_HEAD_SHORTAGES counts it.
import { ASSERTIONS } from '../assertions';
import { ContentSegment, MediaState, RequestScan, ScanHead } from './scan-state';

export const SCAN_MAX_DEPTH: u32 = 512;
export const SCAN_MAX_KEY: u32 = 32;
export const SCAN_MAX_LIMIT: u32 = 64;
export const SCAN_MAX_SALT: u32 = 256;
export const SCAN_MAX_MODEL: u32 = 1024;
export const SCAN_MAX_MEDIA: u32 = 32;
export const SEGMENT_INLINE_HASHES: u32 = 64;
export const SCAN_PAGE_HASHES: u32 = 512;
export const SCAN_PAGE_BYTES: usize = 4096;

// Head, for the host.
export const SCAN_HEAD_OPEN: usize = offsetof<ScanHead>('open');
export const SCAN_HEAD_SHORTAGES: usize = offsetof<ScanHead>('shortages');
export const SCAN_HEAD_NAME: usize = 64;
export const SCAN_HEAD_NAME_BYTES: u32 = 4032;
export const SCAN_HEAD_BYTES: usize = 4096;

// Fields of a scan, for the host.
export const SCAN_REASON: usize = offsetof<RequestScan>('reason');
export const SCAN_POSITION: usize = offsetof<RequestScan>('position');
export const SCAN_IS_OBJECT: usize = offsetof<RequestScan>('isObject');
export const SCAN_STREAM: usize = offsetof<RequestScan>('stream');
export const SCAN_MODEL_KNOWN: usize = offsetof<RequestScan>('modelKnown');
export const SCAN_MODEL_LENGTH: usize = offsetof<RequestScan>('modelLength');
export const SCAN_MODEL_START: usize = offsetof<RequestScan>('modelStart');
export const SCAN_MODEL_END: usize = offsetof<RequestScan>('modelEnd');
export const SCAN_SALT_KNOWN: usize = offsetof<RequestScan>('saltKnown');
export const SCAN_SALT_LENGTH: usize = offsetof<RequestScan>('saltLength');
export const SCAN_PROMPT_START: usize = offsetof<RequestScan>('promptStart');
export const SCAN_PROMPT_END: usize = offsetof<RequestScan>('promptEnd');
export const SCAN_TOOLS_START: usize = offsetof<RequestScan>('toolsStart');
export const SCAN_TOOLS_END: usize = offsetof<RequestScan>('toolsEnd');
export const SCAN_TEMPLATE_START: usize = offsetof<RequestScan>('templateStart');
export const SCAN_TEMPLATE_END: usize = offsetof<RequestScan>('templateEnd');
export const SCAN_LIMIT_FIRST_LENGTH: usize = offsetof<RequestScan>('limitFirstLength');
export const SCAN_LIMIT_SECOND_LENGTH: usize = offsetof<RequestScan>('limitSecondLength');
export const SCAN_MEDIA_COUNT: usize = offsetof<RequestScan>('mediaCount');

// Areas of a scan, behind its fields.
export const SCAN_BITS: usize = offsetof<RequestScan>(); // 64 bytes: one bit per open bracket, 1 = object
export const SCAN_LIMIT_FIRST: usize = SCAN_BITS + 64; // SCAN_MAX_LIMIT bytes
export const SCAN_LIMIT_SECOND: usize = SCAN_LIMIT_FIRST + <usize>SCAN_MAX_LIMIT; // SCAN_MAX_LIMIT bytes
export const SCAN_SALT: usize = SCAN_LIMIT_SECOND + <usize>SCAN_MAX_LIMIT; // SCAN_MAX_SALT bytes
export const SCAN_MODEL: usize = SCAN_SALT + <usize>SCAN_MAX_SALT; // SCAN_MAX_MODEL bytes
export const SEGMENT_BYTES: usize = offsetof<ContentSegment>() + ((<usize>SEGMENT_INLINE_HASHES) << 3);
// In the order of the chain.
export const SCAN_TOOLS_SEGMENT: usize = SCAN_MODEL + <usize>SCAN_MAX_MODEL;
export const SCAN_SYSTEM_SEGMENT: usize = SCAN_TOOLS_SEGMENT + SEGMENT_BYTES;
export const SCAN_PROMPT_SEGMENT: usize = SCAN_SYSTEM_SEGMENT + SEGMENT_BYTES;
export const SCAN_FIRST_SEGMENT: usize = SCAN_TOOLS_SEGMENT;
export const SCAN_LAST_SEGMENT: usize = SCAN_PROMPT_SEGMENT;
export const SCAN_MEDIA: usize = SCAN_PROMPT_SEGMENT + SEGMENT_BYTES; // u64 × SCAN_MAX_MEDIA: hashes of the media
/** u8 × SCAN_MAX_MEDIA: MEDIUM_* of each */
export const SCAN_MEDIA_KINDS: usize = SCAN_MEDIA + ((<usize>SCAN_MAX_MEDIA) << 3);
export const SCAN_MEDIA_STATE: usize = SCAN_MEDIA_KINDS + <usize>SCAN_MAX_MEDIA; // MediaState
export const SCAN_BYTES: usize = SCAN_MEDIA_STATE + offsetof<MediaState>();

/** Pages of a thread: room for every second scan to need one, and for at least four prompts of the longest kind. */
export function scanPages(scans: u32, c: u32): u32 {
  const longest = (c + SCAN_PAGE_HASHES - 1) / SCAN_PAGE_HASHES;
  const half = scans >> 1;
  return half > 4 * longest ? half : 4 * longest;
}

/** Offset of the page links in a thread's part. */
export function scanLinksOffset(scans: u32): u64 {
  return SCAN_HEAD_BYTES + <u64>scans * SCAN_BYTES;
}

/** Offset of the first page in a thread's part. */
export function scanPagesOffset(scans: u32, c: u32): u64 {
  return (scanLinksOffset(scans) + <u64>scanPages(scans, c) * 4 + 63) & ~(<u64>63);
}

/** Bytes of one thread's part of REGION_SCANS for `scans` open scans and prompts of at most `c` blocks. */
export function scanRegionBytes(scans: u32, c: u32): u64 {
  if (ASSERTIONS) assert(scans != 0 && c != 0, 'a thread has scans, and a chain has blocks');
  return scanPagesOffset(scans, c) + <u64>scanPages(scans, c) * SCAN_PAGE_BYTES;
}
