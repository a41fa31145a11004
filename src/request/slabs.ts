import { threadClockMs } from '../runtime/pool-clock.js';

/**
 * Memory of this thread for bodies and messages, in slabs. An ArrayBuffer for each buffer would count against V8's
 * bound on memory outside its heap: the bodies of thousands of open streams made it mark the whole heap every second.
 * Slabs are few, they stay through short pauses, and the kernel gets them back.
 */

/** Part of a slab that holds buffers of one size: 16 of 64 KB with a head of 256 bytes each. */
const SPAN_BYTES = 16 * 65_792 + 4_096;
const SPANS = 32;
/**
 * Above 32 MiB, the largest bound from which glibc's malloc maps memory of its own (mallopt(3), M_MMAP_THRESHOLD): so
 * the pages go back to the kernel with the slab, and those that were never used take no memory.
 */
const SLAB_BYTES = SPANS * SPAN_BYTES;
/** Longest buffer: eight of them fill a span. */
export const SLAB_BUFFER_BYTES_MAX = SPAN_BYTES / 8;
/** A slab is kept for this long behind its last use. */
const IDLE_MS = 60_000;
const SWEEP_MS = 15_000;

/** Buffers of one size behind each other. */
interface Span {
  readonly slab: Slab;
  readonly from: number;
  /** Size class; undefined = the span is free. */
  size: SizeClass | undefined;
  /** Buffers that were made and are not in use. */
  readonly free: Buffer[];
  made: number;
  inUse: number;
  /** Place in the size's list of spans with room; -1 = it is full. */
  place: number;
}

interface Slab {
  readonly memory: ArrayBuffer;
  readonly spans: readonly Span[];
  readonly freeSpans: Span[];
  inUse: number;
  emptyAt: number;
}

/** Spans of one size. */
interface SizeClass {
  readonly bytes: number;
  readonly perSpan: number;
  /** Spans with room. */
  readonly open: Span[];
}

const sizes = new Map<number, SizeClass>();
/** In the order in which they were made: the first with room is used first, so that the last ones get free. */
let slabs: Slab[] = [];
const slabOf = new Map<ArrayBufferLike, Slab>();
let sweeping: NodeJS.Timeout | undefined;

/** A buffer of the thread; its content is arbitrary. @param bytes at most SLAB_BUFFER_BYTES_MAX, one of a few sizes */
export function takeFromSlab(bytes: number): Buffer {
  const size = sizes.get(bytes) ?? newSize(bytes);
  const { open } = size;
  const span = open.length > 0 ? open[open.length - 1]! : openSpan(size);
  span.slab.inUse++;
  if (++span.inUse === size.perSpan) closeSpan(span, size);
  return span.free.pop() ?? Buffer.from(span.slab.memory, span.from + bytes * span.made++, bytes);
}

/** Gives a buffer back that nothing reads any more. */
export function giveToSlab(buffer: Buffer): void {
  const slab = slabOf.get(buffer.buffer)!;
  const span = slab.spans[Math.floor(buffer.byteOffset / SPAN_BYTES)]!;
  const size = span.size!;
  span.free.push(buffer);
  if (span.place < 0) span.place = size.open.push(span) - 1;
  // The last span with room stays: as a rule a buffer of this size is asked for at once.
  if (--span.inUse === 0 && size.open.length > 1) freeSpan(span, size);
  if (--slab.inUse === 0) slab.emptyAt = threadClockMs();
}

/** Bytes of the slabs, used or not. */
export function slabBytes(): number {
  return slabs.length * SLAB_BYTES;
}

/** Gives slabs back to the kernel that have been empty for a while. @param now milliseconds of `threadClockMs` */
export function sweepSlabs(now: number): void {
  slabs = slabs.filter((slab) => {
    if (slab.inUse > 0 || now - slab.emptyAt < IDLE_MS) return true;
    for (const span of slab.spans) if (span.size !== undefined) freeSpan(span, span.size);
    slabOf.delete(slab.memory);
    // Frees the memory now, and not when the object is collected.
    slab.memory.transfer(0);
    return false;
  });
  if (slabs.length > 0) return;
  clearInterval(sweeping);
  sweeping = undefined;
}

function newSize(bytes: number): SizeClass {
  if (bytes > SLAB_BUFFER_BYTES_MAX) throw new RangeError(`a buffer of ${bytes} bytes is none of a slab`);
  const size = { bytes, perSpan: Math.floor(SPAN_BYTES / bytes), open: [] };
  sizes.set(bytes, size);
  return size;
}

function openSpan(size: SizeClass): Span {
  const slab = slabs.find(({ freeSpans }) => freeSpans.length > 0) ?? newSlab();
  const span = slab.freeSpans.pop()!;
  span.size = size;
  span.place = size.open.push(span) - 1;
  return span;
}

/** Takes a span out of those with room. */
function closeSpan(span: Span, { open }: SizeClass): void {
  const last = open.pop()!;
  if (last !== span) {
    open[span.place] = last;
    last.place = span.place;
  }
  span.place = -1;
}

function freeSpan(span: Span, size: SizeClass): void {
  closeSpan(span, size);
  span.size = undefined;
  span.free.length = 0;
  span.made = 0;
  span.slab.freeSpans.push(span);
}

function newSlab(): Slab {
  const memory = Buffer.allocUnsafeSlow(SLAB_BYTES).buffer as ArrayBuffer;
  const spans: Span[] = [];
  const slab: Slab = { memory, spans, freeSpans: [], inUse: 0, emptyAt: threadClockMs() };
  for (let index = SPANS - 1; index >= 0; index--) {
    const span: Span = { slab, from: index * SPAN_BYTES, size: undefined, free: [], made: 0, inUse: 0, place: -1 };
    slab.freeSpans.push(span);
    spans[index] = span;
  }
  slabs.push(slab);
  slabOf.set(memory, slab);
  sweeping ??= setInterval(() => sweepSlabs(threadClockMs()), SWEEP_MS).unref();
  return slab;
}
