// Compiles assembly/ to dist/src/core/core.wasm and, with assertions, to dist/src/core/core-debug.wasm, and writes
// names, values and types of the exports to src/core/core-names.ts: `npm run build:wasm`. With CI set a stale
// core-names.ts is an error, not written.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CompiledCore } from './core-compiler.ts';
import { coreNames } from './core-names.ts';
import { keptCore } from './kept-core.ts';

function writeNames({ wasm, declarations }: CompiledCore): void {
  const url = new URL('../src/core/core-names.ts', import.meta.url);
  const names = coreNames(new WebAssembly.Module(Uint8Array.from(wasm)), declarations);
  if (names === readFileSync(url, { encoding: 'utf8', flag: 'a+' })) return;
  if (process.env.CI) throw new Error('src/core/core-names.ts is stale: run "npm run build:wasm" and commit it');
  writeFileSync(url, names);
}

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const folder = join(process.env.POINTSMAN_DIST ?? 'dist', 'src/core');
mkdirSync(folder, { recursive: true });
const release = await keptCore('.', 'release');
writeFileSync(join(folder, 'core.wasm'), release.wasm);
writeNames(release);
writeFileSync(join(folder, 'core-debug.wasm'), (await keptCore('.', 'debug')).wasm);
