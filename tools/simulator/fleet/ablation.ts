import { AnchoredRidge } from '../../../src/adaptation/ridge.js';
import type { Coefficients } from '../../../src/core/coefficients.js';
import { CORE } from '../../../src/core/core-names.js';
import type { TrainingSample } from '../../../src/core/training-sample.js';
import { PlainLeastSquares } from './plain-least-squares.js';
import type { RandomStream } from './random-stream.js';
import { WeightSearch } from './weight-search.js';

/** Adjustment between the learner and the decisions of one picker. */
export interface Alteration {
  /** Takes a sample before the learner does. */
  note(sample: TrainingSample, speed: number): void;
  adjust(learned: Coefficients): Coefficients;
}

/** Learned costs of which something is taken away or done otherwise, to see what it is worth. */
export interface Ablation {
  /** Whether decisions do not know how busy endpoints are with prefill: no 1/(1 - ρ). */
  readonly hidesPrefillRate?: boolean;
  /** Whether decisions do not know how full KV caches are: a miss is no dearer where memory is scarce. */
  readonly hidesKvUsage?: boolean;
  /** Whether all endpoints count as equally fast. */
  readonly ignoresSpeed?: boolean;
  /** Share of the requests that are sent to a random endpoint. */
  readonly explores?: number;
  /** Makes the alteration of each picker's training samples. */
  readonly alter?: (random: RandomStream) => Alteration;
}

/** Small enough to say nothing, and still a coefficient that the core accepts. */
const NEXT_TO_NOTHING = 1e-6;
/** Output tokens of an answer in which a stall of one token has no weight. */
const ENDLESS = 1e9;

/** An alteration that has no state. */
function adjusted(adjust: (learned: Coefficients) => Coefficients): () => Alteration {
  return () => ({ note: () => {}, adjust });
}

/** Coefficients of the request's own wait and prefill alone: without its cost for other requests. */
function selfish(learned: Coefficients): Coefficients {
  return { ...learned, missPrice: 1, stepMs: NEXT_TO_NOTHING, growthMs: NEXT_TO_NOTHING, outputTokens: ENDLESS };
}

/** Learned costs without the growth of steps by load. */
export const withoutDecode: Ablation = { alter: adjusted((learned) => ({ ...learned, growthMs: NEXT_TO_NOTHING })) };

/** The shortest expected time to first token, by the learned model: Mooncake's rule with what was learned. */
export const shortestFirstToken: Ablation = { hidesPrefillRate: true, hidesKvUsage: true, alter: adjusted(selfish) };

/**
 * GORGO (arXiv 2602.11688): uncached and queued tokens, linearly, with weights found by an evolution strategy over
 * the 95th percentile of the time to first token. Only the proportion of the two decides where no endpoint is farther
 * away than another, so one number is searched.
 */
export const evolvedWeights: Ablation = {
  hidesPrefillRate: true,
  hidesKvUsage: true,
  ignoresSpeed: true,
  alter: (random) => {
    const search = new WeightSearch(random);
    return {
      note: ({ firstOutputMs }) => {
        if (firstOutputMs !== undefined) search.note(firstOutputMs);
      },
      adjust: (learned) => ({ ...selfish(learned), waitingMs: 0, missPrice: search.value }),
    };
  },
};

/** Own tokens and tokens ahead have prices of their own, learned side by side. */
export const untied: Ablation = { alter: () => new UntiedPrices() };

/** As in the cost model: what is assumed of a nuisance term, and predictions below this count as this. */
const NUISANCE = 50 / 200 ** 2;
const FLOOR_MS = 20;
const FORGET = 0.9995;
const USUAL_PREFILL_MS = 55;

