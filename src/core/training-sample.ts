import { CORE } from './core-names.js';

/** Outcomes of a request, by their numbers in the core. */
export const OUTCOMES = {
  completed: CORE.OUTCOME_COMPLETED,
  failed: CORE.OUTCOME_FAILED,
  refused: CORE.OUTCOME_REFUSED,
  aborted: CORE.OUTCOME_ABORTED,
  diverted: CORE.OUTCOME_DIVERTED,
} as const;
/**
 * completed: a complete successful answer · failed: the endpoint answered 5xx · refused: another unsuccessful answer ·
 * aborted: the stream ended before the answer did · diverted: another endpoint than the charged one answered
 */
export type Outcome = keyof typeof OUTCOMES;

/** An unknown count in shared memory. */
export const UNKNOWN_COUNT = 0xffff_ffff;

/** Measurements of one request. */
export interface Measures {
  readonly outcome: Outcome;
  /** Milliseconds from the decision to the first output; undefined without output or for an answer without stream. */
  readonly firstOutputMs: number | undefined;
  /** Milliseconds per output token after the first; undefined with fewer than two. */
  readonly perTokenMs: number | undefined;
  /** Milliseconds from the decision to the end. */
  readonly durationMs: number;
  /** As reported by the engine; output tokens may be counted events instead. */
  readonly outputTokens: number | undefined;
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  /**
   * Whether other endpoints worked for the request first, so that the first output is not the work of this one alone.
   */
  readonly staged?: boolean;
  /** Whether the answer met the request's own latency targets; undefined = there were none, or it cannot be said. */
  readonly targetsMet?: boolean | undefined;
}

/** One finished request: the facts known at the decision, without its own charge, and the measurements. */
export interface TrainingSample {
  /** Milliseconds of the pool clock at the decision. */
  timeMs: number;
  slot: number;
  /** Generation of the slot at the decision, to compare with the slot's present one. */
  slotGeneration: number;
  priority: number;
  profile: number;
  /** Tag of the program that decided (ProgramOptions.tag). */
  tag: number;
  /** Low and high half of the hash of the target model; equal models have equal halves. */
  modelLow: number;
  modelHigh: number;
  /**
   * Tokens of the prompt, its uncached tokens on the endpoint, and the largest number of tokens that a candidate held.
   */
  promptTokens: number;
  uncachedTokens: number;
  bestCachedTokens: number;
  /** In flight on the endpoint at the decision: requests, uncached tokens without first output, prompt tokens. */
  inflight: number;
  prefillTokens: number;
  promptTokensInFlight: number;
  /** Scraped value; undefined = unknown. */
  waiting: number | undefined;
  running: number | undefined;
  kvUsage: number | undefined;
  /** Uncached tokens per millisecond sent to the endpoint, decaying over PREFILL_RATE_MS. */
  prefillRate: number;
  activeBlocks: number;
  /** Slot that marginal cost would have picked; undefined when the program did not compute it. */
  wouldPick: number | undefined;
  outcome: Outcome;
  firstOutputMs: number | undefined;
  perTokenMs: number | undefined;
  durationMs: number;
  outputTokens: number | undefined;
  reportedPromptTokens: number | undefined;
  cachedTokens: number | undefined;
  /** Whether other endpoints worked for the request before this one answered it. */
  staged: boolean;
  /** Whether the answer met the request's own latency targets; undefined = there were none, or it cannot be said. */
  targetsMet?: boolean | undefined;
  /** Tokens of the prompt that the endpoint held below the GPU; absent or 0 = none. */
  hostTokens?: number;
  diskTokens?: number;
  remoteTokens?: number;
  /** Whether a stream was to be seen and the request has ended without any output of it. */
  unheard?: boolean;
  /** Requests and prompt tokens in flight on the endpoint when the request ended, itself included. */
  inflightAtEnd: number;
  promptTokensAtEnd: number;
}
