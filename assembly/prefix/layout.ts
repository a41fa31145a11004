// Layout of the prefix index inside REGION_PREFIX.
//
// Owns: the division of REGION_PREFIX and this thread's addresses in it (set by prefixBind, constant afterwards). The
// parts, who writes them, and who reads them:
//   head       4 KiB: free lists, tick, counters                                  index lock      any
//   table      buckets of 64 bytes: block hash -> (segment, position)              index lock      any, no lock
//   segments   header of 64 bytes + SEGMENT_BLOCKS hashes                          index lock      any, by version
//   stamps     u32 per segment: when it was last looked up or inserted             any, plain      index lock
//   overflow   SEGMENT_BLOCKS extents, for segments with more than INLINE_EXTENTS      index lock      any, by version
//   sets       interned holder sets: meta, bitmaps, hash heads, transition cache   index lock      any, by version
//   tiers      of holder sets: two bits per endpoint, where it holds the blocks   index lock      any, by version
//   members    one bit per (endpoint, group of segments): may hold something there index lock      index lock
//   recency    u32 per (endpoint, group of segments): when it was last sent there  index lock      index lock
//   oldest     per endpoint: its VICTIMS oldest segments, found by a pass           index lock      index lock
//   tails      partial last blocks                                                 index lock      any, self-checking
//   losses     u64 per lost run of blocks: why it was lost                         index lock      any, no lock
//   beginnings u64 per first block of a prompt: what stood in front of it          index lock      any, no lock
//   scratch    the path, extents and victims of the operation under way              index lock      index lock
//   readers    per thread: segments visited, endpoints still alive, blocks on tiers its thread      its thread

/** Blocks in one segment. A segment never crosses a depth that is a multiple of it. */
export const SEGMENT_BLOCKS: u32 = 64;
export const SEGMENT_SHIFT: u32 = 6;
export const SEGMENT_MASK: u32 = 63;
export const SEGMENT_BYTES: usize = 64 + 64 * 8;

const HEAD_BYTES: u64 = 4096;
const BUCKET_SLOTS_LOADED: u64 = 15; // ten slots a bucket at a load of 0.75: 15 entries in two buckets
/** Buckets that a search may pass; as many stand behind the last home bucket, so that a search never wraps. */
export const TABLE_PROBES: u32 = 64;
const TRANSITIONS: u64 = 65536;
const SETS_MAX: u32 = 65536;
/** 512 KiB, which a second-level cache keeps. */
const LOSS_WORDS_MAX: u32 = 65536;
const BEGINNING_WORDS: u32 = 8192;
/** Victims that one pass over the segments finds. */
export const VICTIMS: u32 = 128;
const SCRATCH_BYTES: u64 = 8192;

/** Segments for n blocks: three quarters full on the average, and some for a small index. */
export function segmentCount(n: u32): u32 {
  return n / 48 + 128;
}

function setCount(n: u32): u32 {
  let sets: u32 = 1024;
  while (sets < SETS_MAX && sets < n >> 3) sets <<= 1;
  return sets;
}

function overflowCount(n: u32): u32 {
  return segmentCount(n) / 16 + 16;
}

function bucketCount(n: u32): u32 {
  return <u32>((<u64>n * 2) / BUCKET_SLOTS_LOADED) + 8;
}

/** Buckets of tails, 128 bytes and eight entries each. */
function tailBuckets(n: u32): u32 {
  return n / 256 + 64;
}

/**
 * Words of the table of losses, a power of two: two for each segment, as a run of blocks that is lost is at most one.
 */
function lossWords(n: u32): u32 {
  let words: u32 = 1024;
  while (words < LOSS_WORDS_MAX && words < segmentCount(n) << 1) words <<= 1;
  return words;
}

/** Segments behind one bit of the members map, as a shift: the map takes at most about one byte per block. */
function groupShift(p: u32, n: u32): u32 {
  let shift: u32 = 0;
  while ((<u64>p * (segmentCount(n) >> shift)) >> 3 > <u64>n + 65536) shift++;
  return shift;
}

function memberWords(p: u32, n: u32): u32 {
  return (((segmentCount(n) >> groupShift(p, n)) + 64) >> 6) + 1;
}

