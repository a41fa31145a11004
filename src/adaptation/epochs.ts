import type { Arm, EpochResult } from './comparison.js';
import type { RequestCost } from './request-cost.js';

/** An epoch that is over, by its number. */
export interface JudgedEpoch extends EpochResult {
  readonly number: number;
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
  promptTokens: number;
  /** Burn-in included. */
  readonly all: { requests: number; cost: number; reference: number };
}

/** Open epochs that are kept; the oldest is judged by what it has. */
const OPEN_MAX = 64;
/** An epoch with fewer requests says nothing. */
const REQUESTS_MIN = 20;
/** Twice the standard deviation of ln(cost/reference) of single requests (measured with the simulator: 0.3 … 1). */
const TWO_DEVIATIONS = 2;

/**
 * The epochs under way, in each of which one arm decides everything. Requests belong to the epoch in which they were decided,
 * however late they end. An epoch's result is ln(mean cost/mean reference), which takes out what its requests were.
 */
export class OpenEpochs {
  readonly #open: Epoch[] = [];

  /** @returns the epoch that had to be judged early, because there are too many */
  begin(number: number, arm: Arm, countsFromMs: number): JudgedEpoch | undefined {
    this.#open.push({
      number,
      arm,
      countsFromMs,
      endMs: Number.POSITIVE_INFINITY,
      requests: 0,
      cost: 0,
      reference: 0,
      promptTokens: 0,
      all: { requests: 0, cost: 0, reference: 0 },
    });
    return this.#open.length > OPEN_MAX ? resultOf(this.#open.shift()!) : undefined;
  }

  end(number: number, nowMs: number): void {
    const epoch = this.#find(number);
    if (epoch !== undefined) epoch.endMs = nowMs;
  }

  /** A request of an epoch came to this cost; epochs that have been judged already take no more. */
  note(number: number, decidedAtMs: number, { cost, reference, promptTokens }: RequestCost): void {
    const epoch = this.#find(number);
    if (epoch === undefined) return;
    epoch.all.requests++;
    epoch.all.cost += cost;
    epoch.all.reference += reference;
    if (decidedAtMs < epoch.countsFromMs) return;
    epoch.requests++;
    epoch.cost += cost;
    epoch.reference += reference;
    epoch.promptTokens += promptTokens;
  }

  /** Results of what ended before `endedBeforeMs`: their late requests have come in by now. */
  judge(endedBeforeMs: number): readonly JudgedEpoch[] {
    const results: JudgedEpoch[] = [];
    while (this.#open.length > 0 && this.#open[0]!.endMs < endedBeforeMs) {
      const result = resultOf(this.#open.shift()!);
      if (result !== undefined) results.push(result);
    }
    return results;
  }

  has(arm: Arm): boolean {
    return this.#open.some((epoch) => epoch.arm === arm);
  }

  /** The highest ln(mean cost/mean reference) so far of an arm's epochs, each less what chance may add to it. */
  worstSoFar(arm: Arm): number {
    let worst = Number.NEGATIVE_INFINITY;
    for (const { arm: own, all } of this.#open) {
      if (own !== arm || all.requests < REQUESTS_MIN || !(all.reference > 0)) continue;
      worst = Math.max(worst, Math.log(all.cost / all.reference) - TWO_DEVIATIONS / Math.sqrt(all.requests));
    }
    return worst;
  }

  /** Drop an arm's epochs: what it stands for has changed. */
  forget(arm: Arm): void {
    for (let i = this.#open.length - 1; i >= 0; i--) if (this.#open[i]!.arm === arm) this.#open.splice(i, 1);
  }

  #find(number: number): Epoch | undefined {
    return this.#open.find((each) => each.number === number);
  }
}

function resultOf(epoch: Epoch): JudgedEpoch | undefined {
  const { number, arm, requests, cost, reference, promptTokens, countsFromMs, endMs } = epoch;
  const seconds = (endMs - countsFromMs) / 1000;
  if (requests < REQUESTS_MIN || !(cost > 0) || !(reference > 0) || !(promptTokens > 0)) return undefined;
  if (!(seconds > 0) || !Number.isFinite(seconds)) return undefined;
  return {
    number,
    arm,
    result: Math.log(cost / reference),
    promptTokens: promptTokens / seconds,
    requests: requests / seconds,
  };
}
