import { giveToSlab, takeFromSlab } from './slabs.js';

/** Smallest buffer; up to the largest size that is kept they are powers of two and room for a head. */
const BUFFER_BYTES_MIN = 4_096;
/** Bytes beyond a power of two: a body comes in pieces of such sizes, with a head of some bytes before each. */
const HEAD_BYTES = 256;
/** Buffers up to this size are kept for later use: two of the largest body messages that a proxy sends. */
export const KEPT_BYTES_MAX = 131_072 + HEAD_BYTES;
/** Buffer whose bytes are read now, and which the reader may keep. */
let lent: Buffer | undefined;

/** Size of a buffer that holds so many bytes. */
export function bufferSize(bytes: number): number {
  const beyond = Math.max(bytes - HEAD_BYTES, BUFFER_BYTES_MIN);
  return 2 ** (32 - Math.clz32(beyond - 1)) + HEAD_BYTES;
}

/** A buffer of the thread. @param bytes a `bufferSize` */
export function takeBuffer(bytes: number): Buffer {
  return bytes > KEPT_BYTES_MAX ? Buffer.allocUnsafeSlow(bytes) : takeFromSlab(bytes);
}

/** Releases a buffer that nothing reads any more. */
export function giveBuffer(buffer: Buffer): void {
  if (buffer.length <= KEPT_BYTES_MAX) giveToSlab(buffer);
}

/** Lends a buffer to readers of its bytes, until `takeBackBuffer`. A reader may keep it, which saves a copy. */
export function lendBuffer(buffer: Buffer): void {
  lent = buffer;
}

/** Ends the loan. @returns false when a reader has kept the buffer, and ends the loan itself later */
export function takeBackBuffer(): boolean {
  const isBack = lent !== undefined;
  lent = undefined;
  return isBack;
}

/** Keeps the lent buffer, if these are its bytes and fill most of it. @returns undefined = they have to be copied */
export function keepLent(bytes: Uint8Array): Buffer | undefined {
  const buffer = lent;
  if (buffer === undefined || !lieIn(bytes, buffer) || bytes.length * 4 < buffer.length * 3) return undefined;
  lent = undefined;
  return buffer;
}

/** Buffers share the memory of a slab: the place in it counts as well. */
function lieIn(bytes: Uint8Array, { buffer, byteOffset, length }: Buffer): boolean {
  const from = bytes.byteOffset - byteOffset;
  return bytes.buffer === buffer && from >= 0 && from + bytes.length <= length;
}
