// Reads the import lines of source files, type-only ones included. The compiled modules have lost their type-only
// imports, and TypeScript 7 offers no parser to other programs; so the lines themselves are read, which the formatter
// keeps in one form.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** `import … from '…'`, `export … from '…'`, `import '…'` and `import('…')` of a relative path. */
const REFERENCE = /(?:\bfrom|\bimport\s*\(?)\s*['"](\.{1,2}\/[^'"]+)['"]/g;
/** Comments, so that an example in one is no import. */
const COMMENT = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm;

/** Paths that each file imports. */
export type Imports = ReadonlyMap<string, readonly string[]>;

/**
 * Imports of all source files in the folders, from the working directory, of files in the same folders.
 * @throws when a folder has no source files
 */
export function readImports(folders: readonly string[]): Imports {
  const files = folders.flatMap((folder) => {
    const found = globSync(join(folder, '**/*.ts')).filter((path) => !path.endsWith('.d.ts'));
    if (found.length === 0) throw new Error(`${folder}: no source files`);
    return found.sort();
  });
  const known = new Set(files);
  return new Map(
    files.map((file) => {
      const text = readFileSync(file, 'utf8').replace(COMMENT, '');
      const targets = [...text.matchAll(REFERENCE)].map(([, path]) => sourceOf(join(dirname(file), path!)));
      return [file, targets.filter((target) => known.has(target))];
    }),
  );
}

/**
 * The source file of an import: AssemblyScript names it without an extension, TypeScript by its compiled name, scripts
 * and benchmarks by the compiled file.
 */
function sourceOf(path: string): string {
  const source = normalize(path).replace(/^dist\//, '');
  return `${source.replace(/\.(js|ts)$/, '')}.ts`;
}
