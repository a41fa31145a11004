import { type Arm, Comparison, type EpochResult, type Estimate } from './comparison.js';

/**
 * What tells which arm is better. cost: the mean cost of requests · goodput: the share of requests that met the latency
 * targets they came with
 */
export type Measure = 'cost' | 'goodput';

/** Epochs over which the goodput of an arm is averaged for those who look at it. */
const SHARE_EPOCHS = 10;

/**
 * Compares the arms by cost, and by goodput where most requests of the last epoch came with targets of their own. Both
 * results are logarithms that are higher the worse an arm is, so what holds for one holds for the other.
 */
export class ArmComparison {
  readonly #cost = new Comparison();
  readonly #goodput = new Comparison();
  readonly #shares: Record<Arm, number | undefined> = { static: undefined, learned: undefined };
  #measure: Measure = 'cost';

  /** The measure by which the guard decides. */
  get measure(): Measure {
    return this.#measure;
  }

  get decisive(): Comparison {
    return this.#measure === 'goodput' ? this.#goodput : this.#cost;
  }

  get cost(): Comparison {
    return this.#cost;
  }

  /** ln(goodput with the configured weights / goodput with learned costs); undefined = no epoch had a goodput. */
  get goodputGap(): Estimate | undefined {
    return this.#hasGoodput ? this.#goodput.gap : undefined;
  }

  /** Mean goodput of the last epochs of an arm, 0 … 1; undefined = none of them had one. */
  goodputOf(arm: Arm): number | undefined {
    return this.#shares[arm];
  }

  add(epoch: EpochResult): void {
    this.#cost.add(epoch);
    this.#measure = epoch.shortfall === undefined ? 'cost' : 'goodput';
    if (epoch.shortfall === undefined) return;
    this.#goodput.add({ ...epoch, result: epoch.shortfall, deviation: undefined });
    const share = Math.exp(-epoch.shortfall);
    const mean = this.#shares[epoch.arm] ?? share;
    this.#shares[epoch.arm] = mean + (share - mean) / Math.min(SHARE_EPOCHS, this.#goodput.epochs(epoch.arm));
  }

  /** Resets what is known of the learned arm after a change of what it stands for. */
  forgetGap(): void {
    this.#cost.forgetGap();
    this.#goodput.forgetGap();
    this.#shares.learned = undefined;
  }

  get #hasGoodput(): boolean {
    return this.#goodput.epochs('static') + this.#goodput.epochs('learned') > 0;
  }
}
