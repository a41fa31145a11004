import type { RequestHeaders } from '../../scheduling/request-headers.js';
import { type WireReader, WireType } from './wire.js';

const HEADERS_HEADER = 1 * 8 + WireType.bytes;
const HEADER_KEY = 1 * 8 + WireType.bytes;
const HEADER_VALUE = 2 * 8 + WireType.bytes;
const HEADER_RAW_VALUE = 3 * 8 + WireType.bytes;

/** More headers than any HTTP stack lets through; what comes behind them is not indexed. */
const HEADERS_MAX = 1_024;

/**
 * The headers of one message as byte ranges of their own copy. Only a header that is read becomes a string.
 * Names compare without case; of duplicates the last one counts, as in llm-d-router.
 */
export class HeaderMap implements RequestHeaders {
  readonly #bytes: Buffer;
  /** Four numbers a header: start and end of its name, start and end of its value. */
  readonly #ranges: number[] = [];

  /** Reads a `HeaderMap` message that fills the reader's current range. */
  constructor(reader: WireReader | undefined) {
    if (reader === undefined) {
      this.#bytes = Buffer.alloc(0);
      return;
    }
    // The message is gone when the headers are asked.
    this.#bytes = Buffer.from(reader.bytes.subarray(reader.at, reader.end));
    const origin = reader.at;
    while (reader.at < reader.end) {
      const tag = reader.tag();
      if (tag === HEADERS_HEADER) this.#index(reader, origin);
      else reader.skip(tag);
    }
  }

  /** @param origin where the copy begins in the reader's bytes */
  #index(reader: WireReader, origin: number): void {
    const outer = reader.enter();
    let keyStart = 0;
    let keyEnd = 0;
    let valueStart = 0;
    let valueEnd = 0;
    let rawStart = 0;
    let rawEnd = 0;
    while (reader.at < reader.end) {
      const tag = reader.tag();
      if (tag !== HEADER_KEY && tag !== HEADER_VALUE && tag !== HEADER_RAW_VALUE) {
        reader.skip(tag);
        continue;
      }
      const length = reader.length();
      const start = reader.at - origin;
      reader.at += length;
      if (tag === HEADER_KEY) {
        keyStart = start;
        keyEnd = start + length;
      } else if (tag === HEADER_RAW_VALUE) {
        rawStart = start;
        rawEnd = start + length;
      } else {
        valueStart = start;
        valueEnd = start + length;
      }
    }
    reader.leave(outer);
    if (this.#ranges.length >= 4 * HEADERS_MAX) return;
    // Envoy fills raw_value; value is what older proxies and tests send.
    if (rawEnd > rawStart) this.#ranges.push(keyStart, keyEnd, rawStart, rawEnd);
    else this.#ranges.push(keyStart, keyEnd, valueStart, valueEnd);
  }

  get count(): number {
    return this.#ranges.length / 4;
  }

  /** Value of a header; `name` in lower case. */
  get(name: string): string | undefined {
    const ranges = this.#ranges;
    for (let i = ranges.length - 4; i >= 0; i -= 4) {
      if (ranges[i + 1]! - ranges[i]! === name.length && this.#matches(ranges[i]!, name)) {
        return this.#bytes.toString('utf8', ranges[i + 2]!, ranges[i + 3]!);
      }
    }
    return undefined;
  }

  /** Lower-case names, duplicates included, that start with `x-`: the only ones that can be control headers. */
  *extensionNames(): Generator<string> {
    const ranges = this.#ranges;
    for (let i = 0; i < ranges.length; i += 4) {
      const start = ranges[i]!;
      if (ranges[i + 1]! - start > 2 && this.#matches(start, 'x-')) {
        yield this.#bytes.toString('latin1', start, ranges[i + 1]!).toLowerCase();
      }
    }
  }

  /** Whether the bytes at `start` are `name`, which is ASCII in lower case. */
  #matches(start: number, name: string): boolean {
    const bytes = this.#bytes;
    for (let i = 0; i < name.length; i++) {
      const byte = bytes[start + i]!;
      const lower = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
      if (lower !== name.charCodeAt(i)) return false;
    }
    return true;
  }
}

/** The headers of a message that carries none. */
export const NO_HEADERS: HeaderMap = new HeaderMap(undefined);
