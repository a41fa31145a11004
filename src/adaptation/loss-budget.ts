import type { Arm, Estimate } from './comparison.js';
import { ONE_IN_TEN } from './guard-rules.js';

/** Epochs whose loss budget is available at once. Without it no first try would be possible. */
const SLACK_EPOCHS = 5;
/** Fading of the budget per epoch (about a hundred epochs), so that a long calm time does not pay for a bad one. */
const BUDGET_FADE = 0.99;

/** What tries of learned costs may lose, as a share of the cost of all epochs, and what they may have lost so far. */
export class LossBudget {
  /** Share of the cost that may be lost. */
  readonly #share: number;
  #epochs = 0;
  #learnedEpochs = 0;
  /** Possible loss of the tries before the last fallback. */
  #lostBefore = 0;

  constructor(share: number) {
    this.#share = share;
  }

  /** Epochs of learned costs in the present try, faded. */
  get learnedEpochs(): number {
    return this.#learnedEpochs;
  }

  /** Counts an epoch that begins. */
  begin(arm: Arm): void {
    this.#epochs = BUDGET_FADE * this.#epochs + 1;
    this.#learnedEpochs = BUDGET_FADE * this.#learnedEpochs + Number(arm === 'learned');
    this.#lostBefore *= BUDGET_FADE;
  }

  /**
   * Whether one more epoch of learned costs fits the budget, whatever it loses within nine tenths of what `gap` leaves
   * possible: the conservative rule (after Kazerouni et al. 1611.06426) at the error of one in ten by which learned
   * costs are switched on.
   */
  hasRoom(gap: Estimate): boolean {
    return this.#loss(this.#learnedEpochs + 1, gap) <= this.#allowance;
  }

  /** Risked share of the budget, 0 … 1 and above. */
  risked(gap: Estimate): number {
    return this.#loss(this.#learnedEpochs, gap) / this.#allowance;
  }

  /** Ends a try. @param unjudged its loss beyond what `gap` says, in epochs of the configured weights */
  endTry(gap: Estimate, unjudged: number): void {
    this.#lostBefore = this.#loss(this.#learnedEpochs, gap) + unjudged;
    this.#learnedEpochs = 0;
  }

  /**
   * Upper bound on the loss of `epochs` of the learned arm and of earlier tries, in epochs of the configured weights.
   */
  #loss(epochs: number, gap: Estimate): number {
    return this.#lostBefore + epochs * possibleLoss(gap);
  }

  get #allowance(): number {
    return this.#share * (this.#epochs + SLACK_EPOCHS);
  }
}

/** Share of its cost that an epoch of learned costs may lose, with an error of one in ten. */
export function possibleLoss({ mean, halfWidth }: Estimate): number {
  return Math.max(0, Math.expm1(mean + ONE_IN_TEN * halfWidth));
}
