import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** What the cost of one more request is reckoned with (assembly/scheduling/marginal-cost.ts has the formula). */
export interface Coefficients {
  /** Milliseconds to a first output that nothing delays. */
  readonly baseMs: number;
  /** Milliseconds of prefill per 1,000 tokens that are not cached. */
  readonly prefillMsPerKiloToken: number;
  /** Milliseconds of waiting per request that the engine has waiting. */
  readonly waitingMs: number;
  /** Milliseconds per output token on an endpoint without load. */
  readonly stepMs: number;
  /** Milliseconds that 100,000 tokens in flight add to every output token. */
  readonly growthMs: number;
  /** How much more than its own time a missed token costs: what it takes from others and from the next turn. */
  readonly missPrice: number;
  /** Output tokens of a usual request. */
  readonly outputTokens: number;
  /** What a request should take to its first output, and per output token: the exchange rate between the two. */
  readonly firstOutputTargetMs: number;
  readonly perTokenTargetMs: number;
  /** Requests that every endpoint runs at once at least. */
  readonly slots: number;
}

/** The terms of the cost, in the order of the core. */
export const costTerms = ['context', 'queue', 'waiting', 'decode', 'capacity'] as const;
export type CostTerm = (typeof costTerms)[number];

/** How much each term told the candidates apart, in sampled decisions. */
export interface TermShares {
  readonly samples: number;
  /** Sum over the samples of each term's range as a share of the sum of all ranges. */
  readonly sums: Readonly<Record<CostTerm, number>>;
}

/** How the scorers' columns of a profile go together with marginal cost, summed over sampled decisions. */
export interface ProjectionSums {
  readonly samples: number;
  /** Products of columns i and j, each without its mean. */
  readonly products: readonly (readonly number[])[];
  /** Products of column i and cost. */
  readonly costs: readonly number[];
}

/** The control thread's face of the cost model's numbers. A write that cannot have the lock at once answers false. */
export class CostTable {
  readonly #core: CoreInstance;

  constructor(core: CoreInstance) {
    this.#core = core;
  }

  /** Put coefficients in the place of the ones that decisions use; all of them or none. */
  write(given: Coefficients): boolean {
    const { call, view } = this.#core;
    const at = call.inputAddress() >>> 0;
    const put = (offset: number, value: number) => view.setFloat32(at + offset, value, true);
    put(CORE.COEFFICIENT_BASE, given.baseMs);
    put(CORE.COEFFICIENT_PREFILL, given.prefillMsPerKiloToken);
    put(CORE.COEFFICIENT_WAITING, given.waitingMs);
    put(CORE.COEFFICIENT_STEP, given.stepMs);
    put(CORE.COEFFICIENT_GROWTH, given.growthMs);
    put(CORE.COEFFICIENT_MISS_PRICE, given.missPrice);
    put(CORE.COEFFICIENT_OUTPUT, given.outputTokens);
    put(CORE.COEFFICIENT_FIRST_OUTPUT_TARGET, given.firstOutputTargetMs);
    put(CORE.COEFFICIENT_PER_TOKEN_TARGET, given.perTokenTargetMs);
    put(CORE.COEFFICIENT_SLOTS, given.slots);
    return call.coefficientsWrite(at) === 0;
  }

  /**
   * Set how slow an endpoint is (1 = as the others, 2 = everything takes twice as long) and what share of the tokens that it is
   * thought to hold it does hold. Without effect when the slot belongs to somebody else by now.
   */
  writeEndpoint(slot: number, generation: number, speed: number, reliability: number): boolean {
    return this.#core.call.endpointCost(slot, generation, speed, reliability) === 0;
  }

  /** Shares since the pool was made, over all threads. */
  shares(): TermShares {
    const { call, f64, sizes } = this.#core;
    const sums = { context: 0, queue: 0, waiting: 0, decode: 0, capacity: 0 };
    let samples = 0;
    for (let thread = 0; thread < sizes.threads; thread++) {
      const at = (call.sharesAddress(thread) >>> 0) >>> 3;
      samples += f64[at]!;
      for (const [i, term] of costTerms.entries()) sums[term] += f64[at + 1 + i]!;
    }
    return { samples, sums };
  }

  /** Sums since the pool was made, over all threads; rows and columns beyond a program's scorers are 0. */
  projection(): ProjectionSums {
    const { call, f64, sizes } = this.#core;
    const size = CORE.PROJECTION_SCORERS;
    const products = Array.from({ length: size }, () => new Array<number>(size).fill(0));
    const costs = new Array<number>(size).fill(0);
    let samples = 0;
    for (let thread = 0; thread < sizes.threads; thread++) {
      const at = ((call.sharesAddress(thread) >>> 0) + CORE.SHARE_BYTES) >>> 3;
      samples += f64[at]!;
      for (let i = 0; i < size; i++) {
        for (let j = 0; j < size; j++) products[i]![j]! += f64[at + (CORE.PROJECTION_PRODUCTS >>> 3) + i * 8 + j]!;
        costs[i]! += f64[at + (CORE.PROJECTION_COSTS >>> 3) + i]!;
      }
    }
    return { samples, products, costs };
  }
}
