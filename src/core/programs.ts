import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';
import { fusedTerm, isScorer, type Operation, type ReadName, readsOf, takesPressedOverlap } from './operations.js';

export interface ProgramOptions {
  /** Whether the picked endpoint counts as holding the prompt (the approximate prefix cache). */
  readonly inserts: boolean;
  /** Whether the holders of the prompt are looked up even when no operation reads them, because a hook plugin may. */
  readonly matches?: boolean;
  /** Whether matches count whole blocks of the engine only, where it reports their size. */
  readonly wholeBlocks?: boolean;
  /** Whether engines tell which blocks they hold, but for those that send no events. */
  readonly told?: boolean;
  /** Number below 2^24 in the training samples of the program's decisions; 0 when absent. */
  readonly tag?: number;
}

/**
 * Writes programs into shared memory and publishes them. Control thread only. A new program is written to an unused
 * place; one atomic store then makes it the profile's.
 */
export class ProgramTable {
  readonly #core: CoreInstance;
  readonly #places: number;
  readonly #profiles: Int32Array;
  readonly #shadows: Int32Array;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#places = core.call.regionAddress(CORE.REGION_PROGRAMS) >>> 0;
    const words = (offset: number) => {
      const first = (CORE.HEADER + CORE.HEADER_POOL + offset) >>> 2;
      return core.i32.subarray(first, first + CORE.PROFILES_MAX);
    };
    this.#profiles = words(CORE.POOL_PROFILES);
    this.#shadows = words(CORE.POOL_SHADOWS);
  }

  /**
   * Publishes a program for a profile.
   * @throws RangeError when the profile or the number of operations is out of range, or an operation is not the core's.
   */
  publish(profile: number, operations: readonly Operation[], options: ProgramOptions): void {
    this.#publish(this.#profiles, profile, operations, options);
  }

  /**
   * Publishes a program that decides beside the profile's, without effect (assembly/scheduling/shadow.ts).
   * @throws as `publish`
   */
  publishShadow(profile: number, operations: readonly Operation[], options: ProgramOptions): void {
    this.#publish(this.#shadows, profile, operations, options);
  }

  /** Takes the shadow programs of all profiles away. */
  clearShadows(): void {
    for (const profile of this.#shadows.keys()) Atomics.store(this.#shadows, profile, 0);
  }

  #publish(words: Int32Array, profile: number, operations: readonly Operation[], options: ProgramOptions): void {
    if (profile < 0 || profile >= CORE.PROFILES_MAX) throw new RangeError(`at most ${CORE.PROFILES_MAX} profiles`);
    if (operations.length > CORE.PROGRAM_OPS)
      throw new RangeError(`a profile may have at most ${CORE.PROGRAM_OPS} plugins`);
    this.#core.asserts?.control();
    const number = this.#unusedPlace();
    this.#write(this.#places + number * CORE.PROGRAM_BYTES, operations, options);
    Atomics.store(words, profile, number);
  }

  #unusedPlace(): number {
    const numbers = [this.#profiles, this.#shadows].flatMap((words) =>
      Array.from(words.keys(), (i) => Atomics.load(words, i)),
    );
    const used = new Set(numbers);
    // The place used last is skipped: a decision that has just read its number may run it.
    for (let i = 1; i < CORE.PROGRAM_COUNT; i++) {
      const place = ((this.#last + i) % (CORE.PROGRAM_COUNT - 1)) + 1;
      if (!used.has(place)) {
        this.#last = place;
        return place;
      }
    }
    throw new RangeError('no place is left for another program');
  }

  #last = 0;

  #write(at: number, operations: readonly Operation[], options: ProgramOptions): void {
    const { view } = this.#core;
    let needs = needsOf(options);
    for (const [i, operation] of operations.entries()) {
      const code = CORE[operation.code];
      if (code === undefined) throw new RangeError(`${operation.code} is no operation of the core`);
      if (operation.parameters.length > CORE.OPERATION_PARAMETERS_MAX)
        throw new RangeError(`${operation.code} takes at most ${CORE.OPERATION_PARAMETERS_MAX} parameters`);
      needs |= needsOfReads(operation);
      const op = at + CORE.PROGRAM_HEAD_BYTES + i * CORE.OPERATION_BYTES;
      view.setUint32(op + CORE.OPERATION_CODE, code, true);
      view.setFloat32(op + CORE.OPERATION_WEIGHT, operation.weight, true);
      for (let k = 0; k < CORE.OPERATION_PARAMETERS_MAX; k++)
        view.setFloat32(op + CORE.OPERATION_PARAMETERS + k * 4, operation.parameters[k] ?? 0, true);
    }
    view.setUint32(at + CORE.PROGRAM_OPERATIONS, operations.length, true);
    view.setUint32(at + CORE.PROGRAM_NEEDS, needs, true);
    view.setUint32(at + CORE.PROGRAM_TAG, options.tag ?? 0, true);
    const projects = operations.some(({ code, parameters }) => code === 'OP_WOULD_PICK' && parameters[0]! > 0);
    view.setUint32(at + CORE.PROGRAM_PROJECTS, projects ? 1 : 0, true);
    view.setUint32(at + CORE.PROGRAM_FUSED, fusedScorers(operations), true);
  }
}

/** Work of the core for a program whose operations have an input (PROGRAM_* bits). */
const NEEDS: Readonly<Partial<Record<ReadName, number>>> = {
  matches: CORE.PROGRAM_NEEDS_MATCH,
  coldOrder: CORE.PROGRAM_NOTES_COLD,
  adaptersSent: CORE.PROGRAM_NOTES_ADAPTER,
};

function needsOfReads(operation: Operation): number {
  const overlap = takesPressedOverlap(operation.code) ? CORE.PROGRAM_NEEDS_PRESSED_OVERLAP : CORE.PROGRAM_NEEDS_OVERLAP;
  return readsOf(operation).reduce((needs, read) => needs | (read === 'overlap' ? overlap : (NEEDS[read] ?? 0)), 0);
}

function needsOf({ inserts, matches, wholeBlocks, told }: ProgramOptions): number {
  return (
    (inserts ? CORE.PROGRAM_INSERTS | CORE.PROGRAM_NEEDS_MATCH : 0) |
    (matches === true ? CORE.PROGRAM_NEEDS_MATCH : 0) |
    (wholeBlocks === true ? CORE.PROGRAM_WHOLE_BLOCKS : 0) |
    (told === true ? CORE.PROGRAM_TOLD : 0)
  );
}

/**
 * Number of scorers, from the first one on, that are different terms of one pass; 0 when there are fewer than two or
 * when a filter comes behind them.
 */
function fusedScorers(operations: readonly Operation[]): number {
  const first = operations.findIndex(({ code }) => isScorer(code));
  if (first < 0 || operations.slice(first).some(({ code }) => code.startsWith('OP_FILTER_'))) return 0;
  const terms = new Set<string>();
  for (const { code, weight } of operations.slice(first)) {
    const term = fusedTerm(code);
    if (term === undefined || weight === 0 || terms.has(term)) break;
    terms.add(term);
  }
  return terms.size < 2 ? 0 : terms.size;
}
