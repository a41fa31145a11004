// Finds circles of imports in source files, type-only imports included: `node scripts/circles.ts FOLDER…`. The compiled
// modules that dependency-cruiser reads have lost their type-only imports, and TypeScript 7 offers no parser to other
// programs; so the import lines themselves are read, which the formatter keeps in one form.
import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';

/** `import … from '…'`, `export … from '…'`, `import '…'` and `import('…')` of a relative path. */
const REFERENCE = /(?:\bfrom|\bimport\s*\(?)\s*['"](\.{1,2}\/[^'"]+)['"]/g;
/** Comments, so that an example in one is no import. */
const COMMENT = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm;

/** Paths that each file imports. */
type Imports = ReadonlyMap<string, readonly string[]>;

async function readImports(folder: string): Promise<Imports> {
  const files: string[] = [];
  for await (const path of glob(join(folder, '**/*.ts'))) if (!path.endsWith('.d.ts')) files.push(path);
  files.sort();
  const known = new Set(files);
  return new Map(
    files.map((file) => {
      const text = readFileSync(file, 'utf8').replace(COMMENT, '');
      const targets = [...text.matchAll(REFERENCE)].map(([, path]) => sourceOf(join(dirname(file), path!)));
      return [file, targets.filter((target) => known.has(target))];
    }),
  );
}

/** The source file of an import: AssemblyScript names it without an extension, TypeScript by its compiled name. */
function sourceOf(path: string): string {
  return `${normalize(path).replace(/\.(js|ts)$/, '')}.ts`;
}

/** Groups of files that import each other (Tarjan's strongly connected components of more than one file, or a self-import). */
function circles(imports: Imports): readonly (readonly string[])[] {
  const found: string[][] = [];
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const visit = (file: string): void => {
    order.set(file, order.size);
    lowest.set(file, order.get(file)!);
    open.push(file);
    for (const target of imports.get(file)!) {
      if (!order.has(target)) visit(target);
      if (open.includes(target)) lowest.set(file, Math.min(lowest.get(file)!, lowest.get(target)!));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const group = open.splice(open.indexOf(file));
    if (group.length > 1 || imports.get(file)!.includes(file)) found.push(group);
  };
  for (const file of imports.keys()) if (!order.has(file)) visit(file);
  return found;
}

/** One shortest way from a file of the group back to itself. */
function wayRound(group: readonly string[], imports: Imports): readonly string[] {
  const [start] = group as [string];
  const ways: string[][] = [[start]];
  const seen = new Set<string>();
  for (const way of ways) {
    for (const target of imports.get(way.at(-1)!)!) {
      if (target === start) return [...way, start];
      if (!group.includes(target) || seen.has(target)) continue;
      seen.add(target);
      ways.push([...way, target]);
    }
  }
  return group;
}

let count = 0;
for (const folder of process.argv.slice(2)) {
  const imports = await readImports(folder);
  if (imports.size === 0) throw new Error(`${folder}: no source files`);
  for (const group of circles(imports)) {
    count++;
    console.error(`circle of ${group.length} files: ${wayRound(group, imports).join(' → ')}`);
  }
}
if (count > 0) process.exitCode = 1;
