// Loaded by bin/pointsman.js: starts `pointsman serve` with the code that was compiled before.
import { fileURLToPath } from 'node:url';
import { loadProgram } from '../runtime/compiled-program.js';

const importModule = (specifier: string): Promise<unknown> => import(specifier);

export function startServe(argv: readonly string[]): Promise<void> {
  const file = fileURLToPath(new URL('./serve.cjs', import.meta.url));
  const { exports, keep } = loadProgram<typeof import('./serve-program.js')>(file, require, importModule);
  return exports.main(argv, keep);
}
