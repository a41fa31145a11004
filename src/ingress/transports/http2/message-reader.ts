import {
  bufferSize,
  giveBuffer,
  KEPT_BYTES_MAX,
  lendBuffer,
  takeBackBuffer,
  takeBuffer,
} from '../../../request/kept-buffers.js';
import type { ByteBudget } from '../../transport.js';

/** Bytes in front of every message: compressed flag and length (gRPC over HTTP/2, "Length-Prefixed-Message"). */
export const PREFIX_BYTES = 5;

/** The five bytes in front of a message. */
export function writePrefix(bytes: Buffer, at: number, length: number): void {
  bytes[at] = 0;
  bytes[at + 1] = length >>> 24;
  bytes[at + 2] = length >>> 16;
  bytes[at + 3] = length >>> 8;
  bytes[at + 4] = length;
}

/** Takes the messages of one stream in order. */
export interface MessageSink {
  /** Takes one whole message; the bytes are valid during the call. @returns false to stop the reading */
  message(bytes: Buffer, from: number, to: number): boolean;
}

/** Memory of messages that are not whole. */
export interface MessageMemory extends Pick<ByteBudget, 'take' | 'give'> {
  /** Whether so much is taken that a message gets no room before its bytes have come. */
  readonly isTight: boolean;
}

/** Reason why a stream cannot be read on. */
export type MessageFault =
  | 'compressed'
  /** Longer than the bound. */
  | 'too large'
  /** The budget has no room for received bytes. */
  | 'no room';

/**
 * Cuts the data of one stream into gRPC messages. A whole message passes in place. One in pieces is assembled in a
 * buffer, whose size counts against the budget while it is held.
 */
export class MessageReader {
  readonly #sink: MessageSink;
  readonly #budget: MessageMemory;
  readonly #bytesMax: number;
  #prefixBytes = 0;
  #flag = 0;
  #length = 0;
  #buffer: Buffer | undefined;
  #have = 0;
  #fault: MessageFault | undefined;
  #closed = false;

  /** @param bytesMax longest message */
  constructor(sink: MessageSink, budget: MessageMemory, bytesMax: number) {
    this.#sink = sink;
    this.#budget = budget;
    this.#bytesMax = bytesMax;
  }

  get fault(): MessageFault | undefined {
    return this.#fault;
  }

  /** Length of the message under way as it was announced. */
  get length(): number {
    return this.#length;
  }

  /** Missing bytes of the message under way; 0 = there is none, or its length is unknown. */
  get missing(): number {
    return this.#prefixBytes < PREFIX_BYTES ? 0 : this.#length - this.#have;
  }

  /** Whether the stream may end here: not inside a message. */
  get complete(): boolean {
    return this.#prefixBytes === 0;
  }

  /** The next bytes. @returns how far they were read: less than `to` when the sink stopped it, or at a fault */
  push(bytes: Buffer, from: number, to: number): number {
    let at = from;
    while (this.#fault === undefined && !this.#closed) {
      if (this.#prefixBytes < PREFIX_BYTES) {
        if (at === to) return at;
        at = this.#readPrefix(bytes, at, to);
        if (this.#prefixBytes < PREFIX_BYTES || !this.#accept()) continue;
      }
      const left = this.#length - this.#have;
      const end = Math.min(to, at + left);
      const whole = end - at === left;
      if (whole && this.#buffer === undefined) {
        this.#prefixBytes = 0;
        const start = at;
        at = end;
        if (!this.#sink.message(bytes, start, end)) return at;
        continue;
      }
      if (end > at && !this.#collect(bytes, at, end)) return at;
      at = end;
      if (!whole) return at;
      if (!this.#deliver()) return at;
    }
    return at;
  }

  /** Frees the bytes that are held. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#release();
  }

  #readPrefix(bytes: Buffer, from: number, to: number): number {
    let at = from;
    while (at < to && this.#prefixBytes < PREFIX_BYTES) {
      const byte = bytes[at++]!;
      if (this.#prefixBytes++ === 0) {
        this.#flag = byte;
        this.#length = 0;
      } else this.#length = this.#length * 256 + byte;
    }
    return at;
  }

  #accept(): boolean {
    if (this.#flag !== 0) this.#fault = 'compressed';
    else if (this.#length > this.#bytesMax) this.#fault = 'too large';
    return this.#fault === undefined;
  }

  /** Copies the bytes of a message that is not whole. */
  #collect(bytes: Buffer, from: number, to: number): boolean {
    const need = this.#have + to - from;
    if ((this.#buffer === undefined || this.#buffer.length < need) && !this.#grow(need)) return false;
    bytes.copy(this.#buffer!, this.#have, from, to);
    this.#have = need;
    return true;
  }

  /**
   * Messages of the usual sizes get all of their room at once, unless memory is tight. The room of longer ones doubles
   * as their bytes arrive, so that announced bytes take none.
   */
  #grow(need: number): boolean {
    const least = this.#budget.isTight ? 0 : KEPT_BYTES_MAX;
    const size = Math.min(bufferSize(this.#length), Math.max(least, bufferSize(need)));
    if (!this.#budget.take(size)) {
      this.#fault = 'no room';
      return false;
    }
    const buffer = takeBuffer(size);
    this.#buffer?.copy(buffer, 0, 0, this.#have);
    const have = this.#have;
    this.#release();
    this.#buffer = buffer;
    this.#have = have;
    return true;
  }

  #deliver(): boolean {
    const buffer = this.#buffer!;
    this.#prefixBytes = 0;
    this.#have = 0;
    // Taken out first: the sink may close this reader, and then the buffer must not be given away while it is read.
    this.#buffer = undefined;
    lendBuffer(buffer);
    try {
      return this.#sink.message(buffer, 0, this.#length);
    } finally {
      if (takeBackBuffer()) giveBuffer(buffer);
      this.#budget.give(buffer.length);
    }
  }

  #release(): void {
    if (this.#buffer === undefined) return;
    this.#budget.give(this.#buffer.length);
    giveBuffer(this.#buffer);
    this.#buffer = undefined;
    this.#have = 0;
  }
}
