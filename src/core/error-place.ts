import { fileURLToPath } from 'node:url';
import { errorMessage } from './error-message.js';

/** Folder of this program: its own frames are not where a plugin went wrong. */
const OWN = fileURLToPath(new URL('../', import.meta.url));

/** Message of an error that code from outside has thrown, with file, line and column where the stack tells them. */
export function messageWithPlace(error: unknown): string {
  const place = error instanceof Error ? placeIn(error.stack ?? '') : undefined;
  return place === undefined ? errorMessage(error) : `${place}: ${errorMessage(error)}`;
}

/** `file:line:column` of the first frame outside this program, or of a source line that Node.js shows with a caret. */
export function placeIn(stack: string): string | undefined {
  const shown = /^((?:file:\/\/)?\/.+):(\d+)\n.*\n( *)\^/m.exec(stack);
  if (shown !== null) return placed(shown[1]!, shown[2]!, shown[3]!.length + 1);
  for (const [, file, line, column] of stack.matchAll(
    /(?:\(| at (?:async )?)((?:file:\/\/)?\/[^()\n]+?):(\d+):(\d+)\)?$/gm,
  )) {
    if (!pathOf(file!).startsWith(OWN)) return placed(file!, line!, column!);
  }
  return undefined;
}

function placed(file: string, line: string, column: string | number): string {
  return `${pathOf(file)}:${line}:${column}`;
}

function pathOf(file: string): string {
  return file.startsWith('file:') ? fileURLToPath(file) : file;
}
