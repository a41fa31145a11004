import { HpackDecoder } from './hpack/decoder.js';
import { CONTINUATIONS_MAX, HEADER_BLOCK_BYTES_MAX } from './limits.js';
import {
  ConnectionError,
  ErrorCode,
  FLAG_END_HEADERS,
  FLAG_END_STREAM,
  FLAG_PADDED,
  FLAG_PRIORITY,
  FrameType,
} from './protocol.js';
import { RequestHead } from './request-head.js';

/** Longest block that is remembered. */
const KNOWN_BYTES_MAX = 512;

/** Stream dependency and weight, in front of a header block with FLAG_PRIORITY. */
const PRIORITY_BYTES = 5;

/** Takes whole header blocks. */
export interface HeadSink {
  head(stream: number, endStream: boolean, head: RequestHead): void;
}

/**
 * Puts header blocks together from HEADERS and CONTINUATION frames and decodes them. The latest block is remembered
 * with its head: the calls of a proxy are alike, and their blocks are equal byte for byte once the table holds their
 * fields.
 */
export class HeaderBlocks {
  readonly #sink: HeadSink;
  readonly #decoder = new HpackDecoder();
  /** Made with the first block: a silent connection has none. */
  #known: Buffer | undefined;
  #knownBytes = 0;
  #knownHead: RequestHead | undefined;
  /** Changes of the table when the block was decoded. */
  #knownAt = 0;
  /** Stream of the block that is not complete; 0 = none is. */
  #open = 0;
  #endStream = false;
  #parts: Buffer[] = [];
  #bytes = 0;
  #continuations = 0;

  constructor(sink: HeadSink) {
    this.#sink = sink;
  }

  /** Checks every frame before it counts: inside a block only its CONTINUATION may come (section 6.10). */
  check(type: number, stream: number): void {
    if (this.#open === 0) {
      if (type === FrameType.continuation) throw protocolError('a CONTINUATION without a header block');
    } else if (type !== FrameType.continuation || stream !== this.#open) {
      throw protocolError('a frame inside a header block');
    }
  }

  headers(flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    let start = from;
    let end = to;
    if ((flags & FLAG_PADDED) !== 0) {
      if (start === end) throw new ConnectionError(ErrorCode.frameSize, 'padded HEADERS without a pad length');
      end -= bytes[start++]!;
    }
    if ((flags & FLAG_PRIORITY) !== 0) {
      if (to - from < PRIORITY_BYTES) throw new ConnectionError(ErrorCode.frameSize, 'HEADERS without their priority');
      if ((bytes.readUInt32BE(start) & 0x7fff_ffff) === stream) throw protocolError('a stream that depends on itself');
      start += PRIORITY_BYTES;
    }
    if (start > end) throw protocolError('more padding than payload');
    this.#endStream = (flags & FLAG_END_STREAM) !== 0;
    if ((flags & FLAG_END_HEADERS) !== 0) this.#decode(stream, bytes, start, end);
    else {
      this.#open = stream;
      this.#continuations = 0;
      this.#keep(bytes, start, end);
    }
  }

  continuation(flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    if (++this.#continuations > CONTINUATIONS_MAX) {
      throw new ConnectionError(ErrorCode.enhanceYourCalm, 'a header block of too many frames');
    }
    this.#keep(bytes, from, to);
    if ((flags & FLAG_END_HEADERS) === 0) return;
    const block = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#bytes = 0;
    this.#open = 0;
    this.#decode(stream, block, 0, block.length);
  }

  #keep(bytes: Buffer, from: number, to: number): void {
    this.#bytes += to - from;
    if (this.#bytes > HEADER_BLOCK_BYTES_MAX) {
      throw new ConnectionError(ErrorCode.enhanceYourCalm, 'a header block of too many bytes');
    }
    this.#parts.push(Buffer.from(bytes.subarray(from, to)));
  }

  #decode(stream: number, bytes: Buffer, from: number, to: number): void {
    this.#sink.head(stream, this.#endStream, this.#headOf(bytes, from, to));
  }

  #headOf(bytes: Buffer, from: number, to: number): RequestHead {
    const { changes } = this.#decoder;
    if (this.#knownHead !== undefined && this.#knownAt === changes && this.#isKnown(bytes, from, to)) {
      return this.#knownHead;
    }
    const head = new RequestHead();
    this.#decoder.decode(bytes, from, to, head.add);
    this.#knownHead = undefined;
    if (to - from <= KNOWN_BYTES_MAX && this.#decoder.changes === changes) this.#remember(head, bytes, from, to);
    return head;
  }

  #isKnown(bytes: Buffer, from: number, to: number): boolean {
    if (to - from !== this.#knownBytes) return false;
    const known = this.#known!;
    for (let i = 0; i < this.#knownBytes; i++) if (bytes[from + i] !== known[i]) return false;
    return true;
  }

  #remember(head: RequestHead, bytes: Buffer, from: number, to: number): void {
    this.#knownHead = head;
    this.#known ??= Buffer.allocUnsafeSlow(KNOWN_BYTES_MAX);
    this.#knownBytes = bytes.copy(this.#known, 0, from, to);
    this.#knownAt = this.#decoder.changes;
  }
}

function protocolError(message: string): ConnectionError {
  return new ConnectionError(ErrorCode.protocol, message);
}
