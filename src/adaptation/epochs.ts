import type { Arm, EpochResult } from './comparison.js';
import type { RequestCost } from './request-cost.js';
import { Window } from './window.js';

/** A finished epoch with its number. */
export interface JudgedEpoch extends EpochResult {
  readonly number: number;
  /** Requests that were noted. */
  readonly noted: number;
}

interface Epoch {
  readonly number: number;
  readonly arm: Arm;
  /** End of the burn-in: earlier requests met the effects of the other arm. */
  readonly countsFromMs: number;
  endMs: number;
  requests: number;
  cost: number;
  reference: number;
  /** Load of the noted requests, scaled up to all requests. */
  promptTokens: number;
  load: number;
  /** Noted requests with latency targets of their own, and those of them that met theirs. */
  aimed: number;
  met: number;
  /** Sums of the requests by the slice of time of their decision. */
  readonly slices: Map<number, Sums>;
  /** Milliseconds of the latest requests: to the first output, and per output token. */
  readonly firstOutputs: Window;
  readonly tokenTimes: Window;
  /** Sums with the burn-in. */
  readonly all: Sums;
}

interface Sums {
  requests: number;
  cost: number;
  reference: number;
}

/** ln(mean cost/mean reference) of the requests of an open epoch that have ended, and its possible random error. */
export interface CostSoFar {
  readonly mean: number;
  readonly error: number;
}

/** Bound on the open epochs; beyond it the oldest one is judged early. */
const OPEN_MAX = 64;
/** Times of an epoch that are kept, and the fewest that have a 99th percentile. */
const TIMES_MAX = 1024;
const TIMES_MIN = 100;
/** Minimum of the requests of a valid epoch. */
const REQUESTS_MIN = 20;
/** Length of a slice: requests that are decided together meet the same queues, and are one observation. */
const SLICE_MS = 2000;
/** Minimum of the slices that tell how much results vary. */
const SLICES_MIN = 4;
/** Twice the standard deviation of ln(cost/reference) of single requests (measured with the simulator: 0.3 … 1). */
const TWO_DEVIATIONS = 2;

/**
 * Open epochs, each with one arm. A request belongs to the epoch of its decision, however late it ends. The result of
 * an epoch is ln(mean cost/mean reference), which takes out the differences between its requests.
 */
export class OpenEpochs {
  readonly #open: Epoch[] = [];

  /** @returns the epoch that was judged early because too many are open */
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
      load: 0,
      aimed: 0,
      met: 0,
      slices: new Map(),
      firstOutputs: new Window(TIMES_MAX),
      tokenTimes: new Window(TIMES_MAX),
      all: noSums(),
    });
    return this.#open.length > OPEN_MAX ? resultOf(this.#open.shift()!) : undefined;
  }

  end(number: number, nowMs: number): void {
    const epoch = this.#find(number);
    if (epoch !== undefined) epoch.endMs = nowMs;
  }

  /**
   * Adds a finished request to its epoch, unless the epoch has been judged.
   * @param standsFor requests that this sample stands for
   */
  note(number: number, decidedAtMs: number, request: RequestCost, standsFor = 1): void {
    const { cost, reference, promptTokens, firstOutputMs, perTokenMs, targetsMet } = request;
    const epoch = this.#find(number);
    if (epoch === undefined) return;
    add(epoch.all, request);
    if (decidedAtMs < epoch.countsFromMs) return;
    add(sliceOf(epoch, decidedAtMs), request);
    epoch.requests++;
    epoch.cost += cost;
    epoch.reference += reference;
    epoch.promptTokens += promptTokens * standsFor;
    epoch.load += standsFor;
    if (targetsMet !== undefined) epoch.aimed++;
    if (targetsMet === true) epoch.met++;
    if (firstOutputMs !== undefined) epoch.firstOutputs.add(firstOutputMs);
    if (perTokenMs !== undefined) epoch.tokenTimes.add(perTokenMs);
  }

  /** Results of the epochs that ended before `endedBeforeMs`, whose late requests have arrived. */
  judge(endedBeforeMs: number): readonly JudgedEpoch[] {
    const results: JudgedEpoch[] = [];
    while (this.#open.length > 0 && this.#open[0]!.endMs < endedBeforeMs) {
      const result = resultOf(this.#open.shift()!);
      if (result !== undefined) results.push(result);
    }
    return results;
  }

  has(arm: Arm): boolean {
    return this.count(arm) > 0;
  }

  /** Epochs of an arm that have not been judged. */
  count(arm: Arm): number {
    return this.#open.filter((epoch) => epoch.arm === arm).length;
  }

  /**
   * The highest ln(mean cost/mean reference) so far of an arm's epochs, each less its possible random error.
   * @param deviation standard deviation of the results of epochs
   */
  worstSoFar(arm: Arm, deviation: number): number {
    let worst = Number.NEGATIVE_INFINITY;
    for (const { arm: own, all } of this.#open) {
      if (own !== arm || all.requests < REQUESTS_MIN || !(all.reference > 0)) continue;
      worst = Math.max(worst, Math.log(all.cost / all.reference) - errorOf(all.requests, deviation));
    }
    return worst;
  }

  /**
   * Cost so far of an epoch that has not been judged, without its burn-in; infinite error: too few have ended.
   * @param deviation as above
   */
  costSoFar(number: number, deviation: number): CostSoFar | undefined {
    const epoch = this.#find(number);
    if (epoch === undefined) return undefined;
    const { requests, cost, reference } = epoch;
    if (requests < REQUESTS_MIN || !(cost > 0) || !(reference > 0)) return { mean: 0, error: Number.POSITIVE_INFINITY };
    return { mean: Math.log(cost / reference), error: errorOf(requests, deviation) };
  }

  /** Drops an arm's epochs after a change of what it stands for. */
  forget(arm: Arm): void {
    for (let i = this.#open.length - 1; i >= 0; i--) if (this.#open[i]!.arm === arm) this.#open.splice(i, 1);
  }

  #find(number: number): Epoch | undefined {
    return this.#open.find((each) => each.number === number);
  }
}

