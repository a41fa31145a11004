import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Imports, readImports } from '../../scripts/source-imports.ts';

/** Files of src/core that know addresses or numbers of the core themselves, or lead to those that do. */
const CORE_ENDS = ['src/core/core-names.ts', 'src/core/index.ts'];

/** Files of src/core that import neither the memory nor the numbers of the core, not through others of it either. */
function ignorantOfTheCore(imports: Imports): string[] {
  const knows = (file: string, seen: readonly string[] = []): boolean =>
    CORE_ENDS.includes(file) ||
    (imports.get(file) ?? []).some(
      (to) => to.startsWith('src/core/') && !seen.includes(to) && knows(to, [...seen, to]),
    );
  return [...imports.keys()].filter((file) => file.startsWith('src/core/') && !knows(file));
}

/** Lines up to which a file with one importer belongs into it. */
const SMALL_LINES = 40;

/** Lists of plugins: what they import is a plugin each, whose definition has a file of its own. */
const PLUGIN_LISTS = [
  'src/scheduling/registry.ts',
  'src/admission/detectors/registry.ts',
  'src/config/builtin-plugins.ts',
];

/** Small files with one importer that stay, and why. */
const SMALL_ON_THEIR_OWN: Readonly<Record<string, string>> = {
  'src/adaptation/eviction-price.ts': 'averages over five minutes, and is tested without an adapter',
  'src/ingress/server-name.ts': 'says who served an answer, and is tested without a request',
  'src/config/random-picks.ts': 'says when a profile picks at random, and in which words',
  'src/config/interpreted-schemas.ts': 'loads the checker of configurations, which --help and --version do without',
  'src/pool/sources/poll-schedule.ts': 'arithmetic of times, tested without an informer',
  'src/scheduling/profile-handlers/requested-profile.ts': 'a profile handler as its neighbours, which a flag chooses',
  'src/serve/serve-program.ts': 'first module of the bundled program (scripts/bundle.ts)',
};

const linesOf = (file: string) => readFileSync(file, 'utf8').trimEnd().split('\n').length;

/** Small files that one other file imports, of those that need not be on their own. */
function smallWithOneImporter(imports: Imports, lines: (file: string) => number): string[] {
  const importers = new Map<string, Set<string>>();
  for (const [file, targets] of imports) {
    for (const target of targets) importers.set(target, (importers.get(target) ?? new Set()).add(file));
  }
  return [...importers].flatMap(([file, by]) => {
    if (by.size > 1 || !/^(src|tools)\//.test(file) || lines(file) > SMALL_LINES) return [];
    return [...by].some((one) => PLUGIN_LISTS.includes(one)) ? [] : [file];
  });
}

describe('small files', () => {
  it('small files have more than one importer, or a reason to be on their own', () => {
    const found = smallWithOneImporter(readImports(['src', 'tools', 'page', 'scripts', 'bench']), linesOf);
    expect(found.sort()).toEqual(Object.keys(SMALL_ON_THEIR_OWN).sort());
  });

  it('a small file with one importer is found, and a plugin is not', () => {
    const imports = new Map([
      ['src/pool/a.ts', ['src/pool/only-a.ts', 'src/pool/both.ts', 'src/pool/large.ts']],
      ['src/pool/b.ts', ['src/pool/both.ts']],
      ['src/scheduling/registry.ts', ['src/scheduling/filters/one.ts']],
    ]);
    expect(smallWithOneImporter(imports, (file) => (file.endsWith('large.ts') ? 41 : 40))).toEqual([
      'src/pool/only-a.ts',
    ]);
  });
});

describe('the room of the core', () => {
  it('the room of the core holds only files that know addresses or numbers of the core', () => {
    expect(ignorantOfTheCore(readImports(['src']))).toEqual([]);
  });

  it('a file that only takes from other rooms has no place in the room of the core', () => {
    const imports = new Map([
      ['src/core/core-names.ts', []],
      ['src/core/memory.ts', ['src/core/core-names.ts']],
      ['src/core/table.ts', ['src/core/memory.ts', 'src/runtime/texts.ts']],
      ['src/core/frames.ts', ['src/runtime/texts.ts']],
    ]);
    expect(ignorantOfTheCore(imports)).toEqual(['src/core/frames.ts']);
  });
});
