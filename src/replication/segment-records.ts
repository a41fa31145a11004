import { CORE } from '../core/core-names.js';
import type { ExportedSegment, HeldRun } from '../core/index-export.js';

/** Bytes of a record before its hashes: segment, parent, age, depth, length, runs, hash before. */
const HEAD_BYTES = 24;
const RUN_HEAD_BYTES = 4;
/**
 * A holder in 16 bits: the low 12 of its endpoint's number, two of the place of its blocks, less PLACE_GPU, and the
 * high two of the number.
 */
const LOW_BITS = 12;
const LOW_MASK = (1 << LOW_BITS) - 1;
const TIER_MASK = 3;
const HIGH_SHIFT = 14;
/** Blocks of a segment (assembly/prefix/layout.ts). */
const LENGTH_MAX = 64;

/** Segments of the prefix index as bytes. `slots` are numbers of a list of endpoints that travels with them. */
export function encodeSegments(segments: readonly ExportedSegment[]): Uint8Array {
  const bytes = new Uint8Array(segments.reduce((sum, segment) => sum + bytesOf(segment), 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const segment of segments) at = writeSegment(view, at, segment);
  return bytes;
}

function bytesOf({ hashes, runs }: ExportedSegment): number {
  return HEAD_BYTES + 8 * hashes.length + runs.reduce((sum, { slots }) => sum + RUN_HEAD_BYTES + 2 * slots.length, 0);
}

function writeSegment(view: DataView, start: number, segment: ExportedSegment): number {
  const { hashes, runs } = segment;
  view.setUint32(start, segment.segment, true);
  view.setUint32(start + 4, segment.parent, true);
  view.setUint32(start + 8, segment.age, true);
  view.setUint16(start + 12, segment.depth, true);
  view.setUint8(start + 14, hashes.length);
  view.setUint8(start + 15, runs.length);
  view.setBigUint64(start + 16, segment.parentHash ?? 0n, true);
  let at = start + HEAD_BYTES;
  for (const hash of hashes) {
    view.setBigUint64(at, hash, true);
    at += 8;
  }
  for (const { end, slots, places } of runs) {
    view.setUint16(at, end, true);
    view.setUint16(at + 2, slots.length, true);
    at += RUN_HEAD_BYTES;
    for (const [i, slot] of slots.entries()) {
      const tier = places === undefined ? 0 : places[i]! - CORE.PLACE_GPU;
      view.setUint16(at, (slot & LOW_MASK) | (tier << LOW_BITS) | ((slot >> LOW_BITS) << HIGH_SHIFT), true);
      at += 2;
    }
  }
  return at;
}

/** Most that an index has of each: what decodes to more takes memory and time out of proportion to its bytes. */
export interface SegmentBounds {
  readonly segments: number;
  readonly runs: number;
  /** Endpoints of all runs. */
  readonly holders: number;
}

/**
 * Reads what encodeSegments wrote.
 * @throws RangeError when the bytes are no whole records
 */
export function decodeSegments(bytes: Uint8Array): ExportedSegment[] {
  return [...segmentsOf(bytes, { segments: bytes.length, runs: bytes.length, holders: bytes.length })];
}

/**
 * Reads what encodeSegments wrote, one segment at a time.
 * @throws RangeError when the bytes are no whole records, or more than the bounds
 */
export function* segmentsOf(bytes: Uint8Array, bounds: SegmentBounds): Generator<ExportedSegment> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let { segments, runs, holders } = bounds;
  for (let at = 0; at < bytes.length; ) {
    const read = readSegment(view, at);
    segments -= 1;
    runs -= read.segment.runs.length;
    holders -= read.holders;
    if (segments < 0) throw new RangeError(`it has more than ${bounds.segments} segments`);
    if (runs < 0) throw new RangeError(`its segments have more than ${bounds.runs} runs`);
    if (holders < 0) throw new RangeError(`its runs name more than ${bounds.holders} endpoints`);
    yield read.segment;
    at = read.end;
  }
}

interface ReadSegment {
  readonly segment: ExportedSegment;
  readonly holders: number;
  /** Place of the next record. */
  readonly end: number;
}

function readSegment(view: DataView, start: number): ReadSegment {
  const parent = view.getUint32(start + 4, true);
  const length = view.getUint8(start + 14);
  const count = view.getUint8(start + 15);
  if (length === 0 || length > LENGTH_MAX || count > length) throw new RangeError('a segment has a wrong length');
  const hashes = new BigUint64Array(length);
  let at = start + HEAD_BYTES;
  for (let i = 0; i < length; i++, at += 8) hashes[i] = view.getBigUint64(at, true);
  const runs: HeldRun[] = [];
  let holders = 0;
  for (let i = 0; i < count; i++) {
    const end = view.getUint16(at, true);
    if (end > length || end <= (runs.at(-1)?.end ?? 0)) throw new RangeError('a run ends at a wrong place');
    const slots = new Uint16Array(view.getUint16(at + 2, true));
    if (slots.length > CORE.ENDPOINTS_MAX) throw new RangeError('a run names more endpoints than there can be');
    for (let j = 0; j < slots.length; j++) slots[j] = view.getUint16(at + RUN_HEAD_BYTES + 2 * j, true);
    runs.push({ end, ...placed(slots) });
    holders += slots.length;
    at += RUN_HEAD_BYTES + 2 * slots.length;
  }
  const segment = {
    segment: view.getUint32(start, true),
    parent,
    parentHash: parent === 0 ? undefined : view.getBigUint64(start + 16, true),
    age: view.getUint32(start + 8, true),
    depth: view.getUint16(start + 12, true),
    hashes,
    runs,
  };
  return { segment, holders, end: at };
}

/** Takes the places out of the numbers. @throws RangeError when one is that of no endpoint */
function placed(slots: Uint16Array): Pick<HeldRun, 'slots' | 'places'> {
  if (slots.every((slot) => slot <= LOW_MASK)) return { slots };
  const places = Uint8Array.from(slots, (slot) => CORE.PLACE_GPU + ((slot >> LOW_BITS) & TIER_MASK));
  const numbers = slots.map((slot) => (slot & LOW_MASK) | ((slot >> HIGH_SHIFT) << LOW_BITS));
  if (numbers.some((number) => number >= CORE.ENDPOINTS_MAX)) throw new RangeError('a run names an unknown endpoint');
  return places.every((place) => place === CORE.PLACE_GPU) ? { slots: numbers } : { slots: numbers, places };
}
