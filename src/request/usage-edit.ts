import type { ByteRange } from '../core/types.js';
import { type BodyEdit, behindOpeningBrace } from './model-edit.js';

const KEY = 'stream_options';
const QUOTED_KEY = Buffer.from(`"${KEY}"`);
const ASKED = '{"include_usage":true}';
const INSERTED = Buffer.from(`"${KEY}":${ASKED},`);
/** Longest `stream_options` that is read, in bytes. */
const OPTIONS_BYTES_MAX = 4_096;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

/**
 * Edit by which the body of a stream asks for its usage. Nothing outside the value of `stream_options` changes.
 * @param chunks a JSON object, checked
 * @returns undefined = the client asks itself, or has written options that no engine takes
 */
export function usageEdit(chunks: readonly Uint8Array[]): BodyEdit | undefined {
  const body = chunks.length === 1 ? asBuffer(chunks[0]!) : Buffer.concat(chunks);
  const range = body.includes(QUOTED_KEY) ? optionsOf(body) : undefined;
  if (range === undefined) {
    const at = behindOpeningBrace(chunks);
    return { range: { start: at, end: at }, bytes: INSERTED };
  }
  if (range.end - range.start > OPTIONS_BYTES_MAX) return undefined;
  const text = body.toString('utf8', range.start, range.end);
  const options = JSON.parse(text) as Readonly<Record<string, unknown>> | null;
  if (options === null) return { range, bytes: Buffer.from(ASKED) };
  if (typeof options !== 'object' || Array.isArray(options) || options.include_usage === true) return undefined;
  return { range, bytes: Buffer.from(JSON.stringify({ ...options, include_usage: true })) };
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Range of the last value of `stream_options` at the top of a valid JSON object; undefined = it has none. */
function optionsOf(body: Buffer): ByteRange | undefined {
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
      if (depth === 1 && isKey) keyIsOurs = body.subarray(at, end).equals(QUOTED_KEY);
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
