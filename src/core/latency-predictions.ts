import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** Features of the latency model, the constant 1 included, in the order of their coefficients. */
export const predictionFeatures = [
  'one',
  'uncached-kilotokens',
  'in-flight-kilotokens',
  'waiting-requests',
  'in-flight-requests',
  'kv-usage',
  'prompt-kilotokens',
] as const;

/** Coefficients of both times of one endpoint, milliseconds for each unit of a feature. */
export interface LatencyCoefficients {
  readonly ttft: ArrayLike<number>;
  readonly tpot: ArrayLike<number>;
}

/**
 * The control thread's face of the latency model in shared memory. A write that cannot have the lock at once is to be
 * tried again by the caller: every method answers false then.
 */
export class CoefficientTable {
  readonly #core: CoreInstance;
  readonly #input: number;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#input = (core.call.inputAddress() >>> 0) >>> 2;
  }

  /** What holds for every endpoint that nothing has been learned about. */
  setUnknown(coefficients: LatencyCoefficients): boolean {
    this.#write(coefficients);
    return this.#core.call.predictionPrior() === 0;
  }

  /** What was learned about the endpoint in a slot; nothing happens when the slot has changed hands. */
  setLearned(slot: number, generation: number, coefficients: LatencyCoefficients): boolean {
    this.#write(coefficients);
    return this.#core.call.predictionLearned(slot, generation) === 0;
  }

  #write({ ttft, tpot }: LatencyCoefficients): void {
    const { f32 } = this.#core;
    const features = CORE.PREDICTION_FEATURES;
    for (let i = 0; i < features; i++) {
      f32[this.#input + i] = ttft[i]!;
      f32[this.#input + features + i] = tpot[i]!;
    }
  }
}

/** What one thread's decisions know about the latency of endpoints. */
export interface PredictedColumns {
  /** Milliseconds by slot; NaN = nothing is predicted. */
  readonly ttft: Float32Array;
  readonly tpot: Float32Array;
}

/** The columns that OP_PREDICT fills, or that the host fills for it. */
export function predictedColumns(core: CoreInstance): PredictedColumns {
  const { call, sizes, f32 } = core;
  const column = (number: number) => {
    const start = ((call.predictedAddress() >>> 0) >>> 2) + number * sizes.endpoints;
    return f32.subarray(start, start + sizes.endpoints);
  };
  return { ttft: column(CORE.PREDICTED_TTFT), tpot: column(CORE.PREDICTED_TPOT) };
}
