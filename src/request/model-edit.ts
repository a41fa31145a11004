import type { ByteRange } from '../core/types.js';
import type { ModelEdit } from './understand.js';

const OPENING_BRACE = 0x7b;

/**
 * Writes `model` into a JSON object in `chunks`. All other bytes stay unchanged.
 * @throws RangeError when an insertion finds no object
 */
export function writeModel(chunks: readonly Uint8Array[], edit: ModelEdit, model: string): Uint8Array[] {
  const name = jsonString(model);
  if (edit.kind === 'replace') return editBody(chunks, edit.range, name);
  const at = behindOpeningBrace(chunks);
  return editBody(chunks, { start: at, end: at }, Buffer.concat([Buffer.from('"model":'), name, Buffer.from(',')]));
}

/** Only white space may precede the brace of a JSON object, so the first brace is the object's. */
function behindOpeningBrace(chunks: readonly Uint8Array[]): number {
  let offset = 0;
  for (const chunk of chunks) {
    const brace = chunk.indexOf(OPENING_BRACE);
    if (brace >= 0) return offset + brace + 1;
    offset += chunk.length;
  }
  throw new RangeError('the body holds no object');
}

/**
 * Replaces a byte range of a body in chunks. The other bytes are not copied: the new list shares the memory of the old
 * chunks.
 * @param range over all chunks; it may begin and end in any of them, and be empty.
 * @throws RangeError when the range does not lie within the body.
 */
export function editBody(chunks: readonly Uint8Array[], span: ByteRange, replacement: Uint8Array): Uint8Array[] {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  if (span.start < 0 || span.end < span.start || span.end > length)
    throw new RangeError(`range ${span.start}..${span.end} does not lie within a body of ${length} bytes`);
  return [
    ...slice(chunks, 0, span.start),
    ...slice([replacement], 0, replacement.length),
    ...slice(chunks, span.end, length),
  ];
}

/** The parts of chunks that cover the bytes from `start` to `end`; none of them is empty. */
function* slice(chunks: readonly Uint8Array[], start: number, end: number): Generator<Uint8Array> {
  let at = 0;
  for (const chunk of chunks) {
    const from = Math.max(start - at, 0);
    const to = Math.min(end - at, chunk.length);
    if (from < to) yield from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to);
    at += chunk.length;
  }
}

/** A string as JSON, in UTF-8, quotes included. */
export function jsonString(value: string): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
