// Checks the imports between the files of assembly/: `npm run arrows`. No circle, and no import up.
//
// dependency-cruiser cannot do it: it reads TypeScript with a compiler below 7 only. Import statements are all that
// AssemblyScript shares with TypeScript here, and all that has to be read.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** Rooms from the bottom up; a file imports from its own row of rooms and from those before it. */
const rows: readonly (readonly string[])[] = [
  ['memory'],
  ['lock', 'endpoints', 'pool-words', 'request-area'],
  ['random', 'columns', 'protobuf'],
  ['prefix', 'request'],
  ['load'],
  ['gate', 'response'],
  ['scheduling', 'scrape'],
  ['regions'],
  ['index'],
];

/** Imports of every file: its path without `.ts` → the paths that it names. */
export type Imports = ReadonlyMap<string, readonly string[]>;

/** Room of a file: its folder, or its own name at the top. */
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

/** Every import of a room that the importing file may not see. */
function importsUp(imports: Imports): string[] {
  return [...imports].flatMap(([file, targets]) => {
    if (rowOf(file) < 0) return [`${file}: room ${roomOf(file)} has no row in scripts/assembly-arrows.ts`];
    const wrong = targets.filter((target) => roomOf(target) !== roomOf(file) && rowOf(target) >= rowOf(file));
    return wrong.map((target) => `${file} imports ${target}, which is not below it`);
  });
}

/** One circle through `file`, or none. */
function circleThrough(imports: Imports, file: string): string[] | undefined {
  const seen = new Set<string>();
  const walk = (at: string, path: readonly string[]): string[] | undefined => {
    for (const next of imports.get(at) ?? []) {
      if (next === file) return [...path, next];
      if (seen.has(next)) continue;
      seen.add(next);
      const found = walk(next, [...path, next]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return walk(file, [file]);
}

/** Circles, each once: by the first of its files in the order of names. */
function circles(imports: Imports): string[] {
  const found = [...imports.keys()].flatMap((file) => {
    const circle = circleThrough(imports, file);
    return circle === undefined || [...circle].sort()[0] !== file ? [] : [`circle: ${circle.join(' → ')}`];
  });
  return found;
}

/** What is wrong with the imports, one line each. */
export function wrongImports(imports: Imports): string[] {
  return [...importsUp(imports), ...circles(imports)];
}

/** The imports of all files below a folder. */
export function readImports(folder: string): Imports {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  return new Map(
    files.sort().map((name) => {
      const file = name.slice(0, -'.ts'.length);
      return [file, importsOf(file, readFileSync(join(folder, name), 'utf8'))];
    }),
  );
}

if (process.argv[1] === import.meta.filename) {
  const imports = readImports(join(import.meta.dirname, '../assembly'));
  const wrong = wrongImports(imports);
  for (const line of wrong) console.error(line);
  console.log(`${imports.size} files of assembly/, ${wrong.length} wrong imports`);
  process.exitCode = wrong.length === 0 ? 0 : 1;
}