function noSums(): Sums {
  return { requests: 0, cost: 0, reference: 0 };
}

function add(sums: Sums, { cost, reference }: RequestCost): void {
  sums.requests++;
  sums.cost += cost;
  sums.reference += reference;
}

function sliceOf({ slices, countsFromMs }: Epoch, decidedAtMs: number): Sums {
  const number = Math.floor((decidedAtMs - countsFromMs) / SLICE_MS);
  const slice = slices.get(number) ?? noSums();
  slices.set(number, slice);
  return slice;
}

/**
 * Possible random error of ln(mean cost/mean reference): that of so many requests by themselves, or what epochs differ
 * by, whichever is more. Requests that come in bursts are not by themselves.
 */
export function errorOf(requests: number, deviation: number): number {
  return Math.max(TWO_DEVIATIONS / Math.sqrt(requests), 2 * deviation);
}

function resultOf(epoch: Epoch): JudgedEpoch | undefined {
  const { number, arm, requests, cost, reference, promptTokens, load, countsFromMs, endMs } = epoch;
  const seconds = (endMs - countsFromMs) / 1000;
  if (requests < REQUESTS_MIN || !(cost > 0) || !(reference > 0) || !(promptTokens > 0)) return undefined;
  if (!(seconds > 0) || !Number.isFinite(seconds)) return undefined;
  return {
    number,
    arm,
    result: Math.log(cost / reference),
    noted: requests,
    promptTokens: promptTokens / seconds,
    requests: load / seconds,
    deviation: deviationOf(epoch),
    tail: tailOf(epoch.firstOutputs),
    tokenTail: tailOf(epoch.tokenTimes),
    shortfall: shortfallOf(epoch),
  };
}

/** Standard deviation of ln(mean cost/mean reference), by how much the slices of the epoch differ (batch means). */
function deviationOf({ slices, cost, reference }: Epoch): number | undefined {
  const count = slices.size;
  if (count < SLICES_MIN) return undefined;
  let squares = 0;
  for (const slice of slices.values()) squares += (slice.cost - (cost / reference) * slice.reference) ** 2;
  return Math.sqrt((squares * count) / (count - 1)) / cost;
}

/**
 * ln(1/goodput), where at least half of the requests came with targets. Half a request is taken to have met its own, so
 * that an epoch in which none did has a finite result.
 */
function shortfallOf({ requests, aimed, met }: Epoch): number | undefined {
  if (aimed < REQUESTS_MIN || 2 * aimed < requests) return undefined;
  return Math.log((aimed + 0.5) / (met + 0.5));
}

function tailOf(times: Window): number | undefined {
  if (times.count < TIMES_MIN) return undefined;
  return Math.log(Math.max(1, times.quantile(0.99)!));
}
