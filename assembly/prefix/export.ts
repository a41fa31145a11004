// Export of the prefix index: its segments with their holders, for other replicas and for a file.
//
// Owns nothing. Takes the index lock for one piece at a time, so that decisions go on between two pieces. A segment
// that changes between two pieces is exported once, before or after the change.
import { ASSERTIONS } from '../assertions';
import { INDEX_LOCK, lockAcquire, lockRelease } from '../lock';
import { isMapped } from '../preconditions';
import { indexHead } from './head';
import { SET_WORDS, STAMPS } from './layout';
import { extentAt, extentEnd, extentList, extentSet, Segment, segmentAt } from './segment';
import { setBits, setTiered, setTiers } from './sets';

const PATIENCE: u32 = 100;

/** Head of a piece. */
@unmanaged
class PieceHead {
  /** Number of the segment that the next piece begins with, 0 = this is the last piece · exporting thread · none. */
  next: u32;
  /** Bytes of the records behind this head · exporting thread · none. */
  bytes: u32;
}

/**
 * One exported segment. Its held blocks' hashes follow, then its extents: each the end (u64) and the holders, a bit for
 * each endpoint slot. With EXPORT_TIERED in the end two bitmaps of their tiers follow, as in a set.
 */
@unmanaged
class ExportedSegment {
  /** Number of the segment · exporting thread · none. */
  segment: u32;
  /** Number of the parent, 0 = the blocks begin a prompt · exporting thread · none. */
  parent: u32;
  /** Chain hash of the block before · exporting thread · none. */
  parentHash: u64;
  /** Changes of the index since the segment was used · exporting thread · none. */
  age: u32;
  /** Blocks before the first one · exporting thread · none. */
  depth: u16;
  /** Held blocks · exporting thread · none. */
  length: u8;
  /** Extents · exporting thread · none. */
  extents: u8;
}

export const EXPORT_NEXT: usize = offsetof<PieceHead>('next');
export const EXPORT_BYTES: usize = offsetof<PieceHead>('bytes');
export const EXPORT_HEAD_BYTES: usize = offsetof<PieceHead>();
export const EXPORT_PARENT: usize = offsetof<ExportedSegment>('parent');
export const EXPORT_PARENT_HASH: usize = offsetof<ExportedSegment>('parentHash');
export const EXPORT_AGE: usize = offsetof<ExportedSegment>('age');
export const EXPORT_DEPTH: usize = offsetof<ExportedSegment>('depth');
export const EXPORT_LENGTH: usize = offsetof<ExportedSegment>('length');
export const EXPORT_EXTENTS: usize = offsetof<ExportedSegment>('extents');
export const EXPORT_SEGMENT_BYTES: usize = offsetof<ExportedSegment>();
/** Holders of an extent, behind its end. */
export const EXPORT_EXTENT_HOLDERS: usize = sizeof<u64>();
/** In the end of an extent: an endpoint holds its blocks below the GPU. */
export const EXPORT_TIERED: u32 = 0x100;

/** Bytes of an extent, at most. */
function extentBytes(): usize {
  return EXPORT_EXTENT_HOLDERS + 3 * ((<usize>SET_WORDS) << 3);
}

/** Writes one extent. @returns the address behind it */
function exportExtent(extent: u32, to: usize): usize {
  const set = extentSet(extent);
  const tiered = setTiered(set);
  const bitmap = (<usize>SET_WORDS) << 3;
  store<u64>(to, <u64>(extentEnd(extent) | (tiered ? EXPORT_TIERED : 0)));
  memory.copy(to + EXPORT_EXTENT_HOLDERS, setBits(set), bitmap);
  const end = to + EXPORT_EXTENT_HOLDERS + bitmap;
  if (!tiered) return end;
  memory.copy(end, setTiers(set), bitmap << 1);
  return end + (bitmap << 1);
}

/** Last block of the parent that the segment hangs on. */
function parentHash(at: Segment): u64 {
  if (at.parent == 0) return 0;
  const above = segmentAt(at.parent);
  const position = <usize>(<u32>at.depth - <u32>above.depth - 1);
  return load<u64>(above.content + (position << 3));
}

/** Writes one segment. @returns bytes written */
function exportSegment(segment: u32, at: Segment, address: usize): usize {
  const list = extentList(at);
  const extents = <u32>at.extents;
  const length = extentEnd(extentAt(list, extents - 1));
  const record = changetype<ExportedSegment>(address);
  record.segment = segment;
  record.parent = at.parent;
  record.parentHash = parentHash(at);
  record.age = indexHead().tick - load<u32>(STAMPS + ((<usize>segment) << 2));
  record.depth = at.depth;
  record.length = <u8>length;
  record.extents = <u8>extents;
  let to = address + offsetof<ExportedSegment>();
  memory.copy(to, at.content, (<usize>length) << 3);
  to += (<usize>length) << 3;
  for (let i: u32 = 0; i < extents; i++) to = exportExtent(extentAt(list, i), to);
  return to - address;
}

/**
 * Writes the segments with holders, from number `from` on, to `address`: a PieceHead and records. Segments without
 * holders are left out, and what hangs on them is not found again either.
 * @param bytes space at `address`
 * @param segmentsMax bound on the segments that are looked at, so that the lock is not held for long
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function prefixExport(from: u32, address: usize, bytes: u32, segmentsMax: u32): u32 {
  if (ASSERTIONS) assert(isMapped(address, bytes), 'the piece is in the memory');
  if (ASSERTIONS) assert(bytes >= <u32>offsetof<PieceHead>(), 'the piece has room for its head');
  if (!lockAcquire(INDEX_LOCK, PATIENCE)) return 1;
  const head = changetype<PieceHead>(address);
  const top = indexHead().segmentTop;
  const end = address + bytes;
  let to = address + offsetof<PieceHead>();
  let segment = from;
  for (let looks: u32 = 0; segment <= top && looks < segmentsMax; looks++, segment++) {
    const at = segmentAt(segment);
    const extents = <usize>at.extents;
    if (at.length == 0 || extents == 0) continue;
    const need = offsetof<ExportedSegment>() + ((<usize>at.length) << 3) + extents * extentBytes();
    if (end - to < need) break;
    to += exportSegment(segment, at, to);
  }
  head.next = segment <= top ? segment : 0;
  head.bytes = <u32>(to - address - offsetof<PieceHead>());
  if (ASSERTIONS) assert(to <= end, 'the piece fits into its room');
  lockRelease(INDEX_LOCK);
  return 0;
}
