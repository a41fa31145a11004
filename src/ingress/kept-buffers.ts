/** Smallest buffer; up to the largest size that is kept they are powers of two. */
const BUFFER_BYTES_MIN = 4_096;
/** Buffers up to this size are kept for later use: two of the largest body messages that a proxy sends. */
export const KEPT_BYTES_MAX = 131_072;
/** Bytes of kept buffers of one size. */
const KEPT_SIZE_BYTES_MAX = 8 * 1024 * 1024;

const kept = new Map<number, Buffer[]>();

/** Size of a buffer that holds so many bytes. */
export function bufferSize(bytes: number): number {
  return Math.max(BUFFER_BYTES_MIN, 2 ** Math.ceil(Math.log2(bytes)));
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
