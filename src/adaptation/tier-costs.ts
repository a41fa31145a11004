import type { LowerPlace, TierPrices } from '../contract/block-place.js';
import type { TrainingSample } from '../core/training-sample.js';
import { RidgeEquations, relativeWeight } from '../runtime/ridge-equations.js';

/** What loading a block from each tier costs beside computing it, as configured. */
export interface TierPricing {
  readonly prices: TierPrices;
  /** Tiers whose price is written in the configuration, and stays. */
  readonly given: readonly LowerPlace[];
}

/** Tokens of a prompt in the host's memory, on a disk and elsewhere. */
export type LowerTokens = readonly [host: number, disk: number, remote: number];

const PLACES = ['host', 'disk', 'remote'] as const satisfies readonly LowerPlace[];
const NO_TIERS: TierPricing = { prices: { host: 0, disk: 0, remote: 0 }, given: PLACES };

/** Weight of a configured price: that of so many requests that do nothing but load. */
const PRIOR_REQUESTS = 5;
/** Factor on the weight of older requests for each new one that loads: the last 500 count. */
const FORGET = Math.exp(-1 / 500);
/** Lower bound of a predicted time in the weights. */
const FLOOR_MS = 20;

/** A request that loaded blocks. Times to the first output in milliseconds. */
export interface LoadedRequest {
  readonly loaded: LowerTokens;
  readonly msPerToken: number;
  /** With the loading at the present prices. */
  readonly predictedMs: number;
  readonly observedMs: number;
}

/**
 * Learns what loading a token from each tier costs beside computing it. The time to the first output beyond what the
 * cost model predicts without the loading is that of the loading.
 */
export class TierCosts {
  readonly #pricing: TierPricing;
  readonly #equations: RidgeEquations;
  readonly #priors: readonly number[];

  constructor(pricing: TierPricing = NO_TIERS) {
    const { prices, given } = pricing;
    this.#pricing = pricing;
    this.#priors = PLACES.map((place) => prices[place]);
    this.#equations = new RidgeEquations(
      PLACES.map((place) =>
        given.includes(place) ? { low: prices[place], high: prices[place] } : { low: 0, high: 1 },
      ),
    );
    this.reset();
  }

  /** Prices of the configuration. */
  get configured(): TierPrices {
    return this.#pricing.prices;
  }

  /** Present prices, from 0 to 1. */
  get prices(): TierPrices {
    const [host, disk, remote] = this.#equations.theta;
    return { host: host!, disk: disk!, remote: remote! };
  }

  learn({ loaded, msPerToken, predictedMs, observedMs }: LoadedRequest): void {
    const x = loaded.map((tokens) => tokens * msPerToken);
    const error = observedMs - predictedMs;
    if (!Number.isFinite(error) || !x.every(Number.isFinite) || x.every((part) => part === 0)) return;
    const weight = relativeWeight(error, Math.max(predictedMs, FLOOR_MS));
    this.#equations.fade(FORGET);
    this.#equations.add(x, error + this.#equations.predict(x), weight);
    this.#pull(1 - FORGET);
    this.#equations.solve();
  }

  reset(): void {
    this.#equations.begin(0, this.#priors, this.#priors);
    this.#pull(1);
    this.#equations.theta.set(this.#priors);
  }

  #pull(share: number): void {
    this.#equations.pull(
      share,
      PLACES.map(() => PRIOR_REQUESTS),
      this.#priors,
    );
  }
}

/** Tokens of the prompt that the endpoint held below the GPU. */
export function tokensBelow({ hostTokens = 0, diskTokens = 0, remoteTokens = 0 }: TrainingSample): LowerTokens {
  return [hostTokens, diskTokens, remoteTokens];
}

/** Tokens whose computation costs as much as loading these. */
export function pricedTokens([host, disk, remote]: LowerTokens, prices: TierPrices): number {
  return host * prices.host + disk * prices.disk + remote * prices.remote;
}

/** All of them by a common factor, so that they are no more than `limit` tokens. */
export function atMost(tokens: LowerTokens, limit: number): LowerTokens {
  const [host, disk, remote] = tokens;
  const sum = host + disk + remote;
  if (sum <= limit) return tokens;
  const factor = Math.max(0, limit) / sum;
  return [host * factor, disk * factor, remote * factor];
}
