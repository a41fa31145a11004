/** Who decides: the configured weights, or the learned costs. */
export type Arm = 'static' | 'learned';

/** What one arm's epochs came to: their number, and mean and half width of the confidence interval of ln(cost/reference). */
export interface ArmRecord {
  readonly epochs: number;
  readonly mean: number;
  readonly halfWidth: number;
}

/** Later epochs count more; `epochs` is the plain number. */
interface Sums {
  epochs: number;
  count: number;
  sum: number;
  squares: number;
}

interface Epoch {
  readonly number: number;
  readonly arm: Arm;
  /** Requests that were decided before this are burn-in: they met what the other arm had left behind. */
  readonly countsFromMs: number;
  endMs: number;
  requests: number;
  cost: number;
  reference: number;
}

/** Weight that an epoch keeps with every later one. */
const FADE = 0.98;
/** Open epochs that are kept; the oldest is judged by what it has. */
const MOST_OPEN = 64;
/** An epoch with fewer requests says nothing. */
const LEAST_REQUESTS = 20;
/** Variance that is assumed of an epoch's result, and how many epochs that assumption is worth (measured: sd 0.03 … 0.26). */
const USUAL_VARIANCE = 0.04;
const USUAL_EPOCHS = 2;

/**
 * The results of epochs in which one arm decided everything. Requests belong to the epoch in which they were decided,
 * however late they end. An epoch's result is ln(mean cost/mean reference), which takes out what its requests were.
 */
export class EpochRecords {
  readonly #open: Epoch[] = [];
  readonly #sums: Record<Arm, Sums> = { static: noSums(), learned: noSums() };

  begin(number: number, arm: Arm, countsFromMs: number): void {
    this.#open.push({ number, arm, countsFromMs, endMs: Number.POSITIVE_INFINITY, requests: 0, cost: 0, reference: 0 });
    if (this.#open.length > MOST_OPEN) this.#judge(this.#open.shift()!);
  }

  end(number: number, nowMs: number): void {
    const epoch = this.#open.find((each) => each.number === number);
    if (epoch !== undefined) epoch.endMs = nowMs;
  }

  /** A request of an epoch came to this cost; epochs that have been judged already take no more. */
  note(number: number, decidedAtMs: number, cost: number, reference: number): void {
    const epoch = this.#open.find((each) => each.number === number);
    if (epoch === undefined || decidedAtMs < epoch.countsFromMs) return;
    epoch.requests++;
    epoch.cost += cost;
    epoch.reference += reference;
  }

  /** Judge what ended before `endedBeforeMs`: their late requests have come in by now. */
  judge(endedBeforeMs: number): void {
    while (this.#open.length > 0 && this.#open[0]!.endMs < endedBeforeMs) this.#judge(this.#open.shift()!);
  }

  of(arm: Arm): ArmRecord {
    const { epochs, count, sum, squares } = this.#sums[arm];
    const mean = count === 0 ? 0 : sum / count;
    const variance = count === 0 ? USUAL_VARIANCE : Math.max(0, squares / count - mean * mean);
    const shrunk = (count * variance + USUAL_EPOCHS * USUAL_VARIANCE) / (count + USUAL_EPOCHS);
    return { epochs, mean, halfWidth: 2 * Math.sqrt(shrunk / Math.max(count, 1)) };
  }

  /** Forget the arm's results: what it stands for has changed. Its open epochs are dropped. */
  forget(arm: Arm): void {
    this.#sums[arm] = noSums();
    for (let i = this.#open.length - 1; i >= 0; i--) if (this.#open[i]!.arm === arm) this.#open.splice(i, 1);
  }

  #judge({ arm, requests, cost, reference }: Epoch): void {
    if (requests < LEAST_REQUESTS || !(cost > 0) || !(reference > 0)) return;
    const result = Math.log(cost / reference);
    for (const each of Object.values(this.#sums)) {
      each.count *= FADE;
      each.sum *= FADE;
      each.squares *= FADE;
    }
    const own = this.#sums[arm];
    own.epochs++;
    own.count++;
    own.sum += result;
    own.squares += result * result;
  }
}

function noSums(): Sums {
  return { epochs: 0, count: 0, sum: 0, squares: 0 };
}
