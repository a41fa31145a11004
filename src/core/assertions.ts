import { CoreCheckError } from './core-checks.js';
import { CORE, type CoreFunctions } from './core-names.js';

/** Moves of an endpoint slot from one state to another; staying in a state is always allowed. */
const MOVES: ReadonlySet<number> = new Set(
  [
    [CORE.STATE_FREE, CORE.STATE_LIVE],
    // An endpoint that drains before all shards know it.
    [CORE.STATE_FREE, CORE.STATE_DRAINING],
    [CORE.STATE_LIVE, CORE.STATE_DRAINING],
    [CORE.STATE_DRAINING, CORE.STATE_LIVE],
    [CORE.STATE_LIVE, CORE.STATE_FREE],
    [CORE.STATE_DRAINING, CORE.STATE_FREE],
  ].map(([from, to]) => moveOf(from!, to!)),
);

function moveOf(from: number, to: number): number {
  return from * 16 + to;
}

/** Facts that hold wherever TypeScript writes into a pool's memory. */
interface AssertedCore {
  readonly thread: number;
  readonly sizes: { readonly endpoints: number; readonly scans: number; readonly threads: number };
  readonly call: CoreFunctions;
  readonly view: DataView;
}

/**
 * Assertions of the TypeScript side of the core. An instance on the debug core has one, any other has none:
 * `core.asserts?.slot(slot)` costs a look at a field in production, and its arguments are not evaluated.
 */
export class CoreAssertions {
  readonly #core: AssertedCore;

  constructor(core: AssertedCore) {
    this.#core = core;
  }

  /** @throws CoreCheckError unless it holds that … */
  that(condition: boolean, what: () => string): void {
    if (!condition) throw new CoreCheckError(`src/core: it does not hold that ${what()}`);
  }

  /** Asserts that the value is a whole number from 0 to below `bound`. */
  index(name: string, value: number, bound: number): void {
    this.that(Number.isInteger(value) && value >= 0 && value < bound, () => `${name} ${value} is below ${bound}`);
  }

  /** Asserts that the number is one of an endpoint slot. */
  slot(slot: number): void {
    this.index('endpoint slot', slot, this.#core.sizes.endpoints);
  }

  /** Asserts that all of them are endpoint slots. */
  slots(slots: Iterable<number>): void {
    for (const slot of slots) this.slot(slot);
  }

  /** Asserts that this is the control thread, the one writer of what follows. */
  control(): void {
    const { thread } = this.#core;
    this.that(thread === 0, () => `the control thread writes here, not thread ${thread}`);
  }

  /** Asserts that the endpoint slot may go to a state. */
  move(slot: number, to: number): void {
    this.control();
    this.slot(slot);
    const from = this.#column(CORE.COLUMN_STATE, slot);
    this.that(from === to || MOVES.has(moveOf(from, to)), () => `slot ${slot} may go from state ${from} to ${to}`);
    const generation = this.#column(CORE.COLUMN_GENERATION, slot);
    this.that(to === CORE.STATE_FREE || generation > 0, () => `slot ${slot} is open before it gets state ${to}`);
  }

  #column(column: number, slot: number): number {
    const { call, view, sizes } = this.#core;
    const at = (call.regionAddress(CORE.REGION_ENDPOINTS) >>> 0) + ((column * sizes.endpoints + slot) << 2);
    return view.getUint32(at, true);
  }

  /** Asserts that a wait slot of a thread is in one of these states. */
  waitSlot(thread: number, slot: number, states: readonly number[]): void {
    const { call, view, sizes } = this.#core;
    this.index('thread', thread, sizes.threads);
    this.index('wait slot', slot, sizes.scans);
    const state = view.getUint32((call.waitSlotAddress(thread, slot) >>> 0) + CORE.WAIT_SLOT_STATE, true);
    this.that(
      states.includes(state),
      () => `wait slot ${slot} of thread ${thread} has a state of ${states}, not ${state}`,
    );
  }
}
