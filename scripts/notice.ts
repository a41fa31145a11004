// Writes NOTICE: the licence of every package that the program's bundle contains. `npm run notice` renews it.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { bundledPackages } from './bundled-packages.ts';

const root = fileURLToPath(new URL('../', import.meta.url));

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** Folders of the packages whose files come into a bundle of the bundled packages, by name and version. */
function reachable(): Map<string, string> {
  const { metafile } = buildSync({
    stdin: {
      contents: bundledPackages.map((name, i) => `export * as p${i} from '${name}';`).join('\n'),
      resolveDir: root,
    },
    absWorkingDir: root,
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    // Only pino's transports use it, which the program leaves out.
    external: ['thread-stream'],
    logLevel: 'silent',
  });
  const found = new Map<string, string>();
  for (const input of Object.keys(metafile.inputs)) {
    const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(input)?.[0];
    if (folder === undefined) continue;
    const { name, version } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Manifest;
    found.set(`${name} ${version}`, join(root, folder));
  }
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