class UntiedPrices implements Alteration {
  readonly #ridge = new AnchoredRidge(
    [
      { prior: 25, low: 0, high: 500, anchor: NUISANCE },
      price(),
      price(),
      { prior: 5, low: 0, high: 30, anchor: NUISANCE },
    ],
    FLOOR_MS,
  );

  note(sample: TrainingSample, speed: number): void {
    const { firstOutputMs, promptTokens, cachedTokens, prefillTokens, waiting } = sample;
    if (sample.outcome !== 'completed' || firstOutputMs === undefined || cachedTokens === undefined) return;
    const own = Math.max(0, promptTokens - cachedTokens) / 1e3;
    this.#ridge.learn(
      [speed, (speed * prefillTokens) / 1e3, speed * own, speed * (waiting ?? 0)],
      firstOutputMs,
      FORGET,
    );
  }

  /** The core has one price, and a factor on the request's own tokens: their product is the second price. */
  adjust(learned: Coefficients): Coefficients {
    const [baseMs, ahead, own, waitingMs] = this.#ridge.theta;
    const missPrice = (learned.missPrice * own!) / ahead!;
    return { ...learned, baseMs: baseMs!, prefillMsPerKiloToken: ahead!, waitingMs: waitingMs!, missPrice };
  }
}

function price() {
  return { ...within(USUAL_PREFILL_MS, 10), anchor: 1 / USUAL_PREFILL_MS ** 2 };
}

function within(prior: number, factor: number) {
  return { prior, low: prior / factor, high: prior * factor };
}

/** The same coefficients by plain recursive least squares, cut to the same bounds. */
export const plainLeastSquares: Ablation = { alter: () => new PlainCosts() };

/** As in the cost model: the least output that tells a pace. */
const OUTPUT_MIN = 8;
const BUSY_MAX = 0.9;
const PACE_FLOOR_MS = 5;

class PlainCosts implements Alteration {
  readonly #first = new PlainLeastSquares(
    [{ prior: 25, low: 0, high: 500 }, within(USUAL_PREFILL_MS, 10), { prior: 5, low: 0, high: 30 }],
    FLOOR_MS,
    FORGET,
  );
  readonly #pace = new PlainLeastSquares([within(13, 5), within(4, 8)], PACE_FLOOR_MS, FORGET);
  #outputTokens = 200;

  note(sample: TrainingSample, speed: number): void {
    const { firstOutputMs, perTokenMs, promptTokens, cachedTokens, prefillTokens, waiting, outputTokens } = sample;
    if (sample.outcome !== 'completed' || firstOutputMs === undefined || cachedTokens === undefined) return;
    const work = (prefillTokens + Math.max(0, promptTokens - cachedTokens)) / 1e3;
    this.#first.learn([speed, speed * work, speed * (waiting ?? 0)], firstOutputMs);
    if (perTokenMs === undefined || outputTokens === undefined || outputTokens < OUTPUT_MIN) return;
    this.#outputTokens += (outputTokens - this.#outputTokens) / 200;
    const busy = Math.min(BUSY_MAX, (speed * this.#first.theta[1]! * sample.prefillRate) / 1e3);
    const scale = speed / (1 - busy);
    this.#pace.learn([scale, scale * this.#load(sample)], perTokenMs);
  }

  /** K, as the mean of its values at the decision and at the end. */
  #load(sample: TrainingSample): number {
    const each = this.#outputTokens / 2 + CORE.SLOT_TOKENS;
    const before = sample.promptTokensInFlight + sample.promptTokens + (sample.inflight + 1) * each;
    const after = sample.promptTokensAtEnd + sample.inflightAtEnd * each;
    return (before + after) / 2 / CORE.KV_TOKENS;
  }

  adjust(learned: Coefficients): Coefficients {
    const [baseMs, prefillMsPerKiloToken, waitingMs] = this.#first.theta;
    const [stepMs, growthMs] = this.#pace.theta;
    return {
      ...learned,
      baseMs: baseMs!,
      prefillMsPerKiloToken: prefillMsPerKiloToken!,
      waitingMs: waitingMs!,
      stepMs: stepMs!,
      growthMs: growthMs!,
    };
  }
}
