import type { ByteRange } from '../core/types.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

/** A body in chunks as one piece; one chunk is not copied. */
export function wholeBody(chunks: readonly Uint8Array[]): Buffer {
  const [first, ...rest] = chunks;
  if (first === undefined || rest.length > 0) return Buffer.concat(chunks);
  return Buffer.from(first.buffer, first.byteOffset, first.length);
}

/**
 * Range of the last value of a member at the top of a valid JSON object; undefined = it has none.
 * @param key with its quotes, as it is written without escapes
 */
export function memberRange(body: Buffer, key: Buffer): ByteRange | undefined {
  if (!body.includes(key)) return undefined;
  let found: ByteRange | undefined;
  let depth = 0;
  /** Beginning of the present member's value; undefined = it is another member, or its key is being read. */
  let value: number | undefined;
  let isKey = false;
  let keyIsOurs = false;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]!;
    if (byte === QUOTE) {
      const end = stringEnd(body, at);
      if (depth === 1 && isKey) keyIsOurs = body.subarray(at, end).equals(key);
      at = end - 1;
    } else if (byte === COLON && depth === 1 && isKey) {
      isKey = false;
      value = keyIsOurs ? at + 1 : undefined;
    } else if (isClosing(byte) || (byte === COMMA && depth === 1)) {
      if (depth === 1 && value !== undefined) found = trimmed(body, value, at);
      if (depth === 1) [value, isKey] = [undefined, byte === COMMA];
      if (byte !== COMMA) depth -= 1;
    } else if (isOpening(byte)) {
      depth += 1;
      if (depth === 1) isKey = true;
    }
  }
  return found;
}

/** Position behind the closing quote of the string that begins at `start`. */
function stringEnd(body: Buffer, start: number): number {
  for (let at = start + 1; ; ) {
    const quote = body.indexOf(QUOTE, at);
    if (quote < 0) return body.length;
    let backslashes = 0;
    while (body[quote - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function isOpening(byte: number): boolean {
  return byte === 0x7b || byte === 0x5b;
}

function isClosing(byte: number): boolean {
  return byte === 0x7d || byte === 0x5d;
}

function trimmed(body: Buffer, from: number, to: number): ByteRange {
  let [start, end] = [from, to];
  while (body[start]! <= 0x20) start += 1;
  while (body[end - 1]! <= 0x20) end -= 1;
  return { start, end };
}
