/** A length-delimited field: a message, a string or bytes. */
export function delimited(field: number, content: Uint8Array | string): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
}

/** A varint field; zero is left out, as proto3 does. */
export function number(field: number, value: number): Buffer {
  return value === 0 ? Buffer.alloc(0) : Buffer.concat([varint(field * 8), varint(value)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** Sees one field: its number, and its value, as bytes or (varints) as a number. */
export type FieldVisitor = (field: number, bytes: Buffer, value: number) => void;

const EMPTY = Buffer.alloc(0);

/**
 * Walks over the fields of an encoded message. Fixed-width fields are skipped: the messages read here have none.
 * @throws {Error} when the bytes are not a whole message.
 */
export function readFields(message: Buffer, visit: FieldVisitor): void {
  let at = 0;
  const readVarint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++];
      if (byte === undefined || scale > 2 ** 63) throw malformed();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = readVarint();
    const field = Math.floor(tag / 8);
    const wireType = tag % 8;
    if (wireType === 0) visit(field, EMPTY, readVarint());
    else if (wireType === 2) {
      const length = readVarint();
      const end = at + length;
      if (end > message.length) throw malformed();
      visit(field, message.subarray(at, end), 0);
      at = end;
    } else if (wireType === 1) at += 8;
    else if (wireType === 5) at += 4;
    else throw malformed();
  }
  if (at !== message.length) throw malformed();
}

function malformed(): Error {
  return new Error('the picker sent a message that is not protobuf');
}
