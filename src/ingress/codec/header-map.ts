// Not the global of this name, which is a getter.
import { Buffer } from 'node:buffer';
import { type WireReader, WireType } from '../../runtime/protobuf.js';
import { RememberedTexts } from '../../runtime/remembered-texts.js';
import type { RequestHeaders } from '../../scheduling/request-headers.js';

const HEADERS_HEADER = 1 * 8 + WireType.bytes;
const HEADER_KEY = 1 * 8 + WireType.bytes;
const HEADER_VALUE = 2 * 8 + WireType.bytes;
const HEADER_RAW_VALUE = 3 * 8 + WireType.bytes;

/** More headers than any HTTP stack lets through; what comes behind them is not indexed. */
const HEADERS_MAX = 1_024;

/**
 * Ranges of the headers that are being read, which are copied when their number is known: an array that grows is made
 * three times.
 */
const RANGES: number[] = new Array<number>(4 * HEADERS_MAX).fill(0);

const NO_NAMES: readonly string[] = [];

/** Digits of a number that is exact. */
const DIGITS_MAX = 15;
const DIGIT_ZERO = 0x30;

/** Values that come again from request to request. */
const texts = new RememberedTexts();

/** A set of header names in lower case. */
export class HeaderNames {
  /** Names by their length. */
  readonly #names: readonly (readonly string[] | undefined)[];
  /** A bit for each length of a name, modulo 32. */
  readonly lengths: number;

  constructor(names: ReadonlySet<string>) {
    const byLength: string[][] = [];
    let lengths = 0;
    for (const name of names) {
      byLength[name.length] ??= [];
      byLength[name.length]!.push(name);
      lengths |= 1 << name.length;
    }
    this.#names = byLength;
    this.lengths = lengths;
  }

  ofLength(length: number): readonly string[] {
    return this.#names[length] ?? NO_NAMES;
  }
}

/**
 * The headers of one message as byte ranges of it. Only a header that is read becomes a string.
 * Names compare without case; of duplicates the last one counts, as in llm-d-router.
 */
export class HeaderMap implements RequestHeaders {
  /** The message, or a copy of the headers. */
  #bytes: Buffer;
  /** Place of the headers in the bytes, from which ranges count. */
  #from = 0;
  readonly #length: number;
  /** Four numbers a header: start and end of its name, start and end of its value. */
  readonly #ranges: number[];
  /** Used numbers of the ranges. */
  #used = 0;
  /** A bit for the length of each name, modulo 32 as shifts count: most names that are asked for are not there. */
  #lengths = 0;

  /**
   * Reads a `HeaderMap` message that fills the reader's current range. The headers are valid as long as the bytes, or
   * after `keep`.
   */
  constructor(reader: WireReader | undefined) {
    if (reader === undefined) {
      this.#bytes = Buffer.alloc(0);
      this.#length = 0;
      this.#ranges = [];
      return;
    }
    const origin = reader.at;
    this.#bytes = reader.bytes;
    this.#from = origin;
    this.#length = reader.end - origin;
    while (reader.at < reader.end) {
      const tag = reader.tag();
      if (tag === HEADERS_HEADER) this.#index(reader, origin);
      else reader.skip(tag);
    }
    this.#ranges = RANGES.slice(0, this.#used);
  }

  /** Copies the headers, for reads after the end of the message. */
  keep(): void {
    const copy = Buffer.allocUnsafe(this.#length);
    this.#bytes.copy(copy, 0, this.#from, this.#from + this.#length);
    this.#bytes = copy;
    this.#from = 0;
  }

  /** @param origin where the headers begin in the reader's bytes */
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
    const at = this.#used;
    if (at === RANGES.length) return;
    this.#used += 4;
    this.#lengths |= 1 << (keyEnd - keyStart);
    // Envoy fills raw_value; value is what older proxies and tests send.
    const isRaw = rawEnd > rawStart;
    RANGES[at] = keyStart;
    RANGES[at + 1] = keyEnd;
    RANGES[at + 2] = isRaw ? rawStart : valueStart;
    RANGES[at + 3] = isRaw ? rawEnd : valueEnd;
  }

  get count(): number {
    return this.#used / 4;
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
    for (let i = this.#used - 4; i >= 0; i -= 4) {
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
    return this.#bytes[this.#from + this.#ranges[header + 2]! + at]!;
  }

  text(header: number): string {
    return texts.read(this.#bytes, this.#from + this.#ranges[header + 2]!, this.#from + this.#ranges[header + 3]!);
  }

  /** Value of a header as a whole number in digits, without a string; undefined = no header, or another text. */
  number(name: string): number | undefined {
    const header = this.find(name);
    const length = header < 0 ? 0 : this.length(header);
    if (length === 0 || length > DIGITS_MAX) return undefined;
    let value = 0;
    for (let i = 0; i < length; i++) {
      const digit = this.byte(header, i) - DIGIT_ZERO;
      if (digit < 0 || digit > 9) return undefined;
      value = value * 10 + digit;
    }
    return value;
  }

  /** The names of the set that there are, in lower case, duplicates included. */
  namesOf(names: HeaderNames): readonly string[] {
    if ((this.#lengths & names.lengths) === 0) return NO_NAMES;
    let found: string[] | undefined;
    const ranges = this.#ranges;
    for (let i = 0; i < this.#used; i += 4) {
      const start = ranges[i]!;
      for (const name of names.ofLength(ranges[i + 1]! - start)) {
        if (!this.#matches(start, name)) continue;
        if (found === undefined) found = [name];
        else found.push(name);
      }
    }
    return found ?? NO_NAMES;
  }

  /** Whether the bytes at `start` are `name`, which is ASCII in lower case. */
  #matches(start: number, name: string): boolean {
    const bytes = this.#bytes;
    const from = this.#from + start;
    for (let i = 0; i < name.length; i++) {
      const byte = bytes[from + i]!;
      const lower = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
      if (lower !== name.charCodeAt(i)) return false;
    }
    return true;
  }
}

/** The headers of a message that carries none. */
export const NO_HEADERS: HeaderMap = new HeaderMap(undefined);
