import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Path of the program. */
export const PROGRAM = fileURLToPath(new URL('../../bin/pointsman.js', import.meta.url));

/** Runs the program to its end. */
export function pointsman(...argv: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...argv], { encoding: 'utf8' });
  return { status, stdout, stderr };
}
