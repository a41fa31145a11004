import { FRAME_BYTES_MAX, FRAME_HEADER_BYTES } from './protocol.js';

/** Holds several frames of the largest size: one write of the socket takes what a turn of the event loop has to say. */
export const CHUNK_BYTES = 65_536;
/** Chunks that the thread keeps for later use. */
const SPARE_CHUNKS_MAX = 64;

const spare: Buffer[] = [];

function takeChunk(): Buffer {
  return spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
}

function giveChunk(chunk: Buffer): void {
  if (spare.length < SPARE_CHUNKS_MAX) spare.push(chunk);
}

/** Receiver of a connection's frames. */
export interface Wire {
  /** Takes the bytes, which stay as they are until `unsent` is 0. */
  write(bytes: Buffer): void;
  /** Bytes that were written and not yet taken by the kernel. */
  readonly unsent: number;
}

/**
 * Frames on their way out of one connection. They are written behind each other into chunks of the thread, and go to
 * the socket in one piece when `flush` is called.
 */
export class OutBuffer {
  readonly #wire: Wire;
  /** Full chunks of this turn. */
  #full: { chunk: Buffer; length: number }[] = [];
  /** Chunks that the socket may still read. */
  #written: Buffer[] = [];
  #chunk: Buffer | undefined;
  #at = 0;
  #fullBytes = 0;
  #closed = false;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Bytes that the client has not been sent, here and in the socket. */
  get unsent(): number {
    return this.#fullBytes + this.#at + this.#wire.unsent;
  }

  /** Whether there is output to flush. */
  get dirty(): boolean {
    return this.#at > 0 || this.#fullBytes > 0;
  }

  /** Chunk that holds the frame that was begun last. */
  get bytes(): Buffer {
    return this.#chunk!;
  }

  /**
   * Begins a frame: its nine bytes are written here, its payload by the caller before anything else is called.
   * @param length of the payload, at most FRAME_BYTES_MAX
   * @returns where the payload lies in `bytes`
   */
  frame(length: number, type: number, flags: number, stream: number): number {
    if (length > FRAME_BYTES_MAX) throw new RangeError(`a frame of ${length} bytes`);
    const at = this.reserve(FRAME_HEADER_BYTES + length);
    const chunk = this.#chunk!;
    chunk[at] = length >>> 16;
    chunk[at + 1] = length >>> 8;
    chunk[at + 2] = length;
    chunk[at + 3] = type;
    chunk[at + 4] = flags;
    chunk[at + 5] = stream >>> 24;
    chunk[at + 6] = stream >>> 16;
    chunk[at + 7] = stream >>> 8;
    chunk[at + 8] = stream;
    return at + FRAME_HEADER_BYTES;
  }

  /** Gives everything to the socket. */
  flush() {
    if (this.#closed) return;
    if (this.#full.length > 0) this.#writeFull();
    const last = this.#chunk;
    if (last === undefined || this.#at === 0) return this.#recycle();
    this.#chunk = undefined;
    const length = this.#at;
    this.#at = 0;
    this.#write(last, length);
    this.#recycle();
  }

  /** Forgets the socket: nothing is read from then on. */
  close(): void {
    this.#closed = true;
    // The socket may still read its bytes; they are left to the garbage collector.
    this.#written = [];
    for (const { chunk } of this.#full) giveChunk(chunk);
    if (this.#chunk !== undefined) giveChunk(this.#chunk);
    this.#full = [];
    this.#chunk = undefined;
    this.#at = 0;
    this.#fullBytes = 0;
  }

  #writeFull(): void {
    for (const { chunk, length } of this.#full) this.#write(chunk, length);
    this.#full = [];
    this.#fullBytes = 0;
  }

  /**
   * Writes a chunk. As a rule the kernel takes everything at once: then the chunk is free, and no list of chunks is
   * made.
   */
  #write(chunk: Buffer, length: number): void {
    this.#wire.write(chunk.subarray(0, length));
    if (this.#written.length === 0 && this.#wire.unsent === 0) giveChunk(chunk);
    else this.#written.push(chunk);
  }

  /** Chunks that the kernel did not take at once wait for the next flush or drain. */
  #recycle(): void {
    if (this.#written.length === 0 || this.#wire.unsent > 0) return;
    for (const chunk of this.#written) giveChunk(chunk);
    this.#written.length = 0;
  }

  /**
   * Room for whole frames, which the caller writes before anything else is called.
   * @param length at most CHUNK_BYTES
   * @returns where they lie in `bytes`
   */
  reserve(length: number): number {
    if (this.#chunk !== undefined && this.#at + length > CHUNK_BYTES) {
      this.#full.push({ chunk: this.#chunk, length: this.#at });
      this.#fullBytes += this.#at;
      this.#chunk = undefined;
      this.#at = 0;
    }
    this.#chunk ??= takeChunk();
    const at = this.#at;
    this.#at += length;
    return at;
  }
}
