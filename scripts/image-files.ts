// Leaves in node_modules and dist what the program needs at run time on this machine's platform, and keeps its compiled
// code of this Node.js, which may be another one than that of the build: `node scripts/image-files.ts`, inside the
// image's build only: it deletes.

import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { keepCompiledCode } from './compiled-code.ts';

const root = fileURLToPath(new URL('../', import.meta.url));

removeForeignAddons(join(root, 'node_modules'));
for (const folder of ['dist', 'node_modules']) removeForCompilers(join(root, folder));
await keepCompiledCode(root);

/** Native files are kept by platform in folders: `build/<platform>/<architecture>/`. */
function removeForeignAddons(folder: string): void {
  const own = `${process.platform}/${process.arch}`;
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const [, platform] = /\/build\/([a-z0-9]+\/[a-z0-9]+)\/.*\.node$/.exec(file.replaceAll('\\', '/')) ?? [];
    if (platform !== undefined && platform !== own) rmSync(join(folder, file));
  }
}

/** Declarations and source maps are for compilers and debuggers. */
function removeForCompilers(folder: string): void {
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (/\.(d\.[cm]?ts|map)$/.test(file)) rmSync(join(folder, file));
  }
}
