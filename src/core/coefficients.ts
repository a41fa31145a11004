import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** Coefficients of the cost of one more request (formula: assembly/scheduling/marginal-cost.ts). */
export interface Coefficients {
  /** Milliseconds to the first output of a request without delays. */
  readonly baseMs: number;
  /** Milliseconds of prefill per 1,000 uncached tokens. */
  readonly prefillMsPerKiloToken: number;
  /** Milliseconds of waiting per request in the engine's queue. */
  readonly waitingMs: number;
  /** Milliseconds per output token on an endpoint without load. */
  readonly stepMs: number;
  /** Milliseconds that 100,000 tokens in flight add to every output token. */
  readonly growthMs: number;
  /** Factor on the time of a missed token, for the delay of other requests and of the next turn. */
  readonly missPrice: number;
  /** Output tokens of an average request. */
  readonly outputTokens: number;
  /** Target times to the first output and per output token. Their ratio is the exchange rate between the two. */
  readonly firstOutputTargetMs: number;
  readonly perTokenTargetMs: number;
  /** Minimum of the requests that every endpoint runs at once. */
  readonly slots: number;
  /** Tokens that are computed for a missed one, with those that it evicts and that return; 1 = none do. */
  readonly evictionPrice: number;
}

/** The coefficients that depend on an endpoint's hardware. */
export type HardwareCoefficients = Pick<
  Coefficients,
  'baseMs' | 'prefillMsPerKiloToken' | 'waitingMs' | 'stepMs' | 'growthMs'
>;

/** The terms of the cost, in the order of the core. */
export const costTerms = ['context', 'queue', 'waiting', 'decode', 'capacity'] as const;
export type CostTerm = (typeof costTerms)[number];

/** Share of each term in the differences between the candidates, in sampled decisions. */
export interface TermShares {
  readonly samples: number;
  /** Sum over the samples of each term's range as a share of the sum of all ranges. */
  readonly sums: Readonly<Record<CostTerm, number>>;
}

/** Sums over sampled decisions of products between the scorers' columns of a profile and the marginal cost. */
export interface ProjectionSums {
  readonly samples: number;
  /** Products of columns i and j, each without its mean. */
  readonly products: readonly (readonly number[])[];
  /** Products of column i and cost. */
  readonly costs: readonly number[];
}

/** Stands for the pool's coefficients in the core. */
const NO_COEFFICIENTS: HardwareCoefficients = {
  baseMs: 0,
  prefillMsPerKiloToken: 0,
  waitingMs: 0,
  stepMs: 0,
  growthMs: 0,
};

/**
 * The control thread's access to the coefficients of the cost model. A write returns false when the lock was not free.
 */
export class CostTable {
  readonly #core: CoreInstance;

  constructor(core: CoreInstance) {
    this.#core = core;
  }

  /** Replaces the coefficients that decisions use, all of them or none. */
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
    put(CORE.COEFFICIENT_EVICTION_PRICE, given.evictionPrice);
    return call.coefficientsWrite(at) === 0;
  }

  /**
   * Sets an endpoint's slowness (1 = average, 2 = twice the time) and the share of the tokens attributed to it that it
   * really holds. Without effect when the slot has another generation.
   * @param own coefficients of the endpoint's hardware class, among whose endpoints `speed` is then; undefined = the
   * pool's
   */
  writeEndpoint(
    slot: number,
    generation: number,
    speed: number,
    reliability: number,
    own: HardwareCoefficients | undefined,
  ): boolean {
    const { baseMs, prefillMsPerKiloToken, waitingMs, stepMs, growthMs } = own ?? NO_COEFFICIENTS;
    const { call } = this.#core;
    return (
      call.endpointCost(
        slot,
        generation,
        speed,
        reliability,
        baseMs,
        prefillMsPerKiloToken,
        waitingMs,
        stepMs,
        growthMs,
      ) === 0
    );
  }

  /** Shares since the start of the pool, over all threads. */
  shares(): TermShares {
    const { call, f64, sizes } = this.#core;
    const sums = { context: 0, queue: 0, waiting: 0, decode: 0, capacity: 0 };
    let samples = 0;
    for (let thread = 0; thread < sizes.threads; thread++) {
      const at = call.sharesAddress(thread) >>> 0;
      samples += f64[at >>> 3]!;
      const terms = (at + CORE.SHARE_FIRST_TERM) >>> 3;
      for (const [i, term] of costTerms.entries()) sums[term] += f64[terms + i]!;
    }
    return { samples, sums };
  }

  /** Sums since the start of the pool, over all threads; rows and columns beyond a program's scorers are 0. */
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
        for (let j = 0; j < size; j++)
          products[i]![j]! += f64[at + (CORE.PROJECTION_PRODUCTS >>> 3) + i * CORE.PROJECTION_ROW + j]!;
        costs[i]! += f64[at + (CORE.PROJECTION_COSTS >>> 3) + i]!;
      }
    }
    return { samples, products, costs };
  }
}
