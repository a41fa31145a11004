/** Bytes that are no valid protobuf of the expected message. */
export class MalformedMessage extends Error {
  override readonly name = 'MalformedMessage';
}

/** Wire types of https://protobuf.dev/programming-guides/encoding/ that are in use. */
export const WireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/**
 * A cursor over protobuf bytes. Nested messages are read by narrowing `end` and putting it back, so that decoding
 * a message allocates one reader and nothing per field.
 */
export class WireReader {
  bytes: Buffer;
  at: number;
  end: number;

  constructor(bytes: Uint8Array, from = 0, to = bytes.length) {
    this.bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = from;
    this.end = to;
  }

  /** Continues with another message. */
  begin(bytes: Buffer, from: number, to: number): void {
    this.bytes = bytes;
    this.at = from;
    this.end = to;
  }

  /** An unsigned varint of at most ten bytes. Exact up to 2^53, which is more than any length or flag here. */
  varint(): number {
    // Most tags and lengths: without a loop this is inlined where it is called.
    if (this.at < this.end) {
      const first = this.bytes[this.at]!;
      if (first < 0x80) {
        this.at++;
        return first;
      }
    }
    return this.#longVarint();
  }

  #longVarint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10; i++) {
      if (this.at >= this.end) throw new MalformedMessage('a number is cut off');
      const byte = this.bytes[this.at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new MalformedMessage('a number has more than ten bytes');
  }

  /** A field's tag: number × 8 + wire type. */
  tag(): number {
    const tag = this.varint();
    if (tag < 8 || tag > 0xffff_ffff) throw new MalformedMessage('a field has no valid number');
    return tag;
  }

  /** Length of a length-delimited field; the field lies wholly inside the current message. */
  length(): number {
    const length = this.varint();
    if (length > this.end - this.at) throw new MalformedMessage('a field is longer than its message');
    return length;
  }

  /** Starts a nested message; gives the returned end back to `leave`. */
  enter(): number {
    const length = this.length();
    const outer = this.end;
    this.end = this.at + length;
    return outer;
  }

  leave(outer: number): void {
    this.at = this.end;
    this.end = outer;
  }

  /** Skips the value of a field that is not read. */
  skip(tag: number): void {
    switch (tag & 7) {
      case WireType.varint:
        this.varint();
        return;
      case WireType.fixed64:
        this.#advance(8);
        return;
      case WireType.bytes:
        this.#advance(this.length());
        return;
      case WireType.fixed32:
        this.#advance(4);
        return;
      default:
        // Groups were never part of proto3.
        throw new MalformedMessage(`wire type ${tag & 7} is not in use`);
    }
  }

  #advance(count: number): void {
    if (count > this.end - this.at) throw new MalformedMessage('a field is longer than its message');
    this.at += count;
  }
}

/** Bytes of a varint. */
export function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) size++;
  return size;
}

/** Writes a varint; returns the position behind it. */
export function putVarint(target: Uint8Array, at: number, value: number): number {
  let rest = value;
  let position = at;
  while (rest > 127) {
    target[position++] = (rest % 128) | 0x80;
    rest = Math.floor(rest / 128);
  }
  target[position++] = rest;
  return position;
}

/** A length-delimited field around parts that are encoded already. For messages that are not on the hot path. */
export function field(number: number, ...parts: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const part of parts) length += part.length;
  const tag = number * 8 + WireType.bytes;
  const result = Buffer.allocUnsafe(varintSize(tag) + varintSize(length) + length);
  let at = putVarint(result, putVarint(result, 0, tag), length);
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}

/** A varint field. */
export function varintField(number: number, value: number): Buffer {
  const result = Buffer.allocUnsafe(varintSize(number * 8) + varintSize(value));
  putVarint(result, putVarint(result, 0, number * 8), value);
  return result;
}

/** A varint field of an int64: negative numbers take ten bytes. */
export function int64Field(number: number, value: number): Buffer {
  const whole = Math.trunc(value);
  if (whole >= 0) return varintField(number, whole);
  const tag = varintField(number, 0);
  const digits = Buffer.alloc(10, 0x80);
  let rest = BigInt.asUintN(64, BigInt(whole));
  for (let i = 0; i < digits.length; i++, rest >>= 7n) digits[i] = Number(rest & 127n) | (i < 9 ? 0x80 : 0);
  return Buffer.concat([tag.subarray(0, -1), digits]);
}

/** A field of four or eight bytes, little-endian. */
export function fixedField(number: number, value: Uint8Array): Buffer {
  const type = value.length === 8 ? WireType.fixed64 : WireType.fixed32;
  const tag = varintField(number, 0).subarray(0, -1);
  tag[0]! |= type;
  return Buffer.concat([tag, value]);
}

/** Takes one field: its number, and its value, as bytes or (varints) as a number. */
export type FieldVisitor = (field: number, bytes: Buffer, value: number) => void;

const EMPTY = Buffer.alloc(0);

/**
 * Walks over the fields of a message, for messages that are not on the hot path. Fields of fixed width are skipped.
 * @throws MalformedMessage when the bytes are not a whole message
 */
export function readFields(message: Uint8Array, visit: FieldVisitor): void {
  const reader = new WireReader(message);
  while (reader.at < reader.end) {
    const tag = reader.tag();
    const number = Math.floor(tag / 8);
    const type = tag % 8;
    if (type === WireType.varint) visit(number, EMPTY, reader.varint());
    else if (type === WireType.bytes) {
      const length = reader.length();
      reader.at += length;
      visit(number, reader.bytes.subarray(reader.at - length, reader.at), 0);
    } else reader.skip(tag);
  }
}

/** A string as UTF-8. */
export function text(value: string): Buffer {
  return Buffer.from(value, 'utf8');
}
