interface Played {
  count: number;
  sum: number;
}

/** Factor on the weight of an epoch per later epoch. */
const KEPT = 0.97;
/** Weight of the uncertainty bonus of a rarely chosen rule. */
const CURIOSITY = 0.3;
/** Step of the running mean from which rewards are measured. */
const FOLLOW = 0.2;

/** State of a rule: number of its epochs, older ones counting less, and their mean reward. */
export interface RuleRecord {
  readonly epochs: number;
  readonly reward: number;
}

/**
 * Chooses one of a few rules for every epoch by its recent results: discounted upper confidence bounds (Garivier and
 * Moulines 2008, 0805.3415). The reward of an epoch is how far its ln(cost/reference) lies below that of the previous
 * epochs.
 */
export class RuleChoice {
  readonly #played: readonly Played[];
  /** Rules whose first epoch has begun. */
  readonly #tried = new Set<number>();
  #usual: number | undefined;

  constructor(rules: number) {
    this.#played = Array.from({ length: rules }, () => ({ count: 0, sum: 0 }));
  }

  get records(): readonly RuleRecord[] {
    return this.#played.map(({ count, sum }) => ({ epochs: count, reward: count === 0 ? 0 : sum / count }));
  }

  /** Number of the rule for the next epoch: first each rule once, then the one with the highest upper bound. */
  choose(): number {
    const untried = this.#played.findIndex((_, rule) => !this.#tried.has(rule));
    if (untried >= 0) {
      this.#tried.add(untried);
      return untried;
    }
    const all = this.#played.reduce((sum, { count }) => sum + count, 0);
    // A rule without a judged epoch has no value yet.
    const promise = this.#played.map(({ count, sum }) =>
      count === 0 ? Number.NEGATIVE_INFINITY : sum / count + CURIOSITY * Math.sqrt(Math.log(1 + all) / count),
    );
    return Math.max(0, promise.indexOf(Math.max(...promise)));
  }

  /** Adds the ln(cost/reference) of an epoch of a rule. */
  note(rule: number, result: number): void {
    const played = this.#played[rule];
    if (played === undefined || !Number.isFinite(result)) return;
    const reward = Math.min(1, Math.max(-1, (this.#usual ?? result) - result));
    this.#usual = (this.#usual ?? result) + FOLLOW * (result - (this.#usual ?? result));
    for (const each of this.#played) {
      each.count *= KEPT;
      each.sum *= KEPT;
    }
    this.#tried.add(rule);
    played.count += 1;
    played.sum += reward;
  }
}
