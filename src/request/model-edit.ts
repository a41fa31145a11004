import { editBody, jsonString } from './json-edit.js';
import type { ModelEdit } from './understand.js';

const OPENING_BRACE = 0x7b;

/**
 * Write `model` into a JSON object that came in `chunks`; every byte but the model stays as it is.
 * @throws RangeError when an insertion finds no object
 */
export function writeModel(chunks: readonly Uint8Array[], edit: ModelEdit, model: string): Uint8Array[] {
  const name = jsonString(model);
  if (edit.kind === 'replace') return editBody(chunks, edit.span, name);
  const at = behindOpeningBrace(chunks);
  return editBody(chunks, { start: at, end: at }, Buffer.concat([Buffer.from('"model":'), name, Buffer.from(',')]));
}

/** Only white space may precede the brace of a JSON object, so the first brace is it. */
function behindOpeningBrace(chunks: readonly Uint8Array[]): number {
  let offset = 0;
  for (const chunk of chunks) {
    const brace = chunk.indexOf(OPENING_BRACE);
    if (brace >= 0) return offset + brace + 1;
    offset += chunk.length;
  }
  throw new RangeError('the body holds no object');
}