/**
 * Bytes of stamps per block of the index, at most, beyond the first 4 MiB: 48 give 512 endpoints a stamp per segment.
 */
const RECENCY_BYTES_PER_BLOCK: u64 = 48;

/** Segments behind one stamp of an endpoint, as a shift. */
function recencyShift(p: u32, n: u32): u32 {
  let shift: u32 = 0;
  while (<u64>p * ((<u64>recencyWords(n, shift)) << 2) > <u64>n * RECENCY_BYTES_PER_BLOCK + (4 << 20)) shift++;
  return shift;
}

/** Words of an endpoint's row of stamps: whole lines of 64 bytes. */
function recencyWords(n: u32, shift: u32): u32 {
  return ((segmentCount(n) >> shift) + 16) & ~15;
}

function recencyBytes(p: u32, n: u32): u64 {
  return <u64>p * ((<u64>recencyWords(n, recencyShift(p, n))) << 2);
}

/** Bytes of an endpoint's row of oldest segments: two words and VICTIMS entries, in whole lines. */
export const OLDEST_ROW: usize = 64 + ((<usize>VICTIMS) << 3);

function readerBytes(p: u32, c: u32): u64 {
  return (((<u64>c + 8) << 4) + (p >> 3) + ((<u64>p) << 3) + 256 + 63) & ~(<u64>63);
}

function align(bytes: u64): u64 {
  return (bytes + 63) & ~(<u64>63);
}

/**
 * Bytes of REGION_PREFIX for SLOTS endpoints, INDEX_BLOCKS unique blocks, chains of at most CHAIN_BLOCKS blocks and
 * THREADS threads.
 */
export function prefixRegionBytes(p: u32, n: u32, c: u32, k: u32): u64 {
  const segments = <u64>segmentCount(n) + 1;
  let bytes = HEAD_BYTES;
  bytes += (<u64>bucketCount(n) + TABLE_PROBES) << 6;
  bytes += segments * SEGMENT_BYTES;
  bytes += align(segments << 2);
  bytes += (<u64>overflowCount(n) + 1) * (SEGMENT_BLOCKS << 2);
  bytes += <u64>setCount(n) * (16 + 4 + (p >> 3)) + (TRANSITIONS << 4);
  bytes += <u64>setCount(n) * (1 + (p >> 2));
  bytes += align(<u64>p * ((<u64>memberWords(p, n)) << 3)) + recencyBytes(p, n);
  bytes += <u64>p * OLDEST_ROW;
  bytes += (<u64>tailBuckets(n)) << 7;
  bytes += align((<u64>p) << 2) + ((<u64>lossWords(n) + BEGINNING_WORDS) << 3);
  bytes += SCRATCH_BYTES + align((<u64>overflowCount(n) >> 3) + 1) + ((<u64>c + 8) << 4);
  return align(bytes) + <u64>k * readerBytes(p, c);
}

/** Addresses and sizes of this instance. */
export let HEAD: usize = 0;
export let TABLE: usize = 0;
export let BUCKETS: u32 = 0;
export let SEGMENTS: usize = 0;
export let SEGMENT_COUNT: u32 = 0; // segments are numbered 1 .. SEGMENT_COUNT; 0 is none
export let STAMPS: usize = 0;
export let OVERFLOW: usize = 0;
export let OVERFLOW_COUNT: u32 = 0; // numbered 1 .. OVERFLOW_COUNT
export let SET_META: usize = 0;
export let SET_HEADS: usize = 0;
export let SET_BITS: usize = 0;
export let SET_COUNT: u32 = 0; // 0 is the empty set
export let SET_WORDS: u32 = 0; // u64 words of a bitmap
export let SET_CACHE: usize = 0;
export let SET_TIERS: usize = 0;
export let SET_TIERED: usize = 0; // one byte a set, not 0 = an endpoint holds its blocks below the GPU
export let MEMBERS: usize = 0;
export let MEMBER_WORDS: u32 = 0;
export let GROUP_SHIFT: u32 = 0;
export let RECENCY: usize = 0;
export let RECENCY_WORDS: u32 = 0; // u32 words of a row
export let RECENCY_SHIFT: u32 = 0;
export let OLDEST: usize = 0;
export let TAILS: usize = 0;
export let TAIL_BUCKETS: u32 = 0;
export let TAIL_EPOCHS: usize = 0;
export let LOSSES: usize = 0;
export let LOSS_MASK: usize = 0;
export let BEGINNINGS: usize = 0;
export let BEGINNING_MASK: usize = 0;
export let SCRATCH: usize = 0; // extents under construction, then victims
export let MARKS: usize = 0; // one bit per overflow list, for a repair
export let PATH: usize = 0; // 16 bytes per step of the path
export let VISITED: usize = 0; // this thread's
export let ALIVE: usize = 0; // this thread's
export let GUESSES: usize = 0; // this thread's
export let TIER_BLOCKS: usize = 0; // this thread's: u64 per slot, four counts of 16 bits
export let BLOCK_LIMIT: u32 = 0; // INDEX_BLOCKS
export let CHAIN_LIMIT: u32 = 0; // CHAIN_BLOCKS
export let SLOT_LIMIT: u32 = 0; // SLOTS

