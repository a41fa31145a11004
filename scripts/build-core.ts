// Compiles assembly/ to dist/src/core/core.wasm and, with assertions, to dist/src/core/core-debug.wasm, and writes
// names, values and types of the exports to src/core/core-names.ts: `npm run build:wasm`. With CI set a stale
// core-names.ts is an error, not written.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';
import { coreNames } from './core-names.ts';

const OPTIONS = [
  '--importMemory',
  '--noExportMemory',
  '--sharedMemory',
  '--initialMemory=2',
  '--maximumMemory=65536',
  '--enable=threads,simd,bulk-memory',
  '--runtime=stub',
  '--disableWarning=112',
  '--bindings=raw',
];
const RELEASE = ['-O3', '--converge', '--noAssert'];
/** Names of functions for stack traces; less optimised, since it is compiled at every build. */
const DEBUG = ['-O1', '--debug'];

interface Compiled {
  readonly wasm: Uint8Array;
  /** TypeScript declarations of the exports. */
  readonly declarations: string;
}

async function compile(options: readonly string[]): Promise<Compiled> {
  const written = new Map<string, string | Uint8Array>();
  const { error, stderr } = await asc.main(['assembly/index.ts', '--outFile=core.wasm', ...OPTIONS, ...options], {
    writeFile: (name, contents) => void written.set(name, contents),
  });
  if (error !== null) throw new Error(`assembly/ does not compile:\n${stderr.toString()}`);
  const wasm = written.get('core.wasm') as Uint8Array;
  return { wasm, declarations: String(written.get('core.d.ts')) };
}

function writeNames({ wasm, declarations }: Compiled): void {
  const url = new URL('../src/core/core-names.ts', import.meta.url);
  const names = coreNames(new WebAssembly.Module(Uint8Array.from(wasm)), declarations);
  if (names === readFileSync(url, { encoding: 'utf8', flag: 'a+' })) return;
  if (process.env.CI) throw new Error('src/core/core-names.ts is stale: run "npm run build:wasm" and commit it');
  writeFileSync(url, names);
}

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const folder = join(process.env.POINTSMAN_DIST ?? 'dist', 'src/core');
mkdirSync(folder, { recursive: true });
const release = await compile(RELEASE);
writeFileSync(join(folder, 'core.wasm'), release.wasm);
writeNames(release);
writeFileSync(join(folder, 'core-debug.wasm'), (await compile(DEBUG)).wasm);
