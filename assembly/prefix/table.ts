// The block table: from a block's hash to the segment and position that hold it.
//
// Owns: the table part of REGION_PREFIX. Written under the index lock, read by any thread without it. Entries never
// move, so a concurrent reader sees an entry or does not. The hash in the segment proves what the reader finds.
import { BUCKETS, SEGMENT_MASK, SEGMENT_SHIFT, TABLE, TABLE_PROBES } from './layout';
import { segmentAt } from './segment';

const SLOTS: u32 = 10;
const GOLDEN: u64 = 0x9e3779b97f4a7c15; // 2^64 / golden ratio: spreads short hashes too (Knuth, vol. 3, 6.4)

/** Ten entries. */
@unmanaged
class Bucket {
  /** Entries behind this bucket whose home is here or before; 0 ends a search · any thread · index lock. */
  behind: u32;
  /** Ten tags of 16 bits of the mixed hash · any thread · index lock. */
  tags: u32;
  private tags2: u32;
  private tags4: u32;
  private tags6: u32;
  private tags8: u32;
  /** Ten locations, segment × SEGMENT_BLOCKS + position, 0 = free · any thread · index lock. */
  locations: u32;
  private locations1: u32;
  private locations2: u64;
  private locations4: u64;
  private locations6: u64;
  private locations8: u64;

  next(): Bucket {
    return changetype<Bucket>(changetype<usize>(this) + offsetof<Bucket>());
  }

  location(slot: usize): u32 {
    return load<u32>(changetype<usize>(this) + (slot << 2), offsetof<Bucket>('locations'));
  }

  setLocation(slot: usize, location: u32): void {
    store<u32>(changetype<usize>(this) + (slot << 2), location, offsetof<Bucket>('locations'));
  }

  setTag(slot: usize, tag: u16): void {
    store<u16>(changetype<usize>(this) + (slot << 1), tag, offsetof<Bucket>('tags'));
  }

  /** Bits 0 to 9: the slots that carry the tag. */
  tagHits(tag: u16): u32 {
    const at = changetype<usize>(this);
    const eight = <u32>i16x8.bitmask(i16x8.eq(v128.load(at, offsetof<Bucket>('tags')), i16x8.splat(<i16>tag)));
    const ninth = load<u16>(at, offsetof<Bucket>('tags8'));
    const tenth = load<u16>(at, offsetof<Bucket>('tags8') + sizeof<u16>());
    return eight | (u32(ninth == tag) << 8) | (u32(tenth == tag) << 9);
  }
}

function homeOf(mixed: u64): Bucket {
  const home = <usize>(((mixed >> 32) * <u64>BUCKETS) >> 32);
  return changetype<Bucket>(TABLE + home * offsetof<Bucket>());
}

function tagOf(mixed: u64): u16 {
  return <u16>(mixed >> 16);
}

/** Hash of the block at a location. The first one stands in the header, which a search reads anyway. */
function hashAt(location: u32): u64 {
  const at = segmentAt(location >> SEGMENT_SHIFT);
  const position = location & SEGMENT_MASK;
  return position == 0 ? at.first : load<u64>(at.content + ((<usize>position) << 3));
}

/** Location of a block, or 0. */
export function tableFind(hash: u64): u32 {
  const mixed = hash * GOLDEN;
  const tag = tagOf(mixed);
  let bucket = homeOf(mixed);
  for (let i: u32 = 0; i < TABLE_PROBES; i++) {
    let hits = bucket.tagHits(tag);
    while (hits != 0) {
      const location = bucket.location(<usize>ctz(hits));
      if (location != 0 && hashAt(location) == hash) return location;
      hits &= hits - 1;
    }
    if (bucket.behind == 0) return 0;
    bucket = bucket.next();
  }
  return 0;
}

/** Returns the probable place of a block, by its tag alone: for prefetching memory. */
export function tableGuess(hash: u64): u32 {
  const mixed = hash * GOLDEN;
  const bucket = homeOf(mixed);
  const hits = bucket.tagHits(tagOf(mixed));
  return hits == 0 ? 0 : bucket.location(<usize>ctz(hits));
}

/** Read by tableTouch, so that the compiler keeps its loads. */
let touched: u32 = 0;

/**
 * Reads the home buckets of many hashes, as a prefetch before each is entered or left: WebAssembly has no prefetch, and
 * loads that do not wait for each other are served together.
 */
export function tableTouch(hashes: usize, blocks: u32): void {
  let sum: u32 = 0;
  for (let i: u32 = 0; i < blocks; i++) sum ^= homeOf(load<u64>(hashes + ((<usize>i) << 3)) * GOLDEN).behind;
  touched = sum;
}

/** Counts an entry in `bucket` at the buckets from its home on that a search passes. */
function countBehind(home: Bucket, bucket: Bucket, by: i32): void {
  for (let at = home; changetype<usize>(at) < changetype<usize>(bucket); at = at.next()) at.behind += <u32>by;
}

/** Enters a block that is not in the table yet. @returns false when no bucket within reach has room */
function put(hash: u64, location: u32): bool {
  const mixed = hash * GOLDEN;
  const home = homeOf(mixed);
  let bucket = home;
  for (let i: u32 = 0; i < TABLE_PROBES; i++) {
    for (let slot: usize = 0; slot < SLOTS; slot++) {
      if (bucket.location(slot) != 0) continue;
      bucket.setTag(slot, tagOf(mixed));
      bucket.setLocation(slot, location);
      countBehind(home, bucket, 1);
      return true;
    }
    bucket = bucket.next();
  }
  return false;
}

/**
 * Enters a block.
 * @returns 0, or 1 when its hash stands elsewhere already, 2 when there is no room
 */
export function tableEnter(hash: u64, location: u32): u32 {
  const found = tableFind(hash);
  if (found != 0) return found == location ? 0 : 1;
  return put(hash, location) ? 0 : 2;
}

/** Takes a block out. */
export function tableLeave(hash: u64, location: u32): void {
  const mixed = hash * GOLDEN;
  const tag = tagOf(mixed);
  const home = homeOf(mixed);
  let bucket = home;
  for (let i: u32 = 0; i < TABLE_PROBES; i++) {
    for (let hits = bucket.tagHits(tag); hits != 0; hits &= hits - 1) {
      const slot = <usize>ctz(hits);
      if (bucket.location(slot) != location) continue;
      bucket.setLocation(slot, 0);
      countBehind(home, bucket, -1);
      return;
    }
    bucket = bucket.next();
  }
}

/** Forgets every entry. */
export function tableClear(): void {
  memory.fill(TABLE, 0, (<usize>BUCKETS + TABLE_PROBES) << 6);
}
