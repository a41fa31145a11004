import type { LatencyCoefficients } from '../core/latency-predictions.js';
import type { LatencyPriors } from './latency-priors.js';
import { type CoefficientPrior, ScaledRidge } from './scaled-ridge.js';

/** Observed times of one request, in ms; undefined = not observed. */
export interface LatencyObservation {
  readonly features: ArrayLike<number>;
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
}

/** Requests that the pool's model and an endpoint's own one remember. */
const POOL_MEMORY = 2_000;
const ENDPOINT_MEMORY = 500;
/** Requests that the prior is worth to the pool's model, and the pool's model to an endpoint's own. */
const PRIOR_WORTH = 2;
const POOL_WORTH = 8;
/** Longer times are no latencies but hung requests. */
const TIME_MS_MAX = 3_600_000;
/** Predictions below these count as these when errors are weighed against them (docs/internals/learning.md). */
const TTFT_FLOOR_MS = 20;
const TPOT_FLOOR_MS = 5;

/** One time: the model of the pool, and one of each endpoint that leans on it. */
class TimeModel {
  readonly #priors: readonly CoefficientPrior[];
  readonly #floor: number;
  readonly pool: ScaledRidge;
  /** Mean squares of the features. */
  readonly #squares: Float64Array;

  constructor(priors: readonly CoefficientPrior[], floor: number) {
    this.#priors = priors;
    this.#floor = floor;
    this.pool = new ScaledRidge({ priors, worth: PRIOR_WORTH, memory: POOL_MEMORY, floor });
    this.#squares = Float64Array.from(priors, ({ magnitude }) => magnitude ** 2);
  }

  /** A model that starts where the pool is. */
  ofEndpoint(): ScaledRidge {
    const priors = this.#priors.map((prior, i) => ({
      ...prior,
      value: this.pool.coefficients[i]!,
      magnitude: Math.sqrt(this.#squares[i]!),
    }));
    return new ScaledRidge({ priors, worth: POOL_WORTH, memory: ENDPOINT_MEMORY, floor: this.#floor });
  }

  learn(own: ScaledRidge, features: ArrayLike<number>, ms: number): boolean {
    if (!(ms > 0 && ms <= TIME_MS_MAX) || !this.pool.observe(features, ms)) return false;
    for (let i = 0; i < this.#squares.length; i++) {
      // Never 0, or a coefficient whose feature has long been absent would be free.
      const least = this.#priors[i]!.magnitude ** 2 / POOL_MEMORY;
      const seen = this.#squares[i]! + (features[i]! ** 2 - this.#squares[i]!) / POOL_MEMORY;
      this.#squares[i] = Math.max(seen, least);
    }
    own.anchor(this.pool.coefficients, this.#squares);
    return own.observe(features, ms);
  }
}

interface EndpointModel {
  readonly generation: number;
  readonly ttft: ScaledRidge;
  readonly tpot: ScaledRidge;
}

/**
 * The latency of a pool's endpoints, learned online: a linear model of each time for the pool, and one per endpoint
 * with the pool's as its prior. So a new endpoint has predictions from its first request, and a slow one has its own.
 */
export class LatencyModel {
  readonly #ttft: TimeModel;
  readonly #tpot: TimeModel;
  readonly #endpoints = new Map<number, EndpointModel>();
  #ignored = 0;

  constructor(priors: LatencyPriors) {
    this.#ttft = new TimeModel(priors.ttft, TTFT_FLOOR_MS);
    this.#tpot = new TimeModel(priors.tpot, TPOT_FLOOR_MS);
  }

  /** Times that were no latencies: not finite, not above 0, or longer than an hour. */
  get ignored(): number {
    return this.#ignored;
  }

  /** Observations of the pool. */
  get observations(): { readonly ttft: number; readonly tpot: number } {
    return { ttft: this.#ttft.pool.observations, tpot: this.#tpot.pool.observations };
  }

  /** Coefficients of an endpoint without observations. */
  get pool(): LatencyCoefficients {
    return { ttft: this.#ttft.pool.coefficients, tpot: this.#tpot.pool.coefficients };
  }

  /** Coefficients of the endpoint in a slot; undefined without observations. */
  endpoint(slot: number, generation: number): LatencyCoefficients | undefined {
    const model = this.#endpoints.get(slot);
    if (model === undefined || model.generation !== generation) return undefined;
    return { ttft: model.ttft.coefficients, tpot: model.tpot.coefficients };
  }

  /** Learn from a request that the endpoint in a slot answered. A slot with another endpoint begins anew. */
  observe(slot: number, generation: number, { features, ttftMs, tpotMs }: LatencyObservation): void {
    const model = this.#modelOf(slot, generation);
    if (ttftMs !== undefined && !this.#ttft.learn(model.ttft, features, ttftMs)) this.#ignored++;
    if (tpotMs !== undefined && !this.#tpot.learn(model.tpot, features, tpotMs)) this.#ignored++;
  }

  #modelOf(slot: number, generation: number): EndpointModel {
    const known = this.#endpoints.get(slot);
    if (known?.generation === generation) return known;
    const model = { generation, ttft: this.#ttft.ofEndpoint(), tpot: this.#tpot.ofEndpoint() };
    this.#endpoints.set(slot, model);
    return model;
  }
}
