// Copies the charts' library, deploy/charts/router, into the charts that use it, so that nothing is fetched to install
// one: `npm run chart-library`. Every copy says in its first lines that it is one.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MARK = 'Generated from deploy/charts/router by "npm run chart-library": change it there.';

/** Texts of the copies by their paths in the library, with the mark in the language of each file. */
export function markedLibrary(library: string): ReadonlyMap<string, string> {
  const files = readdirSync(library, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(library.length), marked(name, readFileSync(path, 'utf8'))];
    }),
  );
}

function marked(name: string, text: string): string {
  if (name.endsWith('.tpl')) return `{{- /* ${MARK} */}}\n${text}`;
  if (name.endsWith('.yaml')) return `# ${MARK}\n${text}`;
  if (name.endsWith('.json')) return text.replace('{\n', `{\n  "$comment": ${JSON.stringify(MARK)},\n`);
  throw new Error(`${name}: no form of a comment is known for its kind: add it to scripts/chart-library.ts`);
}

if (process.argv[1] === import.meta.filename) {
  const charts = fileURLToPath(new URL('../deploy/charts/', import.meta.url));
  for (const chart of ['pointsman-gateway', 'pointsman-standalone']) {
    const copy = `${charts}${chart}/charts/router`;
    rmSync(copy, { recursive: true, force: true });
    for (const [path, text] of markedLibrary(`${charts}router`)) {
      mkdirSync(dirname(join(copy, path)), { recursive: true });
      writeFileSync(join(copy, path), text);
    }
  }
}
