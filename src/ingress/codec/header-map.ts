import type { RequestHeaders } from '../../scheduling/request-headers.js';
import { type WireReader, WireType } from './wire.js';

const HEADERS_HEADER = 1 * 8 + WireType.bytes;
const HEADER_KEY = 1 * 8 + WireType.bytes;
const HEADER_VALUE = 2 * 8 + WireType.bytes;
const HEADER_RAW_VALUE = 3 * 8 + WireType.bytes;

/** More headers than any HTTP stack lets through; what comes behind them is not indexed. */
const HEADERS_MAX = 1_024;

const NO_NAMES: readonly string[] = [];

/** A set of header names in lower case. */
export class HeaderNames {
  readonly #names: ReadonlySet<string>;
  /** A bit for each length of a name, modulo 32. */
  readonly lengths: number;

  constructor(names: ReadonlySet<string>) {
    this.#names = names;
    let lengths = 0;
    for (const { length } of names) lengths |= 1 << length;
    this.lengths = lengths;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }
}

/**
 * The headers of one message as byte ranges of their own copy. Only a header that is read becomes a string.
 * Names compare without case; of duplicates the last one counts, as in llm-d-router.
 */
export class HeaderMap implements RequestHeaders {
  readonly #bytes: Buffer;
  /** Four numbers a header: start and end of its name, start and end of its value. */
  readonly #ranges: number[] = [];
  /** A bit for the length of each name, modulo 32 as shifts count: most names that are asked for are not there. */
  #lengths = 0;

  /** Reads a `HeaderMap` message that fills the reader's current range. */
  constructor(reader: WireReader | undefined) {
    if (reader === undefined) {
      this.#bytes = Buffer.alloc(0);
      return;
    }
    // The message is gone when the headers are asked.
    const origin = reader.at;
    this.#bytes = Buffer.allocUnsafe(reader.end - origin);
    reader.bytes.copy(this.#bytes, 0, origin, reader.end);
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
    this.#lengths |= 1 << (keyEnd - keyStart);
    // Envoy fills raw_value; value is what older proxies and tests send.
    if (rawEnd > rawStart) this.#ranges.push(keyStart, keyEnd, rawStart, rawEnd);
    else this.#ranges.push(keyStart, keyEnd, valueStart, valueEnd);
  }

  get count(): number {
    return this.#ranges.length / 4;
  }

  /** Value of a header; `name` in lower case. */
  get(name: string): string | undefined {
    const header = this.find(name);
    return header < 0 ? undefined : this.text(header);
  }

  /** Number of a header for `length`, `byte` and `text`; -1 = there is none. `name` in lower case. */
  find(name: string): number {
    if ((this.#lengths & (1 << name.length)) === 0) return -1;
    const ranges = this.#ranges;
    for (let i = ranges.length - 4; i >= 0; i -= 4) {
      if (ranges[i + 1]! - ranges[i]! === name.length && this.#matches(ranges[i]!, name)) return i;
    }
    return -1;
  }

  /** Bytes of the value of a header that `find` has found. */
  length(header: number): number {
    return this.#ranges[header + 3]! - this.#ranges[header + 2]!;
  }

  /** One byte of such a value, which has more than `at`. */
  byte(header: number, at: number): number {
    return this.#bytes[this.#ranges[header + 2]! + at]!;
  }

  text(header: number): string {
    return this.#bytes.toString('utf8', this.#ranges[header + 2]!, this.#ranges[header + 3]!);
  }

  /** The names of the set that there are, in lower case, duplicates included. */
  namesOf(names: HeaderNames): readonly string[] {
    if ((this.#lengths & names.lengths) === 0) return NO_NAMES;
    const found: string[] = [];
    const ranges = this.#ranges;
    for (let i = 0; i < ranges.length; i += 4) {
      const start = ranges[i]!;
      const end = ranges[i + 1]!;
      if ((names.lengths & (1 << (end - start))) === 0) continue;
      const name = this.#bytes.toString('latin1', start, end).toLowerCase();
      if (names.has(name)) found.push(name);
    }
    return found;
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
