/** Arm that drives the decisions: the configured weights, or the learned costs. */
export type Arm = 'static' | 'learned';

/** Result of an epoch. */
export interface EpochResult {
  readonly arm: Arm;
  /** ln(mean cost / mean reference) of its requests. */
  readonly result: number;
  /** Load per second, which depends on the clients and not on the arm. */
  readonly promptTokens: number;
  readonly requests: number;
  /** Requests behind the result; undefined = enough. */
  readonly noted?: number | undefined;
  /** Standard deviation of the result, by how much its requests differ; undefined = unknown. */
  readonly deviation?: number | undefined;
  /** ln of the 99th percentile of the milliseconds to first output; undefined = too few were seen. */
  readonly tail?: number | undefined;
  /** The same of the milliseconds per output token. */
  readonly tokenTail?: number | undefined;
  /** ln(1/goodput) of the requests that came with latency targets; undefined = less than half of them did. */
  readonly shortfall?: number | undefined;
}

/** An estimate of a number, and half the width of its 95 % interval. */
export interface Estimate {
  readonly mean: number;
  readonly halfWidth: number;
}

// State vector: level of the configured weights, slopes over ln(prompt tokens/s) and ln(requests/s), and the gap that
// learned costs add to the result.
const LEVEL = 0;
const GAP = 3;
const SIZE = 4;
/** Prior standard deviation of each entry, and its upper bound later. */
const UNKNOWN = [1, 0.5, 0.5, 0.12] as const;
/** Share of the certainty that remains after another epoch: the level drifts, the gap slowly, the slopes hardly. */
const KEPT = [0.9, 0.99, 0.99, 0.98] as const;
/**
 * Standard deviation of an epoch's result (measured with the simulator: 0.02 … 0.4): assumed until an epoch tells its
 * own, least that is believed of one, and weight of either in epochs.
 */
const USUAL_DEVIATION = 0.08;
const DEVIATION_MIN = 0.02;
const UNKNOWN_GAP = UNKNOWN[GAP];
const USUAL_EPOCHS = 4;
const DEVIATION_KEPT = 0.98;
/** Requests from which on the result of an epoch deviates as usual; that of fewer deviates more. */
export const EPOCH_REQUESTS = 150;

/**
 * Difference in cost between learned costs and configured weights, from epochs of both arms: a dynamic linear model
 * with discounts and unknown variance (West and Harrison, Bayesian Forecasting and Dynamic Models, 1997, 4.5 and 6.3).
 * The level may drift, so that neighbouring epochs are compared. The load of the clients explains most of an epoch's
 * cost and is taken out (a control variate), which halves the deviation of the results and quarters the number of
 * epochs needed.
 */
export class Comparison {
  readonly #mean = new Float64Array(SIZE);
  readonly #covariance = new Float64Array(SIZE * SIZE);
  readonly #epochs: Record<Arm, number> = { static: 0, learned: 0 };
  readonly #unknown: readonly number[];
  #variance: number;
  /** Whether an epoch has told its deviation. */
  #isMeasured = false;
  #freedom = USUAL_EPOCHS;
  #latest: number | undefined;
  /** Load of the first epoch, the origin of the slopes. */
  #origin: readonly [number, number] | undefined;

  /**
   * @param deviation standard deviation of an epoch's result that is assumed
   * @param unknownGap standard deviation of the gap before anything is known
   */
  constructor(deviation: number = USUAL_DEVIATION, unknownGap: number = UNKNOWN_GAP) {
    this.#variance = deviation ** 2;
    this.#unknown = [UNKNOWN[LEVEL], UNKNOWN[1], UNKNOWN[2], unknownGap];
    for (let i = 0; i < SIZE; i++) this.#covariance[i * SIZE + i] = this.#unknown[i]! ** 2;
  }

  /** Number of epochs of an arm in the comparison. */
  epochs(arm: Arm): number {
    return this.#epochs[arm];
  }

  /** Result of the last epoch of the configured weights; undefined without one. */
  get latest(): number | undefined {
    return this.#latest;
  }

