import { threadClockMs } from '../runtime/pool-clock.js';

/**
 * Memory of this thread for bodies and messages, in slabs. An ArrayBuffer for each buffer would count against V8's
 * bound on memory outside its heap: the bodies of thousands of open streams made it mark the whole heap every second.
 * Slabs are few, they stay through short pauses, and the kernel gets them back.
 */

/** Part of a slab that holds buffers of one size: 16 of 64 KB with a head of 256 bytes each. */
const SHELF_BYTES = 16 * 65_792 + 4_096;
const SHELVES = 32;
/**
 * Above 32 MiB, the largest bound from which glibc's malloc maps memory of its own (mallopt(3), M_MMAP_THRESHOLD): so
 * the pages go back to the kernel with the slab, and those that were never used take no memory.
 */
const SLAB_BYTES = SHELVES * SHELF_BYTES;
/** Longest buffer: eight of them fill a shelf. */
export const SLAB_BUFFER_BYTES_MAX = SHELF_BYTES / 8;
/** Time for which an unused slab is kept. */
const IDLE_MS = 60_000;
const SWEEP_MS = 15_000;

/** Buffers of one size behind each other. */
interface Shelf {
  readonly slab: Slab;
  readonly from: number;
  /** Size class; undefined = the shelf is free. */
  size: SizeClass | undefined;
  /** Buffers that were made and are not in use. */
  readonly free: Buffer[];
  made: number;
  inUse: number;
  /** Place in the size's list of shelves with room; -1 = it is full. */
  place: number;
}

interface Slab {
  readonly memory: ArrayBuffer;
  readonly shelves: readonly Shelf[];
  readonly freeShelves: Shelf[];
  inUse: number;
  emptyAt: number;
}

/** Shelves of one size. */
interface SizeClass {
  readonly bytes: number;
  readonly perShelf: number;
  /** Shelves with room. */
  readonly open: Shelf[];
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
  const shelf = open.length > 0 ? open[open.length - 1]! : openShelf(size);
  shelf.slab.inUse++;
  if (++shelf.inUse === size.perShelf) closeShelf(shelf, size);
  return shelf.free.pop() ?? Buffer.from(shelf.slab.memory, shelf.from + bytes * shelf.made++, bytes);
}

/** Releases a buffer that nothing reads any more. */
export function giveToSlab(buffer: Buffer): void {
  const slab = slabOf.get(buffer.buffer)!;
  const shelf = slab.shelves[Math.floor(buffer.byteOffset / SHELF_BYTES)]!;
  const size = shelf.size!;
  shelf.free.push(buffer);
  if (shelf.place < 0) shelf.place = size.open.push(shelf) - 1;
  // The last shelf with room stays: as a rule a buffer of this size is asked for at once.
  if (--shelf.inUse === 0 && size.open.length > 1) freeShelf(shelf, size);
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
    for (const shelf of slab.shelves) if (shelf.size !== undefined) freeShelf(shelf, shelf.size);
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
  const size = { bytes, perShelf: Math.floor(SHELF_BYTES / bytes), open: [] };
  sizes.set(bytes, size);
  return size;
}

function openShelf(size: SizeClass): Shelf {
  const slab = slabs.find(({ freeShelves }) => freeShelves.length > 0) ?? newSlab();
  const shelf = slab.freeShelves.pop()!;
  shelf.size = size;
  shelf.place = size.open.push(shelf) - 1;
  return shelf;
}

/** Takes a shelf out of those with room. */
function closeShelf(shelf: Shelf, { open }: SizeClass): void {
  const last = open.pop()!;
  if (last !== shelf) {
    open[shelf.place] = last;
    last.place = shelf.place;
  }
  shelf.place = -1;
}

function freeShelf(shelf: Shelf, size: SizeClass): void {
  closeShelf(shelf, size);
  shelf.size = undefined;
  shelf.free.length = 0;
  shelf.made = 0;
  shelf.slab.freeShelves.push(shelf);
}

function newSlab(): Slab {
  const memory = Buffer.allocUnsafeSlow(SLAB_BYTES).buffer as ArrayBuffer;
  const shelves: Shelf[] = [];
  const slab: Slab = { memory, shelves, freeShelves: [], inUse: 0, emptyAt: threadClockMs() };
  for (let index = SHELVES - 1; index >= 0; index--) {
    const shelf: Shelf = { slab, from: index * SHELF_BYTES, size: undefined, free: [], made: 0, inUse: 0, place: -1 };
    slab.freeShelves.push(shelf);
    shelves[index] = shelf;
  }
  slabs.push(slab);
  slabOf.set(memory, slab);
  sweeping ??= setInterval(() => sweepSlabs(threadClockMs()), SWEEP_MS).unref();
  return slab;
}
