// One segment as it stands in memory, and its list of extents.
//
// Owns no words of its own: segments.ts and extents.ts write what is laid out here, under the index lock; readers
// read it without a lock between two equal even versions.
import { OVERFLOW, SEGMENT_BLOCKS, SEGMENT_BYTES, SEGMENTS } from './layout';

/** Extents that fit into the segment itself; a longer list stands in the overflow part. */
export const INLINE_EXTENTS: u32 = 6;
const EXTENT_LIST_BYTES: usize = (<usize>SEGMENT_BLOCKS) << 2;
const SET_MASK: u32 = 0xffffff;

/** Header of 64 bytes; SEGMENT_BLOCKS hashes follow. */
@unmanaged
export class Segment {
  /** Changes begun and ended, odd while one is under way · any thread, atomically · index lock. */
  version: u32;
  /** Blocks · any thread · index lock. */
  length: u8;
  /** Extents · any thread · index lock. */
  extents: u8;
  /** Leading blocks that stand in the table · any thread · index lock. */
  registered: u8;
  /** Leading blocks that children hang on · any thread · index lock. */
  needed: u8;
  /** Blocks before the first one · any thread · index lock. */
  depth: u16;
  private unused: u16;
  /** Segments that hang on this one · any thread · index lock. */
  children: u32;
  /** Chain hash of the first block · any thread · index lock. */
  first: u64;
  /** Chain hash of the last block · any thread · index lock. */
  last: u64;
  /** Number of the parent, 0 = none; of the next free segment while this one is free · any thread · index lock. */
  parent: u32;
  /** Live requests whose prompt ends here · any thread · index lock. */
  pins: u32;
  /** First of INLINE_EXTENTS extents, or number of an overflow list when there are more · any thread · index lock. */
  extent0: u32;
  private extent1: u32;
  private extent2: u32;
  private extent3: u32;
  private extent4: u32;
  private extent5: u32;

  /** The version as readers see it. */
  get seenVersion(): u32 {
    return atomic.load<u32>(changetype<usize>(this) + offsetof<Segment>('version'));
  }

  /** The segment is about to change: readers turn away from it. An atomic addition is a full barrier everywhere. */
  begin(): void {
    atomic.add<u32>(changetype<usize>(this) + offsetof<Segment>('version'), 1);
  }

  /** The change is complete. */
  end(): void {
    this.setVersion(this.version + 1);
  }

  setVersion(version: u32): void {
    atomic.store<u32>(changetype<usize>(this) + offsetof<Segment>('version'), version);
  }

  /** Address of the hashes. */
  get content(): usize {
    return changetype<usize>(this) + offsetof<Segment>();
  }

  /** Chain hash of block `i`. */
  hash(i: u32): u64 {
    return load<u64>(this.content + ((<usize>i) << 3));
  }
}

export function segmentAt(segment: u32): Segment {
  return changetype<Segment>(SEGMENTS + <usize>segment * SEGMENT_BYTES);
}

/** Number of a segment. */
export function segmentOf(at: Segment): u32 {
  return <u32>((changetype<usize>(at) - SEGMENTS) / SEGMENT_BYTES);
}

/** Address of an overflow list. */
export function overflowList(list: u32): usize {
  return OVERFLOW + <usize>list * EXTENT_LIST_BYTES;
}

/** Address of the extents inside the segment. */
export function inlineExtents(at: Segment): usize {
  return changetype<usize>(at) + offsetof<Segment>('extent0');
}

/** Address of a segment's extents. */
export function extentList(at: Segment): usize {
  return at.extents <= INLINE_EXTENTS ? inlineExtents(at) : overflowList(at.extent0);
}

export function extentAt(list: usize, i: u32): u32 {
  return load<u32>(list + ((<usize>i) << 2));
}

export function extentEnd(extent: u32): u32 {
  return extent >> 24;
}

export function extentSet(extent: u32): u32 {
  return extent & SET_MASK;
}
