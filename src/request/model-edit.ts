import type { ByteRange } from '../core/types.js';
import type { ModelEdit } from './understand.js';

const OPENING_BRACE = 0x7b;

/** Bytes to write in the place of a range of a body. */
export interface BodyEdit {
  readonly range: ByteRange;
  readonly bytes: Uint8Array;
}

/**
 * Writes `model` into a JSON object in `chunks`. All other bytes stay unchanged.
 * @throws RangeError when an insertion finds no object
 */
export function writeModel(chunks: readonly Uint8Array[], edit: ModelEdit, model: string): Uint8Array[] {
  const { range, bytes } = modelBytes(chunks, edit, model);
  return editBody(chunks, range, bytes);
}

/** Bytes that write `model` into a JSON object, and the range that they replace. */
export function modelBytes(chunks: readonly Uint8Array[], edit: ModelEdit, model: string): BodyEdit {
  const name = jsonString(model);
  if (edit.kind === 'replace') return { range: edit.range, bytes: name };
  const at = behindOpeningBrace(chunks);
  return { range: { start: at, end: at }, bytes: Buffer.concat([Buffer.from('"model":'), name, Buffer.from(',')]) };
}

/** Writes several edits of ranges that do not overlap. */
export function editAll(chunks: readonly Uint8Array[], edits: readonly BodyEdit[]): readonly Uint8Array[] {
  // The last one first: the ranges before it stay where they are.
  const sorted = [...edits].sort((a, b) => b.range.start - a.range.start);
  return sorted.reduce<readonly Uint8Array[]>((body, { range, bytes }) => editBody(body, range, bytes), chunks);
}

/** Position behind the opening brace of a JSON object: only white space may precede it, so the first brace is it. */
export function behindOpeningBrace(chunks: readonly Uint8Array[]): number {
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
export function editBody(chunks: readonly Uint8Array[], range: ByteRange, replacement: Uint8Array): Uint8Array[] {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  if (range.start < 0 || range.end < range.start || range.end > length)
    throw new RangeError(`range ${range.start}..${range.end} does not lie within a body of ${length} bytes`);
  return [
    ...slice(chunks, 0, range.start),
    ...slice([replacement], 0, replacement.length),
    ...slice(chunks, range.end, length),
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
