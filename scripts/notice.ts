// Writes NOTICE: the licence of every package that the program's bundle contains. `npm run notice` renews it.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundledPackages } from './bundled-packages.ts';

const root = fileURLToPath(new URL('../', import.meta.url));

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Folder of a package as Node resolves it from another one; undefined when it is not installed (an optional package). */
function folderOf(name: string, from: string): string | undefined {
  for (let folder = from; folder.length >= root.length - 1; folder = join(folder, '..')) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
  }
  return undefined;
}

/** The bundled packages and everything that they import, by name and version. */
function reachable(): Map<string, string> {
  const found = new Map<string, string>();
  const visit = (name: string, from: string) => {
    const folder = folderOf(name, from);
    if (folder === undefined) return;
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
    const key = `${manifest.name} ${manifest.version}`;
    if (found.has(key)) return;
    found.set(key, folder);
    for (const dependency of Object.keys(manifest.dependencies ?? {})) visit(dependency, folder);
  };
  for (const name of bundledPackages) visit(name, root.replace(/\/$/, ''));
  return found;
}

function licenceText(folder: string): string {
  const file = readdirSync(folder).find((name) => /^(licen[cs]e|copying)(\.|$)/i.test(name));
  return file === undefined
    ? 'The package carries no licence text of its own.'
    : readFileSync(join(folder, file), 'utf8').trim();
}

/** Text of NOTICE. */
export function notice(): string {
  const parts = [
    'Pointsman\nLicensed under the Apache License, Version 2.0 (see LICENSE).\n\n' +
      'The program in dist/program contains the packages below, each under its own licence. This file is generated:\n' +
      '"npm run notice" renews it.',
  ];
  const packages = [...reachable()].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [key, folder] of packages) {
    const { license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
    parts.push(
      `${'='.repeat(80)}\n${key} · ${license ?? 'licence not named'}\n${'='.repeat(80)}\n\n${licenceText(folder)}`,
    );
  }
  return `${parts.join('\n\n')}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(join(root, 'NOTICE'), notice());
