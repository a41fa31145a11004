/** Weight that a play keeps with every later one, and how much unplayed arms attract (Garivier and Moulines 2011). */
const DISCOUNT = 0.97;
const EXPLORATION = 0.3;
/** How fast the middle that results are held against follows, and the largest reward. */
const FOLLOW = 0.2;
const MOST_REWARD = 1;

/** Discounted upper confidence bounds over a few arms, by results of which lower is better. Every arm is played once first. */
export class DiscountedBandit {
  readonly #counts: Float64Array;
  readonly #rewards: Float64Array;
  #middle: number | undefined;
  #arm = 0;

  constructor(arms: number) {
    this.#counts = new Float64Array(arms);
    this.#rewards = new Float64Array(arms);
  }

  /** The arm to play. */
  get arm(): number {
    return this.#arm;
  }

  /** The arm came to this. @returns the next one */
  played(result: number): number {
    this.#middle ??= result;
    const reward = Math.min(MOST_REWARD, Math.max(-MOST_REWARD, this.#middle - result));
    this.#middle += FOLLOW * (result - this.#middle);
    for (let arm = 0; arm < this.#counts.length; arm++) {
      this.#counts[arm]! *= DISCOUNT;
      this.#rewards[arm]! *= DISCOUNT;
    }
    this.#counts[this.#arm]! += 1;
    this.#rewards[this.#arm]! += reward;
    this.#arm = this.#best();
    return this.#arm;
  }

  #best(): number {
    const unplayed = this.#counts.indexOf(0);
    if (unplayed >= 0) return unplayed;
    const all = Math.log1p(this.#counts.reduce((sum, count) => sum + count, 0));
    const bounds = Array.from(this.#counts, (count, arm) => {
      return this.#rewards[arm]! / count + EXPLORATION * Math.sqrt(all / count);
    });
    return bounds.indexOf(Math.max(...bounds));
  }
}
