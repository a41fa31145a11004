// Compiled cores of earlier builds, in `.tools/cores`: compiling assembly/ twice is the longest part of a build, and
// most builds change none of it. A core is kept under the hash of what it is made from. With CI set nothing is kept or
// used.

import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type CompiledCore, type CoreBuild, compileCore } from './core-compiler.ts';

/** A core has some 300 KB. */
const KEPT_MAX = 64;

/**
 * Returns the compiled core, from an earlier build of the same sources where there is one.
 * @param root the folder that holds assembly/
 * @throws Error with the messages of the compiler
 */
export async function keptCore(root: string, build: CoreBuild): Promise<CompiledCore> {
  if (process.env.CI) return compileCore(root, build);
  const folder = join(root, '.tools/cores');
  const path = join(folder, `${sourcesHash(root)}-${build}`);
  const kept = read(path);
  if (kept !== undefined) return kept;
  const core = await compileCore(root, build);
  mkdirSync(folder, { recursive: true });
  const { wasm, declarations } = core;
  const written = `${path}.${process.pid}`;
  writeFileSync(written, JSON.stringify({ wasm: Buffer.from(wasm).toString('base64'), declarations }));
  renameSync(written, path);
  removeOldest(folder);
  return core;
}

function read(path: string): CompiledCore | undefined {
  try {
    const { wasm, declarations } = JSON.parse(readFileSync(path, 'utf8'));
    return { wasm: Buffer.from(wasm, 'base64'), declarations };
  } catch {
    return undefined;
  }
}

/** Covers the sources, the options and the compiler. */
function sourcesHash(root: string): string {
  const hash = createHash('sha256');
  const sources = readdirSync(join(root, 'assembly'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  for (const name of sources.sort()) hash.update(`${name}\0`).update(readFileSync(join(root, 'assembly', name)));
  hash.update(readFileSync(new URL('core-compiler.ts', import.meta.url)));
  hash.update(readFileSync(createRequire(import.meta.url).resolve('assemblyscript/package.json')));
  return hash.digest('hex').slice(0, 32);
}

function removeOldest(folder: string): void {
  const paths = readdirSync(folder).map((name) => join(folder, name));
  const age = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  for (const path of paths.sort((a, b) => age(b) - age(a)).slice(KEPT_MAX)) rmSync(path, { force: true });
}
