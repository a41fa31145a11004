import type { Evidence } from '../../dist/src/adaptation/guard-rules.js';
import { defaultAdaptation } from '../../dist/src/config/adaptation.js';
import type { TrainingSample } from '../../dist/src/core/index.js';

export const usual = defaultAdaptation();

/** Evidence of a sound model on a pool with room, with which a guard may try learned costs. */
export const goodEvidence: Evidence = {
  samples: 1000,
  learningMs: 3_600_000,
  correlation: 0.8,
  bias: 0,
  sampledShare: 1,
  sound: true,
  overloadedMs: 0,
  durationMs: 2000,
  firstOutputMs: 100,
  sampleRate: 0.05,
};

/** A finished request on an idle endpoint, with whatever a test cares about. */
export function sample(given: Partial<TrainingSample> = {}): TrainingSample {
  return {
    timeMs: 0,
    slot: 0,
    slotGeneration: 1,
    priority: 0,
    profile: 0,
    tag: 1,
    modelLow: 0,
    modelHigh: 0,
    promptTokens: 1000,
    uncachedTokens: 1000,
    bestCachedTokens: 0,
    inflight: 0,
    prefillTokens: 0,
    promptTokensInFlight: 0,
    waiting: 0,
    running: 0,
    kvUsage: 0,
    prefillRate: 0,
    activeBlocks: 0,
    wouldPick: undefined,
    outcome: 'completed',
    firstOutputMs: 80,
    perTokenMs: 13,
    durationMs: 2680,
    outputTokens: 200,
    reportedPromptTokens: undefined,
    cachedTokens: undefined,
    inflightAtEnd: 1,
    promptTokensAtEnd: 1000,
    staged: false,
    ...given,
  };
}

/** Uniform in [0, 1), the same row for the same seed (Mulberry32). */
export function row(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What a pool of engines really costs. */
export interface World {
  readonly baseMs: number;
  readonly prefillMs: number;
  readonly stepMs: number;
  readonly growthMs: number;
  /** By slot; 1 when absent. */
  readonly speeds?: Readonly<Record<number, number>>;
  /** Further factor on times to first output. */
  readonly firstOutputSpeeds?: Readonly<Record<number, number>>;
  /** Standard deviation of the logarithm of the times, about. */
  readonly noise: number;
  readonly streamed?: boolean;
}

/** A request of random size in a random state, with the times that such a pool gives it. */
export function measured(world: World, random: () => number, given: Partial<TrainingSample> = {}): TrainingSample {
  const promptTokens = Math.round(100 + 8000 * random() ** 2);
  const uncachedTokens = random() < 0.5 ? promptTokens : Math.round(promptTokens * random());
  const inflight = Math.floor(random() * 20);
  const state = {
    slot: Math.floor(random() * 4),
    promptTokens,
    uncachedTokens,
    inflight,
    prefillTokens: Math.round(random() ** 3 * 20_000),
    promptTokensInFlight: inflight * 2000,
    ...given,
  };
  const outputTokens = given.outputTokens ?? 150 + Math.floor(random() * 100);
  const speed = world.speeds?.[state.slot] ?? 1;
  const error = () => Math.exp(world.noise * (random() + random() + random() - 1.5) * 2);
  const tokens = (promptTokens + state.promptTokensInFlight + (inflight + 1) * 230) / 1e5;
  const work = (state.prefillTokens + state.uncachedTokens) / 1000;
  const first = speed * (world.firstOutputSpeeds?.[state.slot] ?? 1);
  const firstOutputMs = first * (world.baseMs + world.prefillMs * work) * error();
  const perTokenMs = speed * (world.stepMs + world.growthMs * tokens) * error();
  const durationMs = firstOutputMs + (outputTokens - 1) * perTokenMs;
  const streamed = world.streamed ?? true;
  return sample({
    ...state,
    outputTokens,
    inflightAtEnd: inflight + 1,
    promptTokensAtEnd: state.promptTokensInFlight + promptTokens,
    firstOutputMs: streamed ? firstOutputMs : undefined,
    perTokenMs: streamed ? perTokenMs : undefined,
    durationMs,
  });
}
