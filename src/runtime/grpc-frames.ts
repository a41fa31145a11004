import { unzipSync } from 'node:zlib';

/** Bytes before every message: compressed flag and length (gRPC over HTTP/2, "Length-Prefixed-Message"). */
const PREFIX_BYTES = 5;
const COMPRESSED = 1;
const NO_BYTES = new Uint8Array(0);

/** Receives the messages of a body in pieces as they arrive. */
export interface FrameConsumer {
  /** Begins a message. */
  messageBegin(): void;
  /** Takes the next piece of the message; never empty. False ends the reading. */
  piece(bytes: Uint8Array): boolean;
  /** Ends the message. */
  messageEnd(): boolean;
}

/** Reason why frames cannot be read. */
export type FrameFault = 'flag' | 'too large' | 'not decompressed';

/**
 * Splits a gRPC body into messages, for any cut of its bytes. A plain message passes piece by piece without a copy. A
 * compressed one (gzip or deflate, recognised by their headers) is collected up to `maxBytes`, inflated to at most as
 * many, and passed in one piece.
 */
export class GrpcFrames {
  readonly #maxBytes: number;
  readonly #prefix = new Uint8Array(PREFIX_BYTES);
  #prefixBytes = 0;
  #left = 0;
  #packed: Uint8Array[] | undefined;
  #messages = 0;
  #fault: FrameFault | undefined;

  /** @param maxBytes bound on a compressed message in bytes, before and after inflating */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Complete messages so far. */
  get messages(): number {
    return this.#messages;
  }

  /** Whether the body may end here, outside of a frame. */
  get complete(): boolean {
    return this.#prefixBytes === 0;
  }

  /** Set when the frames cannot be read any further. */
  get fault(): FrameFault | undefined {
    return this.#fault;
  }

  /** Reads the next bytes of the body; those of a compressed message are copied. */
  feed(chunk: Uint8Array, consumer: FrameConsumer): boolean {
    let at = 0;
    while (this.#fault === undefined) {
      if (this.#prefixBytes < PREFIX_BYTES) {
        if (at === chunk.length) return true;
        at = this.#readPrefix(chunk, at);
        if (this.#prefixBytes < PREFIX_BYTES || !this.#open()) continue;
        consumer.messageBegin();
      }
      const to = Math.min(at + this.#left, chunk.length);
      if (to > at) {
        const bytes = at === 0 && to === chunk.length ? chunk : chunk.subarray(at, to);
        this.#left -= bytes.length;
        at = to;
        if (this.#packed !== undefined) this.#packed.push(Uint8Array.from(bytes));
        else if (!consumer.piece(bytes)) return false;
      }
      if (this.#left > 0) return true;
      if (!this.#close(consumer)) return false;
    }
    return false;
  }

  #readPrefix(chunk: Uint8Array, at: number): number {
    const taken = Math.min(PREFIX_BYTES - this.#prefixBytes, chunk.length - at);
    for (let i = 0; i < taken; i++) this.#prefix[this.#prefixBytes++] = chunk[at + i]!;
    return at + taken;
  }

  /** Opens a message after its complete prefix. */
  #open(): boolean {
    const [flag, a, b, c, d] = this.#prefix as unknown as [number, number, number, number, number];
    this.#left = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
    if (flag > COMPRESSED) return this.#refuse('flag');
    if (flag !== COMPRESSED) return true;
    if (this.#left > this.#maxBytes) return this.#refuse('too large');
    this.#packed = [];
    return true;
  }

  #close(consumer: FrameConsumer): boolean {
    this.#prefixBytes = 0;
    this.#messages++;
    const packed = this.#packed;
    if (packed !== undefined) {
      this.#packed = undefined;
      const bytes = this.#inflate(packed);
      if (bytes === undefined || (bytes.length > 0 && !consumer.piece(bytes))) return false;
    }
    return consumer.messageEnd();
  }

  #inflate(packed: readonly Uint8Array[]): Uint8Array | undefined {
    if (packed.length === 0) return NO_BYTES;
    try {
      return unzipSync(Buffer.concat(packed), { maxOutputLength: this.#maxBytes });
    } catch (error) {
      this.#refuse((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'too large' : 'not decompressed');
      return undefined;
    }
  }

  #refuse(fault: FrameFault): false {
    this.#fault = fault;
    return false;
  }
}
