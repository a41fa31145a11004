// Layout of the active blocks inside REGION_ACTIVE.
//
// Owns: the division of REGION_ACTIVE and this instance's addresses in it (set by activeBind, constant afterwards). All
// parts are read and written under the index lock:
//   head      64 bytes: entries in use, free lists of counts, live requests
//   entries   64 bytes each, open addressing by (segment, slot)
//   counts    256 bytes each: a count for every end, for entries with more ends than stand in the entry

const HEAD_BYTES: u64 = 64;
export const ENTRY_BYTES: usize = 64;
export const COUNTS_BYTES: usize = 256;
/** Mean segments per request that the table is sized for: 512 blocks, 128 KiB of text. */
const MEAN_SEGMENTS: u32 = 8;
const ENTRIES_MAX: u32 = 1 << 22;

function segmentsOf(c: u32): u32 {
  return c / 64 + 2;
}

/** Entries, a power of two: twice what live requests of mean length need, and enough for a few of the longest. */
function entryCount(r: u32, c: u32): u32 {
  const wanted = max(<u64>r * 2 * min(MEAN_SEGMENTS, segmentsOf(c)), <u64>segmentsOf(c) * 4);
  let entries: u32 = 256;
  while (entries < ENTRIES_MAX && <u64>entries < wanted) entries <<= 1;
  return entries;
}

function countsCount(r: u32, c: u32): u32 {
  return entryCount(r, c) / 64 + segmentsOf(c);
}

/** Bytes of REGION_ACTIVE for REQUESTS live requests and chains of at most CHAIN_BLOCKS blocks. */
export function activeRegionBytes(_p: u32, r: u32, c: u32): u64 {
  return HEAD_BYTES + ((<u64>entryCount(r, c)) << 6) + (<u64>countsCount(r, c) + 1) * COUNTS_BYTES;
}

export let ACTIVE_HEAD: usize = 0;
export let ENTRIES: usize = 0;
export let ENTRY_COUNT: u32 = 0;
export let COUNTS: usize = 0;
export let COUNTS_COUNT: u32 = 0; // numbered 1 .. COUNTS_COUNT

/** Sets this instance's addresses. */
export function activeBind(region: usize, r: u32, c: u32): void {
  ACTIVE_HEAD = region;
  ENTRIES = region + <usize>HEAD_BYTES;
  ENTRY_COUNT = entryCount(r, c);
  COUNTS = ENTRIES + ((<usize>ENTRY_COUNT) << 6);
  COUNTS_COUNT = countsCount(r, c);
}
