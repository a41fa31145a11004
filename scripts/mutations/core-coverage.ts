// Which functions of the core each test file runs: every function of a covered core writes one byte of the page of the
// memory that nothing uses (assembly/memory.ts).
import { functionsOf } from './core-mutants.ts';

/** Cell of function 0; the others follow below it, far above the static data of the debug build. */
export const LAST_CELL = 65_535;
/** Functions that have a cell. */
const FUNCTIONS_MAX = LAST_CELL / 2;

/** A covered core, as the texts of its files, and the functions by number. */
export interface CoveredCore {
  readonly sources: ReadonlyMap<string, string>;
  readonly names: readonly string[];
}

/** Lets every function of the core write its cell. @param sources texts by path */
export function coveredCore(sources: ReadonlyMap<string, string>): CoveredCore {
  const names: string[] = [];
  const covered = new Map<string, string>();
  for (const [file, text] of sources) {
    let end = 0;
    let written = '';
    for (const { name, start } of functionsOf(text, file)) {
      const brace = start + 1;
      written += `${text.slice(end, brace)} store<u8>(${LAST_CELL - names.length}, 1);`;
      end = brace;
      names.push(name);
    }
    covered.set(file, written + text.slice(end));
  }
  if (names.length > FUNCTIONS_MAX) throw new Error(`${names.length} functions: the covered core has too few cells`);
  return { sources: covered, names };
}
