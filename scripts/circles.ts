// Finds circles of imports in source files, type-only imports included: `node scripts/circles.ts FOLDER…`. A circle may
// pass through several of the folders.
import { type Imports, readImports } from './source-imports.ts';

/**
 * Groups of files that import each other (Tarjan's strongly connected components of more than one file, or a
 * self-import).
 */
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

/** A shortest circle of imports through files of the group. */
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

const imports = readImports(process.argv.slice(2));
const found = circles(imports);
for (const group of found) {
  console.error(`circle of ${group.length} files: ${wayRound(group, imports).join(' → ')}`);
}
if (found.length > 0) process.exitCode = 1;
