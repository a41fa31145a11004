// The block table: from a block's hash to the segment and position that hold it.
//
// Owns: the table part of REGION_PREFIX. Written under the index lock, read by anyone. A bucket of 64 bytes is
//   +0  u32       how many entries whose home is here or before stand behind this bucket: 0 ends a search
//   +4  u16 × 10  tags, 16 bits of the mixed hash
//   +24 u32 × 10  segment × 64 + position, 0 = free
// Entries never move, so a reader that comes between sees an entry or does not. What it finds it proves by the hash
// that stands in the segment.
import { BUCKETS, SEGMENT_BYTES, SEGMENT_MASK, SEGMENT_SHIFT, SEGMENTS, TABLE, TABLE_PROBES } from './layout';

const SLOTS: u32 = 10;
const GOLDEN: u64 = 0x9e3779b97f4a7c15; // 2^64 / golden ratio: spreads short hashes too (Knuth, vol. 3, 6.4)

function homeOf(mixed: u64): usize {
  return TABLE + ((<usize>(((mixed >> 32) * <u64>BUCKETS) >> 32)) << 6);
}

function tagOf(mixed: u64): u16 {
  return <u16>(mixed >> 16);
}

/** Bits 0 to 9: the slots of a bucket that carry the tag. */
function tagHits(bucket: usize, tag: u16): u32 {
  const eight = <u32>i16x8.bitmask(i16x8.eq(v128.load(bucket, 4), i16x8.splat(<i16>tag)));
  const two = (u32(load<u16>(bucket, 20) == tag) << 8) | (u32(load<u16>(bucket, 22) == tag) << 9);
  return eight | two;
}

/** Hash of the block at a location. The first one stands in the header, which a search reads anyway. */
function hashAt(location: u32): u64 {
  const segment = SEGMENTS + <usize>(location >> SEGMENT_SHIFT) * SEGMENT_BYTES;
  const position = location & SEGMENT_MASK;
  return position == 0 ? load<u64>(segment, 16) : load<u64>(segment + ((<usize>position) << 3), 64);
}

/** Location of a block, or 0. */
export function tableFind(hash: u64): u32 {
  const mixed = hash * GOLDEN;
  const tag = tagOf(mixed);
  let bucket = homeOf(mixed);
  for (let i: u32 = 0; i < TABLE_PROBES; i++) {
    let hits = tagHits(bucket, tag);
    while (hits != 0) {
      const location = load<u32>(bucket + ((<usize>ctz(hits)) << 2), 24);
      if (location != 0 && hashAt(location) == hash) return location;
      hits &= hits - 1;
    }
    if (load<u32>(bucket) == 0) return 0;
    bucket += 64;
  }
  return 0;
}

/** Where a block probably stands, by its tag alone: for touching memory ahead. */
export function tableGuess(hash: u64): u32 {
  const mixed = hash * GOLDEN;
  const bucket = homeOf(mixed);
  const hits = tagHits(bucket, tagOf(mixed));
  return hits == 0 ? 0 : load<u32>(bucket + ((<usize>ctz(hits)) << 2), 24);
}

/** Enter a block that is not in the table yet. @returns false when no bucket within reach has room */
function put(hash: u64, location: u32): bool {
  const mixed = hash * GOLDEN;
  const home = homeOf(mixed);
  let bucket = home;
  for (let i: u32 = 0; i < TABLE_PROBES; i++) {
    for (let slot: usize = 0; slot < SLOTS; slot++) {
      if (load<u32>(bucket + (slot << 2), 24) != 0) continue;
      store<u16>(bucket + (slot << 1), tagOf(mixed), 4);
      store<u32>(bucket + (slot << 2), location, 24);
      for (let passed = home; passed < bucket; passed += 64) store<u32>(passed, load<u32>(passed) + 1);
      return true;
    }
    bucket += 64;
  }
  return false;
}

/**
 * Enter a block.
 * @returns 0, or 1 when its hash stands elsewhere already, 2 when there is no room
 */
export function tableEnter(hash: u64, location: u32): u32 {
  const found = tableFind(hash);
  if (found != 0) return found == location ? 0 : 1;
  return put(hash, location) ? 0 : 2;
}

/** Take a block out. */
export function tableLeave(hash: u64, location: u32): void {
  const mixed = hash * GOLDEN;
  const tag = tagOf(mixed);
  const home = homeOf(mixed);
  let bucket = home;
  for (let i: u32 = 0; i < TABLE_PROBES; i++) {
    for (let hits = tagHits(bucket, tag); hits != 0; hits &= hits - 1) {
      const slot = <usize>ctz(hits);
      if (load<u32>(bucket + (slot << 2), 24) != location) continue;
      store<u32>(bucket + (slot << 2), 0, 24);
      for (let passed = home; passed < bucket; passed += 64) store<u32>(passed, load<u32>(passed) - 1);
      return;
    }
    bucket += 64;
  }
}

/** Forget every entry. */
export function tableClear(): void {
  memory.fill(TABLE, 0, (<usize>BUCKETS + TABLE_PROBES) << 6);
}
