import { seededRandom } from '../../../src/runtime/seeded-random.js';

/**
 * A seeded row of random numbers with the distributions that traffic and engines need. The name keeps rows of one seed
 * apart, so that a further draw in one place changes no draw in another.
 */
export class RandomStream {
  /** In [0, 1). */
  readonly uniform: () => number;
  #spare: number | undefined;

  constructor(seed: number, name: string) {
    let state = 0x811c9dc5 ^ seed;
    // FNV-1a over the name, begun at the seed.
    for (let i = 0; i < name.length; i++) state = Math.imul(state ^ name.charCodeAt(i), 0x01000193);
    this.uniform = seededRandom(Math.imul(state ^ (state >>> 15), 0x2c1b3c6d));
  }

  /** A whole number in 0 … bound - 1. */
  below(bound: number): number {
    return Math.floor(this.uniform() * bound);
  }

  exponential(mean: number): number {
    return -mean * Math.log(1 - this.uniform());
  }

  /** Standard normal (Box and Muller 1958, both numbers of a pair are used). */
  normal(): number {
    const spare = this.#spare;
    if (spare !== undefined) {
      this.#spare = undefined;
      return spare;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    const angle = 2 * Math.PI * this.uniform();
    this.#spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  /** Lognormal with this mean; `sigma` is the standard deviation of the logarithm. */
  lognormal(mean: number, sigma: number): number {
    return mean * Math.exp(sigma * this.normal() - (sigma * sigma) / 2);
  }

  /** Gamma with this mean and coefficient of variation (Marsaglia and Tsang 2000). */
  gamma(mean: number, variation: number): number {
    const shape = 1 / (variation * variation);
    const scale = mean / shape;
    if (shape >= 1) return scale * this.#gammaAboveOne(shape);
    return scale * this.#gammaAboveOne(shape + 1) * (1 - this.uniform()) ** (1 / shape);
  }

  #gammaAboveOne(shape: number): number {
    const d = shape - 1 / 3;
    const c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = this.normal();
      const v = (1 + c * x) ** 3;
      if (v > 0 && Math.log(1 - this.uniform()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
    }
  }
}

/** Draws ranks 0 … count - 1 with probability proportional to 1 / (rank + 1)^exponent (Zipf). */
export class ZipfRanks {
  readonly #cumulated: Float64Array;

  constructor(count: number, exponent: number) {
    this.#cumulated = new Float64Array(count);
    let sum = 0;
    for (let rank = 0; rank < count; rank++) {
      sum += (rank + 1) ** -exponent;
      this.#cumulated[rank] = sum;
    }
  }

  draw(random: RandomStream): number {
    const wanted = random.uniform() * this.#cumulated[this.#cumulated.length - 1]!;
    let low = 0;
    let high = this.#cumulated.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#cumulated[middle]! > wanted) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
