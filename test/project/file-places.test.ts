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
