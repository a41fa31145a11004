interface Played {
  count: number;
  sum: number;
}

/** Weight that an epoch keeps with every later one. */
const KEPT = 0.97;
/** How much a rule that was seldom played is given the benefit of the doubt. */
const CURIOSITY = 0.3;
/** How fast the result that rewards are measured against follows. */
const FOLLOW = 0.2;

/** What is known of a rule: epochs that it decided, older ones counting less, and its mean reward. */
export interface RuleRecord {
  readonly epochs: number;
  readonly reward: number;
}

/**
 * Chooses one of a few rules for every epoch by what it came to of late: discounted upper confidence bounds (Garivier and
 * Moulines 2008, 0805.3415). The reward of an epoch is how far its ln(cost/reference) lies below that of the epochs before.
 */
export class RuleChoice {
  readonly #played: readonly Played[];
  /** Rules whose first epoch has begun, be it judged or not. */
  readonly #tried = new Set<number>();
  #usual: number | undefined;

  constructor(rules: number) {
    this.#played = Array.from({ length: rules }, () => ({ count: 0, sum: 0 }));
  }

  get records(): readonly RuleRecord[] {
    return this.#played.map(({ count, sum }) => ({ epochs: count, reward: count === 0 ? 0 : sum / count }));
  }

  /** Number of the rule for the next epoch: first each once, then the one that may be the best. */
  choose(): number {
    const untried = this.#played.findIndex((_, rule) => !this.#tried.has(rule));
    if (untried >= 0) {
      this.#tried.add(untried);
      return untried;
    }
    const all = this.#played.reduce((sum, { count }) => sum + count, 0);
    // A rule that was tried and not judged yet has nothing to show.
    const promise = this.#played.map(({ count, sum }) =>
      count === 0 ? Number.NEGATIVE_INFINITY : sum / count + CURIOSITY * Math.sqrt(Math.log(1 + all) / count),
    );
    return Math.max(0, promise.indexOf(Math.max(...promise)));
  }

  /** An epoch of a rule came to this ln(cost/reference). */
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
