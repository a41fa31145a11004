/** Smallest buffer; up to the largest size that is kept they are powers of two and room for a head. */
const BUFFER_BYTES_MIN = 4_096;
/** Bytes beyond a power of two: a body comes in pieces of such sizes, with a head of some bytes before each. */
const HEAD_BYTES = 256;
/** Buffers up to this size are kept for later use: two of the largest body messages that a proxy sends. */
export const KEPT_BYTES_MAX = 131_072 + HEAD_BYTES;
/** Bytes of kept buffers of one size. */
const KEPT_SIZE_BYTES_MAX = 8 * 1024 * 1024;

const kept = new Map<number, Buffer[]>();
/** Buffer whose bytes are read now, and which the reader may keep. */
let lent: Buffer | undefined;

/** Size of a buffer that holds so many bytes. */
export function bufferSize(bytes: number): number {
  const beyond = Math.max(bytes - HEAD_BYTES, BUFFER_BYTES_MIN);
  return 2 ** (32 - Math.clz32(beyond - 1)) + HEAD_BYTES;
}

/** A buffer of the thread. @param bytes a `bufferSize` */
export function takeBuffer(bytes: number): Buffer {
  return kept.get(bytes)?.pop() ?? Buffer.allocUnsafeSlow(bytes);
}

/** Gives a buffer back that nothing reads any more. */
export function giveBuffer(buffer: Buffer): void {
  if (buffer.length > KEPT_BYTES_MAX) return;
  const buffers = kept.get(buffer.length) ?? [];
  if (buffers.length === 0) kept.set(buffer.length, buffers);
  if (buffers.length * buffer.length < KEPT_SIZE_BYTES_MAX) buffers.push(buffer);
}

/** Lends a buffer to those that read its bytes, until `takeBackBuffer`: one of them may keep it and spares a copy. */
export function lendBuffer(buffer: Buffer): void {
  lent = buffer;
}

/** Ends the loan. @returns false when a reader has kept the buffer, and will give it back itself */
export function takeBackBuffer(): boolean {
  const isBack = lent !== undefined;
  lent = undefined;
  return isBack;
}

/** Keeps the lent buffer, if these are its bytes and fill most of it. @returns undefined = they have to be copied */
export function keepLent(bytes: Uint8Array): Buffer | undefined {
  const buffer = lent;
  if (buffer === undefined || bytes.buffer !== buffer.buffer || bytes.length * 4 < buffer.length * 3) return undefined;
  lent = undefined;
  return buffer;
}
