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

/** Coefficients of both times of one endpoint, in milliseconds per unit of a feature. */
export interface LatencyCoefficients {
  readonly ttft: ArrayLike<number>;
  readonly tpot: ArrayLike<number>;
}

/**
 * The control thread's access to the latency model in shared memory. Every write returns false when the lock is not
 * free; the caller repeats it.
 */
export class CoefficientTable {
  readonly #core: CoreInstance;
  readonly #input: number;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#input = (core.call.inputAddress() >>> 0) >>> 2;
  }

  /** Sets the coefficients of all endpoints without learned ones. */
  setUnknown(coefficients: LatencyCoefficients): boolean {
    this.#write(coefficients);
    return this.#core.call.predictionPrior() === 0;
  }

  /** Sets the learned coefficients of the endpoint in a slot. Without effect when the slot has another generation. */
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

/** Predictions of one thread's decisions, by slot. */
export interface PredictedColumns {
  /** Milliseconds by slot; NaN = no prediction. */
  readonly ttft: Float32Array;
  readonly tpot: Float32Array;
}

/** The columns that OP_PREDICT or the host fills. */
export function predictedColumns(core: CoreInstance): PredictedColumns {
  const { call, sizes, f32 } = core;
  const column = (number: number) => {
    const start = ((call.predictedAddress() >>> 0) >>> 2) + number * sizes.endpoints;
    return f32.subarray(start, start + sizes.endpoints);
  };
  return { ttft: column(CORE.PREDICTED_TTFT), tpot: column(CORE.PREDICTED_TPOT) };
}
