// Layout of one thread's part of REGION_SCANS.
//
// Owns: the part's size and every offset in it. Only the thread itself writes it, without a lock; after its death the
// next thread with the same number starts with scanReset(). Nothing needs to be written before first use: the two
// free lists hand out untouched places until something has been given back.
//
//   +0                 head: counters, then the name that the host wants at the root of the next chain
//   +4,096             `scans` scan states of SCAN_BYTES
//   behind them        one u32 per page: the page that follows it in its list, + 1 (padded to 64 bytes)
//   behind them        pages of 512 content hashes, for segments longer than the 64 blocks that a state holds itself
//
// All pages together bound the blocks of all open scans of a thread. When none is left, hashing of that prompt stops:
// its tail is not matched, which is an under-count, and SCAN_HEAD_SHORTAGES counts it.

// Head (u32 each).
export const SCAN_HEAD_OPEN: usize = 0; // scans open now
export const SCAN_HEAD_FREE: usize = 4; // given-back state + 1, first of a list
export const SCAN_HEAD_FRESH: usize = 8; // states handed out for the first time so far
export const SCAN_HEAD_FREE_PAGE: usize = 12; // given-back page + 1, first of a list
export const SCAN_HEAD_FRESH_PAGES: usize = 16; // pages handed out for the first time so far
export const SCAN_HEAD_SHORTAGES: usize = 20; // prompts whose hashing stopped because no page was left
export const SCAN_HEAD_NAME: usize = 64;
export const SCAN_HEAD_NAME_BYTES: u32 = 4032;
export const SCAN_HEAD_BYTES: usize = 4096;

// A hash stream: XXH64 lanes over 32-byte stripes (see hash.ts).
export const HASH_STREAM_LANES: usize = 0; // u64 × 4
export const HASH_STREAM_FILL: usize = 32; // u32: bytes in the unfinished stripe
export const HASH_STREAM_LENGTH: usize = 36; // u32: bytes absorbed, modulo 2^32
export const HASH_STREAM_STRIPE: usize = 40; // 32 bytes: the unfinished stripe
export const HASH_STREAM_BYTES: usize = 72;

