import { CORE, type CoreConstant } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** An operation of the core. */
export type OperationName = Extract<CoreConstant, `OP_${string}`>;

/** One operation of a program, its weight and its parameters. */
export interface Operation {
  readonly code: OperationName;
  readonly weight: number;
  readonly parameters: readonly number[];
}

export interface ProgramOptions {
  /** Records that the picked endpoint will hold the prompt (the approximate prefix cache). */
  readonly inserts: boolean;
  /** Looks up the holders of the prompt even when no operation reads them, because a hook plugin may. */
  readonly matches?: boolean;
  /** Counts matches as far as the engine's own blocks are whole, where it says how large they are. */
  readonly wholeBlocks?: boolean;
  /** Number below 2^24 in the training samples of the program's decisions; 0 when absent. */
  readonly tag?: number;
}

/**
 * Writes programs into shared memory and publishes them. Control thread only. A new program is written to a place that
 * no profile runs; one atomic store then makes it the profile's.
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
    // The place used last is skipped: a decision that has just read its number may still run it.
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
    let needs = options.inserts ? CORE.PROGRAM_INSERTS | CORE.PROGRAM_NEEDS_MATCH : 0;
    if (options.matches === true) needs |= CORE.PROGRAM_NEEDS_MATCH;
    if (options.wholeBlocks === true) needs |= CORE.PROGRAM_WHOLE_BLOCKS;
    for (const [i, operation] of operations.entries()) {
      const code = CORE[operation.code];
      this.#core.asserts?.that(code !== undefined, () => `${operation.code} is an operation of the core`);
      if (operation.parameters.length > 8) throw new RangeError(`${operation.code} takes at most 8 parameters`);
      if (readsMatches.has(operation.code)) needs |= CORE.PROGRAM_NEEDS_MATCH;
      if (operation.code === 'OP_SCORE_ACTIVE_BLOCKS') needs |= CORE.PROGRAM_NEEDS_OVERLAP;
      if (operation.code === 'OP_SCORE_NO_HIT_LRU') needs |= CORE.PROGRAM_NOTES_COLD;
      if (operation.code === 'OP_SCORE_ADAPTER' && operation.parameters[0]) needs |= CORE.PROGRAM_NOTES_ADAPTER;
      const op = at + 64 + i * 64;
      view.setUint32(op, code, true);
      view.setFloat32(op + 4, operation.weight, true);
      for (let k = 0; k < 8; k++) view.setFloat32(op + 8 + k * 4, operation.parameters[k] ?? 0, true);
    }
    view.setUint32(at, operations.length, true);
    view.setUint32(at + 4, needs, true);
    view.setUint32(at + CORE.PROGRAM_TAG, options.tag ?? 0, true);
    const projects = operations.some(({ code, parameters }) => code === 'OP_WOULD_PICK' && parameters[0]! > 0);
    view.setUint32(at + CORE.PROGRAM_PROJECTS, projects ? 1 : 0, true);
    view.setUint32(at + CORE.PROGRAM_FUSED, fusedScorers(operations), true);
  }
}

/** Scorers that one pass of the core can evaluate (assembly/scheduling/fused-scorers.ts), by the term that they become. */
const FUSED_TERMS: ReadonlyMap<OperationName, string> = new Map([
  ['OP_SCORE_QUEUE', 'fewest'],
  ['OP_SCORE_RUNNING', 'fewest'],
  ['OP_SCORE_KV_USAGE', 'usage'],
  ['OP_SCORE_PREFIX', 'prefix'],
]);

/**
 * Number of scorers, from the first one on, that are different terms of one pass; 0 when there are fewer than two or
 * when a filter comes behind them.
 */
function fusedScorers(operations: readonly Operation[]): number {
  const first = operations.findIndex(({ code }) => code.startsWith('OP_SCORE_'));
  if (first < 0 || operations.slice(first).some(({ code }) => code.startsWith('OP_FILTER_'))) return 0;
  const terms = new Set<string>();
  for (const { code, weight } of operations.slice(first)) {
    const term = FUSED_TERMS.get(code);
    if (term === undefined || weight === 0 || terms.has(term)) break;
    terms.add(term);
  }
  return terms.size < 2 ? 0 : terms.size;
}

const readsMatches = new Set([
  'OP_PREDICT',
  'OP_SCORE_LATENCY',
  'OP_FILTER_PREFIX_AFFINITY',
  'OP_FILTER_STICKY',
  'OP_SCORE_PREFIX',
  'OP_SCORE_TOKEN_LOAD',
  'OP_SCORE_ACTIVE_BLOCKS',
  'OP_SCORE_NO_HIT_LRU',
  'OP_SCORE_LMETRIC',
  'OP_SCORE_CACHE_AWARE',
  'OP_SCORE_MARGINAL_COST',
  'OP_WOULD_PICK',
  'OP_SCORE_PREFIX_BALANCE',
  'OP_SCORE_EXPLOIT_EXPLORE',
]);