  /** Standard deviation of an epoch's result, as assumed and seen. */
  get deviation(): number {
    return Math.sqrt(this.#variance);
  }

  /** Result of the configured weights under the load of the first epoch. */
  get level(): Estimate {
    return this.#estimate(LEVEL);
  }

  /** ln(cost with learned costs / cost with the configured weights). */
  get gap(): Estimate {
    return this.#estimate(GAP);
  }

  add({ arm, result, promptTokens, requests, noted, deviation }: EpochResult): void {
    const scarcity = scarcityOf(noted);
    const load = [Math.log(promptTokens), Math.log(requests)] as const;
    if (this.#origin === undefined) {
      this.#origin = load;
      this.#mean[LEVEL] = result;
    }
    if (!this.#isMeasured && deviation !== undefined) {
      this.#isMeasured = true;
      this.#variance = Math.max(DEVIATION_MIN, deviation / Math.sqrt(scarcity)) ** 2;
    }
    this.#epochs[arm]++;
    if (arm === 'static') this.#latest = result;
    this.#drift();
    const x = [1, load[0] - this.#origin[0], load[1] - this.#origin[1], Number(arm === 'learned')];
    this.#observe(x, result, scarcity);
  }

  /** Resets the gap after a change of what the learned arm stands for. */
  forgetGap(): void {
    this.#mean[GAP] = 0;
    for (let i = 0; i < SIZE; i++) {
      this.#covariance[GAP * SIZE + i] = 0;
      this.#covariance[i * SIZE + GAP] = 0;
    }
    this.#covariance[GAP * SIZE + GAP] = this.#unknown[GAP]! ** 2;
    this.#epochs.learned = 0;
  }

  #estimate(index: number): Estimate {
    const deviation = Math.sqrt(this.#covariance[index * SIZE + index]!);
    return { mean: this.#mean[index]!, halfWidth: quantile(this.#freedom) * deviation };
  }

  /** Makes every entry less certain by its own discount, up to the prior. */
  #drift(): void {
    for (let i = 0; i < SIZE; i++) {
      const at = i * SIZE + i;
      const room = this.#unknown[i]! ** 2 - this.#covariance[at]!;
      if (room > 0) this.#covariance[at]! += Math.min(room, this.#covariance[at]! * (1 / KEPT[i]! - 1));
    }
  }

  /** @param scarcity factor on the variance of the result */
  #observe(x: readonly number[], result: number, scarcity: number): void {
    const gain = new Float64Array(SIZE);
    let expected = 0;
    for (let i = 0; i < SIZE; i++) {
      expected += x[i]! * this.#mean[i]!;
      for (let j = 0; j < SIZE; j++) gain[i]! += this.#covariance[i * SIZE + j]! * x[j]!;
    }
    let spread = this.#variance * scarcity;
    for (let i = 0; i < SIZE; i++) spread += x[i]! * gain[i]!;
    const error = result - expected;
    for (let i = 0; i < SIZE; i++) {
      this.#mean[i]! += (gain[i]! / spread) * error;
      for (let j = 0; j < SIZE; j++) this.#covariance[i * SIZE + j]! -= (gain[i]! * gain[j]!) / spread;
    }
    this.#freedom = DEVIATION_KEPT * this.#freedom + 1;
    const growth = 1 + ((error * error) / spread - 1) / this.#freedom;
    this.#variance *= growth;
    // The results are noisier than assumed, so the estimates made under the assumption are less certain too.
    if (growth > 1) this.#widen(growth);
  }

  #widen(factor: number): void {
    for (let at = 0; at < SIZE * SIZE; at++) this.#covariance[at]! *= factor;
    for (let i = 0; i < SIZE; i++) {
      const excess = this.#covariance[i * SIZE + i]! / this.#unknown[i]! ** 2;
      if (excess <= 1) continue;
      for (let j = 0; j < SIZE; j++) {
        this.#covariance[i * SIZE + j]! /= Math.sqrt(excess);
        this.#covariance[j * SIZE + i]! /= Math.sqrt(excess);
      }
    }
  }
}

/** Factor by which the variance of a result behind which are so many requests exceeds the usual one. */
function scarcityOf(noted = EPOCH_REQUESTS): number {
  return Math.max(1, EPOCH_REQUESTS / noted);
}

/**
 * 97.5 % quantile of Student's t, to about a hundredth from three degrees of freedom on (Abramowitz and Stegun,
 * 26.7.5).
 */
function quantile(freedom: number): number {
  return 1.96 + 2.37 / freedom + 2.82 / freedom ** 2;
}
