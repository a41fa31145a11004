/**
 * Reasons for which a message is refused. unreadable: no message of this version · signature: not signed with the key
 * of the group · clock: sent long ago, or by a clock far ahead · repeated: received before · value: a number that no
 * replica can have
 */
export const BAD_MESSAGES = ['unreadable', 'signature', 'clock', 'repeated', 'value'] as const;
export type BadMessage = (typeof BAD_MESSAGES)[number];

/** A message that is refused. The text says what is wrong. */
export class WireError extends Error {
  override name = 'WireError';
  readonly reason: BadMessage;

  constructor(text: string, reason: BadMessage = 'unreadable') {
    super(text);
    this.reason = reason;
  }
}

const TEXT_BYTES_MAX = 255;

/** Writes the parts of a message one behind the other. Grows by doubling. */
export class WireWriter {
  #bytes = new Uint8Array(1_024);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Bytes written so far; a view that the next write may change. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  /** Writes a whole number from 0 to 2^53 - 1, seven bits in each byte, low ones first (LEB128). */
  number(value: number): void {
    this.#reserve(8);
    let rest = value;
    while (rest >= 128) {
      this.#bytes[this.#length++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.#length++] = rest;
  }

  float(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  /** 64 bits. */
  word(value: bigint): void {
    this.#reserve(8);
    this.#view.setBigUint64(this.#length, value, true);
    this.#length += 8;
  }

  words(values: BigUint64Array): void {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Writes a text of at most 255 bytes. @throws RangeError when it is longer */
  text(value: string): void {
    const bytes = Buffer.from(value);
    if (bytes.length > TEXT_BYTES_MAX) throw new RangeError(`a text of ${bytes.length} bytes is too long`);
    this.byte(bytes.length);
    this.raw(bytes);
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes);
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

/** Reads what WireWriter wrote. Every method throws WireError at the end of the bytes. */
export class WireReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  byte(): number {
    this.#need(1);
    return this.#bytes[this.#at++]!;
  }

  number(): number {
    let value = 0;
    let factor = 1;
    for (let i = 0; i < 8; i++) {
      const byte = this.byte();
      value += (byte & 127) * factor;
      if (byte < 128) {
        if (!Number.isSafeInteger(value)) break;
        return value;
      }
      factor *= 128;
    }
    throw new WireError('a number is too large');
  }

  /** A number of things that take at least `bytes` bytes each. */
  count(bytes: number): number {
    const count = this.number();
    if (count * bytes > this.left) throw new WireError(`${count} parts do not fit into ${this.left} bytes`);
    return count;
  }

  /** Any number, also NaN and an infinite one. */
  float(): number {
    this.#need(8);
    this.#at += 8;
    return this.#view.getFloat64(this.#at - 8, true);
  }

  word(): bigint {
    this.#need(8);
    this.#at += 8;
    return this.#view.getBigUint64(this.#at - 8, true);
  }

  /** A copy. */
  words(count: number): BigUint64Array {
    this.#need(8 * count);
    const words = new BigUint64Array(count);
    new Uint8Array(words.buffer).set(this.#bytes.subarray(this.#at, this.#at + 8 * count));
    this.#at += 8 * count;
    return words;
  }

  text(): string {
    const length = this.byte();
    return Buffer.from(this.raw(length)).toString();
  }

  /** A view. */
  raw(length: number): Uint8Array {
    this.#need(length);
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  #need(bytes: number): void {
    if (bytes > this.left) throw new WireError(`${bytes} bytes are missing at ${this.#at}`);
  }
}
