import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** Segments that are looked at under one hold of the index lock. */
const LOOKS = 256;

/** A run of blocks inside one segment of the prefix index, with the endpoint slots that hold it. */
export interface HeldRun {
  readonly end: number;
  readonly slots: readonly number[] | Uint16Array;
  /** Nearest place of each slot's blocks, PLACE_*; undefined = all of them hold the blocks on the GPU. */
  readonly places?: Uint8Array | undefined;
}

/** One segment of the prefix index: consecutive blocks, and the endpoints that hold each of them. */
export interface ExportedSegment {
  readonly segment: number;
  /** Number of the segment that it hangs on, 0 = it begins a prompt. */
  readonly parent: number;
  readonly parentHash: bigint | undefined;
  /** Changes of the index since its last use. */
  readonly age: number;
  /** Blocks before the first one. */
  readonly depth: number;
  readonly hashes: BigUint64Array;
  /** Each begins where the one before ends. */
  readonly runs: readonly HeldRun[];
}

/**
 * Reads the prefix index segment by segment. Between two pieces decisions go on, so the export is no instant of the
 * index. Segments come in no order. Copies: nothing of the result is in shared memory.
 */
export class IndexExport {
  readonly #core: CoreInstance;
  readonly #address: number;
  #next = 1;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#address = core.call.inputAddress() >>> 0;
  }

  /** The next piece; undefined = everything was read; empty also when the index lock could not be had. */
  next(): readonly ExportedSegment[] | undefined {
    if (this.#next === 0) return undefined;
    const { call, view } = this.#core;
    if (call.prefixExport(this.#next, this.#address, CORE.THREAD_INPUT_BYTES, LOOKS) !== 0) return [];
    this.#next = view.getUint32(this.#address + CORE.EXPORT_NEXT, true);
    const bytes = view.getUint32(this.#address + CORE.EXPORT_BYTES, true);
    return this.#read(this.#address + CORE.EXPORT_HEAD_BYTES, bytes);
  }

  #read(from: number, bytes: number): ExportedSegment[] {
    const { view, memory } = this.#core;
    const segments: ExportedSegment[] = [];
    for (let at = from; at < from + bytes; ) {
      const length = view.getUint8(at + CORE.EXPORT_LENGTH);
      const count = view.getUint8(at + CORE.EXPORT_EXTENTS);
      const hashes = at + CORE.EXPORT_SEGMENT_BYTES;
      const { runs, end } = this.#readRuns(hashes + 8 * length, count);
      const parent = view.getUint32(at + CORE.EXPORT_PARENT, true);
      segments.push({
        segment: view.getUint32(at, true),
        parent,
        parentHash: parent === 0 ? undefined : view.getBigUint64(at + CORE.EXPORT_PARENT_HASH, true),
        age: view.getUint32(at + CORE.EXPORT_AGE, true),
        depth: view.getUint16(at + CORE.EXPORT_DEPTH, true),
        hashes: new BigUint64Array(memory.buffer, hashes, length).slice(),
        runs,
      });
      at = end;
    }
    return segments;
  }

  #readRuns(from: number, count: number): { readonly runs: readonly HeldRun[]; readonly end: number } {
    const { view, sizes } = this.#core;
    const bitmap = sizes.endpoints / 8;
    const runs: HeldRun[] = [];
    let at = from;
    for (let i = 0; i < count; i++) {
      const end = view.getUint32(at, true);
      const holders = at + CORE.EXPORT_EXTENT_HOLDERS;
      const slots = this.#readSlots(holders);
      const isTiered = (end & CORE.EXPORT_TIERED) !== 0;
      const low = holders + bitmap;
      const high = low + bitmap;
      const places = isTiered ? this.#readPlaces(slots, low, high) : undefined;
      runs.push({ end: end & ~CORE.EXPORT_TIERED, slots, ...(places !== undefined && { places }) });
      at = isTiered ? high + bitmap : low;
    }
    return { runs, end: at };
  }

  #readSlots(bitmap: number): readonly number[] {
    const { view, sizes } = this.#core;
    const slots: number[] = [];
    for (let word = 0; word < sizes.endpoints / 32; word++) {
      let rest = view.getUint32(bitmap + word * 4, true);
      while (rest !== 0) {
        const low = rest & -rest;
        slots.push(word * 32 + 31 - Math.clz32(low));
        rest ^= low;
      }
    }
    return slots;
  }

  #readPlaces(slots: readonly number[], low: number, high: number): Uint8Array {
    const { view } = this.#core;
    const bit = (bitmap: number, slot: number) => (view.getUint8(bitmap + (slot >> 3)) >> (slot & 7)) & 1;
    return Uint8Array.from(slots, (slot) => CORE.PLACE_GPU + bit(low, slot) + 2 * bit(high, slot));
  }
}

/** In an order in which a parent comes before its children, and the prompts that were used longest ago come first. */
export function parentsFirst(segments: readonly ExportedSegment[]): ExportedSegment[] {
  const byNumber = new Map(segments.map((segment) => [segment.segment, segment]));
  const rootAges = new Map<number, number>();
  // In a file of others a chain may be as long as depths go, so no recursion follows it.
  for (const { segment, parent, depth, age } of [...segments].sort((a, b) => a.depth - b.depth)) {
    const above = byNumber.get(parent);
    rootAges.set(segment, above === undefined || above.depth >= depth ? age : rootAges.get(above.segment)!);
  }
  return segments
    .map((segment) => ({ segment, age: rootAges.get(segment.segment)! }))
    .sort((a, b) => b.age - a.age || a.segment.depth - b.segment.depth)
    .map(({ segment }) => segment);
}
