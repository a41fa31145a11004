// Checks that no file of assembly/ imports from a room above its own: `npm run arrows`, beside the search for circles.
// dependency-cruiser reads TypeScript with a compiler below 7 only, so the import lines themselves are read, as in
// circles.ts.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** Rooms from the bottom up; a file imports from its own room and from the rows before its own. */
const rows: readonly (readonly string[])[] = [
  ['assertions'],
  ['memory'],
  ['load-journal'],
  ['lock', 'preconditions', 'endpoints', 'pool-words', 'request-area'],
  ['random', 'columns', 'protobuf', 'utf8'],
  ['prefix', 'request'],
  ['load'],
  ['gate', 'response'],
  ['scheduling', 'scrape'],
  ['regions'],
  ['exports'],
  ['index'],
];

/** Folder of a file, or its own name at the top. */
function roomOf(file: string): string {
  return file.split('/')[0]!;
}

function rowOf(file: string): number {
  return rows.findIndex((row) => row.includes(roomOf(file)));
}

/** The imports and re-exports of a source text. @param file path that relative names start from */
export function importsOf(file: string, text: string): string[] {
  const names = [...text.matchAll(/^(?:import|export)\s[^;'"]*from '(\.[^']+)';/gm)].map((match) => match[1]!);
  return names.map((name) => normalize(join(dirname(file), name)));
}

/** The imports of a file that it may not have, one line each. @param file its path in assembly/ without `.ts` */
export function wrongImports(file: string, text: string): string[] {
  if (rowOf(file) < 0) return [`${file}: room ${roomOf(file)} has no row in scripts/assembly-arrows.ts`];
  const wrong = importsOf(file, text).filter((to) => roomOf(to) !== roomOf(file) && rowOf(to) >= rowOf(file));
  return wrong.map((to) => `${file} imports ${to}, which is not below it`);
}

if (process.argv[1] === import.meta.filename) {
  const folder = join(import.meta.dirname, '../assembly');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  if (files.length === 0) throw new Error(`${folder}: no source files`);
  const wrong = files.flatMap((name) => wrongImports(name.slice(0, -3), readFileSync(join(folder, name), 'utf8')));
  for (const line of wrong) console.error(line);
  if (wrong.length > 0) process.exitCode = 1;
}
