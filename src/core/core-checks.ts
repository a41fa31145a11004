import { CORE, type CoreFunctions } from './core-names.js';

/** A structure of the core does not hold what its file says, or an assertion failed. Debug build only. */
export class CoreCheckError extends Error {}

/** Cells that the checks may look at for each release of a lock, in the mean over many. */
const CELLS_PER_RELEASE = 1 << 12;
/** Cells of one check, which runs under the lock: a structure that needs more is not checked. */
const CELLS_MAX = 1 << 24;

/** A check function of the core, and the cells that it looks at. */
interface Check {
  readonly name: 'ledgerCheck' | 'gateCheck' | 'sessionsCheck' | 'turnsCheck' | 'prefixCheck' | 'activeCheck';
  readonly cells: (sizes: CheckedSizes, call: CoreFunctions) => number;
}

/** Sizes of the pool that the cost of a check grows with. */
export interface CheckedSizes {
  readonly endpoints: number;
  readonly requests: number;
}

const COMMIT_CHECKS: readonly Check[] = [
  { name: 'ledgerCheck', cells: ({ endpoints, requests }) => 2 * requests + 5 * endpoints },
  { name: 'gateCheck', cells: ({ endpoints, requests }) => 2 * requests + 8 * endpoints },
  // Each endpoint looks at the counted prefixes, of which there are 4,096; without sessions nothing is looked at.
  { name: 'sessionsCheck', cells: ({ endpoints }) => 4_096 * endpoints },
  { name: 'turnsCheck', cells: ({ requests }) => 3 * requests },
];

const INDEX_CHECKS: readonly Check[] = [
  {
    name: 'prefixCheck',
    cells: ({ endpoints }, call) => {
      const segments = call.prefixCounter(CORE.PREFIX_COUNTER_SEGMENTS);
      return segments * (2 * segments + call.prefixCounter(CORE.PREFIX_COUNTER_SETS) + 2 * endpoints);
    },
  },
  // The table of active blocks has 16 entries for each request (assembly/load/layout.ts); each endpoint looks at all.
  { name: 'activeCheck', cells: ({ endpoints, requests }) => (endpoints + 1) * 16 * requests },
];

/**
 * Runs the core's own check functions whenever this thread releases a lock. In a small pool every release is checked;
 * in a large one so many releases pass between two checks that they cost about as much as CELLS_PER_RELEASE for each.
 */
export class LockChecks {
  readonly #call: CoreFunctions;
  readonly #sizes: CheckedSizes;
  readonly #due = new Map<Check, number>();

  constructor(call: CoreFunctions, sizes: CheckedSizes) {
    this.#call = call;
    this.#sizes = sizes;
  }

  /** @throws CoreCheckError with the check and its number; the lock stays held then. */
  releasing(lock: number): void {
    const commit = lock === CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
    const index = lock === CORE.HEADER + CORE.HEADER_INDEX_LOCK;
    for (const check of commit ? COMMIT_CHECKS : index ? INDEX_CHECKS : []) this.#run(check);
  }

  #run(check: Check): void {
    const cells = check.cells(this.#sizes, this.#call);
    if (cells > CELLS_MAX) return;
    const due = (this.#due.get(check) ?? cells) + CELLS_PER_RELEASE;
    this.#due.set(check, due >= cells ? 0 : due);
    if (due < cells) return;
    const found = this.#call[check.name]();
    if (found !== 0) throw new CoreCheckError(`${check.name} found ${found} at the release of a lock`);
  }
}
