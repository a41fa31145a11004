// Which tests reach a compiled module: the imports of test files and of dist/, workers that they start included.
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';

/** `from '…'`, `import('…')` and `new URL('…', import.meta.url)` of a relative path. */
const REFERENCE = /(?:\bfrom|\bimport\s*\(?|\bnew URL\()\s*['"](\.{1,2}\/[^'"]+)['"]/g;

/** Files that each file names, as paths from the root of the repository. */
type Graph = ReadonlyMap<string, readonly string[]>;

/** A test file, and the imports on the shortest way from it to a module. */
export interface ReachingTest {
  readonly file: string;
  readonly distance: number;
}

/** Reads the imports of test/ and of the compiled modules below a root. */
export function readGraph(root: string): Graph {
  const files = [
    ...globSync('test/**/*.{ts,js,mjs}', { cwd: root }),
    ...globSync('dist/{src,tools}/**/*.js', { cwd: root }),
  ];
  const known = new Set(files);
  // A test may name another file of test/ as what it would be compiled to.
  const sourceOf = (path: string) => (known.has(path) ? path : path.replace(/\.js$/, '.ts'));
  return new Map(files.map((file) => [file, referencesOf(file, readFileSync(join(root, file), 'utf8')).map(sourceOf)]));
}

export function referencesOf(file: string, text: string): string[] {
  return [...text.matchAll(REFERENCE)].map(([, path]) => normalize(join(dirname(file), path!)));
}

/**
 * Test files that reach a module: those that are named after it, then the others, nearest first; those of the folder
 * `near` before others as far away.
 */
export function testsReaching(graph: Graph, module: string, near: string): ReachingTest[] {
  const importers = new Map<string, string[]>();
  for (const [file, targets] of graph) {
    for (const target of targets) importers.set(target, [...(importers.get(target) ?? []), file]);
  }
  const distances = new Map([[module, 0]]);
  for (const [file, distance] of distances) {
    for (const importer of importers.get(file) ?? []) {
      if (!distances.has(importer)) distances.set(importer, distance + 1);
    }
  }
  const name = basename(module, '.js');
  const named = (file: string) => (basename(file, '.test.ts') === name ? 0 : 1);
  const rank = (file: string) => (file.startsWith(`${near}/`) ? 0 : 1);
  return [...distances]
    .filter(([file]) => file.endsWith('.test.ts'))
    .map(([file, distance]) => ({ file, distance }))
    .sort(
      (a, b) =>
        named(a.file) - named(b.file) ||
        a.distance - b.distance ||
        rank(a.file) - rank(b.file) ||
        (a.file < b.file ? -1 : 1),
    );
}
