import { fileURLToPath } from 'node:url';
import { errorMessage } from './error-message.js';

/**
 * Folders of this program and of its sources, which source maps name: a frame there is not the place of a plugin's
 * error.
 */
const OWN = ['../../', '../../../src/', '../../../tools/'].map((path) => fileURLToPath(new URL(path, import.meta.url)));

/** A frame of a stack that names a file. */
const FRAME = /(?:\(| at (?:async )?)((?:file:\/\/)?\/[^()\n]+?):(\d+):(\d+)\)?$/m;

/** Message of an error that code from outside has thrown, with file, line and column where the stack tells them. */
export function messageWithPlace(error: unknown): string {
  const place = error instanceof Error ? placeIn(error.stack ?? '') : undefined;
  return place === undefined ? errorMessage(error) : `${place}: ${errorMessage(error)}`;
}

/**
 * `file:line:column` of the first frame when it is outside this program, or of a source line that Node.js shows with a
 * caret.
 */
export function placeIn(stack: string): string | undefined {
  const shown = /^((?:file:\/\/)?\/.+):(\d+)\n.*\n( *)\^/m.exec(stack);
  if (shown !== null) return placed(shown[1]!, shown[2]!, shown[3]!.length + 1);
  const [, file, line, column] = FRAME.exec(stack) ?? [];
  if (file === undefined || OWN.some((folder) => pathOf(file).startsWith(folder))) return undefined;
  return placed(file, line!, column!);
}

function placed(file: string, line: string, column: string | number): string {
  return `${pathOf(file)}:${line}:${column}`;
}

function pathOf(file: string): string {
  return file.startsWith('file:') ? fileURLToPath(file) : file;
}