/** Sets this instance's addresses. */
export function prefixBind(region: usize, p: u32, n: u32, c: u32, thread: u32): void {
  BLOCK_LIMIT = n;
  CHAIN_LIMIT = c;
  SLOT_LIMIT = p;
  BUCKETS = bucketCount(n);
  SEGMENT_COUNT = segmentCount(n);
  OVERFLOW_COUNT = overflowCount(n);
  SET_COUNT = setCount(n);
  SET_WORDS = p >> 6;
  MEMBER_WORDS = memberWords(p, n);
  GROUP_SHIFT = groupShift(p, n);
  RECENCY_SHIFT = recencyShift(p, n);
  RECENCY_WORDS = recencyWords(n, RECENCY_SHIFT);
  TAIL_BUCKETS = tailBuckets(n);
  const segments = <usize>SEGMENT_COUNT + 1;
  HEAD = region;
  TABLE = HEAD + <usize>HEAD_BYTES;
  SEGMENTS = TABLE + ((<usize>BUCKETS + TABLE_PROBES) << 6);
  STAMPS = SEGMENTS + segments * SEGMENT_BYTES;
  OVERFLOW = STAMPS + <usize>align((<u64>segments) << 2);
  SET_META = OVERFLOW + (<usize>OVERFLOW_COUNT + 1) * (SEGMENT_BLOCKS << 2);
  SET_HEADS = SET_META + ((<usize>SET_COUNT) << 4);
  SET_BITS = SET_HEADS + ((<usize>SET_COUNT) << 2);
  SET_CACHE = SET_BITS + <usize>SET_COUNT * (p >> 3);
  SET_TIERS = SET_CACHE + <usize>(TRANSITIONS << 4);
  SET_TIERED = SET_TIERS + <usize>SET_COUNT * (p >> 2);
  MEMBERS = SET_TIERED + SET_COUNT;
  RECENCY = MEMBERS + <usize>align(<u64>p * ((<u64>MEMBER_WORDS) << 3));
  OLDEST = RECENCY + <usize>recencyBytes(p, n);
  TAILS = OLDEST + <usize>p * OLDEST_ROW;
  TAIL_EPOCHS = TAILS + ((<usize>TAIL_BUCKETS) << 7);
  LOSSES = TAIL_EPOCHS + <usize>align((<u64>p) << 2);
  LOSS_MASK = <usize>lossWords(n) - 1;
  BEGINNINGS = LOSSES + ((LOSS_MASK + 1) << 3);
  BEGINNING_MASK = BEGINNING_WORDS - 1;
  SCRATCH = BEGINNINGS + ((<usize>BEGINNING_WORDS) << 3);
  MARKS = SCRATCH + <usize>SCRATCH_BYTES;
  PATH = MARKS + <usize>align((<u64>OVERFLOW_COUNT >> 3) + 1);
  const end = <usize>align(<u64>(PATH - region) + ((<u64>c + 8) << 4));
  VISITED = region + end + <usize>(<u64>thread * readerBytes(p, c));
  ALIVE = VISITED + ((<usize>c + 8) << 4);
  GUESSES = ALIVE + (p >> 3) + 64;
  TIER_BLOCKS = GUESSES + 64;
}