// Scan state. u32 unless said otherwise; what stands before SCAN_BITS is cleared when a scan is opened.
export const SCAN_OPEN: usize = 0; // 1 while open; in the free list: next free state + 1
export const SCAN_KIND: usize = 4; // PROMPT_*
export const SCAN_BLOCK: usize = 8; // bytes per block
export const SCAN_REASON: usize = 12; // 0, or why the body was refused (SCAN_REASON_*)
export const SCAN_POSITION: usize = 16; // bytes accepted so far; once refused, offset of the refused byte
export const SCAN_LEX: usize = 20; // what the next byte may be (LEX_*)
export const SCAN_DEPTH: usize = 24; // open brackets
export const SCAN_TRACKED: usize = 28; // depth of the innermost container whose keys or elements matter
export const SCAN_ROLES: usize = 32; // u8 × 8: role of the value under way at each tracked depth (ROLE_*)
export const SCAN_SINK: usize = 40; // where the string or number under way goes (SINK_*)
export const SCAN_RAW: usize = 44; // where the raw bytes of the value under way go (RAW_*)
export const SCAN_UNIT: usize = 48; // UTF-16 unit of a \u escape, as far as read
export const SCAN_DIGITS: usize = 52; // hex digits of it read
export const SCAN_HIGH: usize = 56; // high surrogate that waits for its low one, or 0
export const SCAN_LITERAL: usize = 60; // bytes still missing of true, false or null, first one lowest
export const SCAN_KEY: usize = 64; // 32 bytes, zero padded
export const SCAN_KEY_LENGTH: usize = 96;
export const SCAN_SHAPE: usize = 100; // of the prompt value (SHAPE_*)
export const SCAN_NUMBER: usize = 104; // u64: token id, as far as read
export const SCAN_NUMBER_BAD: usize = 112; // the number is no token id
export const SCAN_VALUE_START: usize = 116; // offset of the top-level value under way
export const SCAN_IS_OBJECT: usize = 120;
export const SCAN_STREAM: usize = 124;
export const SCAN_MODEL_KNOWN: usize = 128; // the last `model` was a string
export const SCAN_MODEL_LENGTH: usize = 132; // bytes kept
export const SCAN_MODEL_START: usize = 136;
export const SCAN_MODEL_END: usize = 140;
export const SCAN_SALT_KNOWN: usize = 144;
export const SCAN_SALT_LENGTH: usize = 148; // bytes kept; the hash stands for all of it
export const SCAN_PROMPT_START: usize = 152;
export const SCAN_PROMPT_END: usize = 156; // 0 = no prompt of an allowed shape
export const SCAN_TOOLS_START: usize = 160;
export const SCAN_TOOLS_END: usize = 164; // 0 = none
export const SCAN_ENVELOPE: usize = 168; // what the JSON or the prompt lies in (ENVELOPE_*)
export const SCAN_SEGMENT: usize = 172; // offset of the segment that takes content now
export const SCAN_FAULT: usize = 176; // a field that is not the prompt has a wrong shape (FAULT_*, bits)
export const SCAN_NOTICE: usize = 180; // bytes of a system text that were like the notice so far
export const SCAN_LIMIT_FIRST_LENGTH: usize = 184; // text of the output bound that counts first
export const SCAN_LIMIT_SECOND_LENGTH: usize = 188; // and of the one that counts without it
export const SCAN_ENVELOPE_SEEN: usize = 192; // the envelope held what it is opened for
export const SCAN_MESSAGE_BYTES: usize = 196; // bytes of the envelope so far
export const SCAN_SALT_HASH: usize = 200; // u64, 0 = none
export const SCAN_ASIDE_STREAM: usize = 208; // hash stream of the cache salt or image under way
export const SCAN_DECODED: usize = 280; // 8 bytes: UTF-8 of one escape
export const SCAN_WIRE: usize = 288; // 72 bytes: state of the protobuf reader
export const SCAN_MEDIA_COUNT: usize = 360; // different media in the prompt, at most SCAN_MAX_MEDIA
export const SCAN_MEDIUM: usize = 364; // what the value under way is, if it is a medium (MEDIUM_*)
export const SCAN_CLEARED: usize = 368;
export const SCAN_BITS: usize = 368; // 64 bytes: one bit per open bracket, 1 = object
export const SCAN_LIMIT_FIRST: usize = 432; // 64 bytes
export const SCAN_LIMIT_SECOND: usize = 496; // 64 bytes
export const SCAN_SALT: usize = 560; // 256 bytes
export const SCAN_MODEL: usize = 816; // 1,024 bytes
export const SCAN_TOOLS_SEGMENT: usize = 1840;
export const SCAN_SYSTEM_SEGMENT: usize = 2448;
export const SCAN_PROMPT_SEGMENT: usize = 3056;
export const SCAN_MEDIA: usize = 3664; // u64 × SCAN_MAX_MEDIA: hashes of the media
export const SCAN_MEDIA_KINDS: usize = 3920; // u8 × SCAN_MAX_MEDIA: MEDIUM_* of each
// In the order of the chain.
export const SCAN_FIRST_SEGMENT: usize = SCAN_TOOLS_SEGMENT;
export const SCAN_LAST_SEGMENT: usize = SCAN_PROMPT_SEGMENT;
export const SCAN_MEDIA_SEEN: usize = 3952; // the prompt has images, audio or video; these four are cleared by contentOpen
export const SCAN_TYPE_NEXT: usize = 3956; // the next value is that of a `type` inside of a value taken raw
export const SCAN_TYPE_LENGTH: usize = 3960; // bytes kept of the type under way
export const SCAN_TYPE: usize = 3968; // 16 bytes, zero padded
export const SCAN_BYTES: usize = 3984;

// A segment: content that is hashed by itself, so that it does not matter in which order the body brings them. u32
// unless said otherwise; only the first five words are cleared when a scan is opened.
export const SEGMENT_HASH_COUNT: usize = 0; // whole blocks hashed
export const SEGMENT_FIRST_PAGE: usize = 4; // page + 1
export const SEGMENT_LAST_PAGE: usize = 8; // page + 1
export const SEGMENT_FULL: usize = 12; // hashing stopped: no page was left or there are more than CHAIN_BLOCKS blocks
export const SEGMENT_CONTENT_BYTES: usize = 16;
export const SEGMENT_STREAM: usize = 24; // hash stream of the block under way
export const SEGMENT_HASHES: usize = 96; // u64 × 64: content hashes of the first blocks
export const SEGMENT_BYTES: usize = 608;

export const SCAN_MAX_DEPTH: u32 = 512;
export const SCAN_MAX_KEY: u32 = 32;
export const SCAN_MAX_LIMIT: u32 = 64;
export const SCAN_MAX_SALT: u32 = 256;
export const SCAN_MAX_MODEL: u32 = 1024;
export const SCAN_MAX_MEDIA: u32 = 32;
export const SEGMENT_INLINE_HASHES: u32 = 64;
export const SCAN_PAGE_HASHES: u32 = 512;
export const SCAN_PAGE_BYTES: usize = 4096;

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
  return scanPagesOffset(scans, c) + <u64>scanPages(scans, c) * SCAN_PAGE_BYTES;
}
