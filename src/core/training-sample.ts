import { CORE } from './core-names.js';

/** Ends of a request, by their numbers in the core. */
export const OUTCOMES = {
  completed: CORE.OUTCOME_COMPLETED,
  failed: CORE.OUTCOME_FAILED,
  refused: CORE.OUTCOME_REFUSED,
  aborted: CORE.OUTCOME_ABORTED,
  diverted: CORE.OUTCOME_DIVERTED,
} as const;
/**
 * completed: a good answer to its end · failed: the endpoint answered 5xx · refused: another answer that is no success ·
 * aborted: the stream ended before the answer did · diverted: another endpoint than the charged one answered
 */
export type Outcome = keyof typeof OUTCOMES;

/** An unknown count in shared memory. */
export const UNKNOWN_COUNT = 0xffff_ffff;

/** What was measured of one request. */
export interface Measures {
  readonly outcome: Outcome;
  /** Milliseconds from the decision to the first output; undefined when none came or the answer was not streamed. */
  readonly firstOutputMs: number | undefined;
  /** Milliseconds per output token after the first; undefined when there were not two. */
  readonly perTokenMs: number | undefined;
  /** Milliseconds from the decision to the end. */
  readonly durationMs: number;
  /** As the engine reported them; output tokens may be counted events instead. */
  readonly outputTokens: number | undefined;
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  /** Other endpoints worked for the request before this one answered it: the first output is not its work alone. */
  readonly staged?: boolean;
}

/** One finished request: what was known when it was decided, before it was charged itself, and what came of it. */
export interface TrainingSample {
  /** Milliseconds of the pool clock at the decision. */
  timeMs: number;
  slot: number;
  /** The use of the slot that was decided for: compare it with the slot's generation now. */
  slotGeneration: number;
  priority: number;
  profile: number;
  /** Tag of the program that decided (ProgramOptions.tag). */
  tag: number;
  /** Low and high half of the hash of the target model: equal models, equal halves. */
  modelLow: number;
  modelHigh: number;
  /** Tokens of the prompt, those that the endpoint was not thought to hold, and most that any candidate held. */
  promptTokens: number;
  uncachedTokens: number;
  bestCachedTokens: number;
  /** On the endpoint at the decision: requests, uncached tokens without first output, prompt tokens, all in flight. */
  inflight: number;
  prefillTokens: number;
  promptTokensInFlight: number;
  /** As scraped; undefined when unknown. */
  waiting: number | undefined;
  running: number | undefined;
  kvUsage: number | undefined;
  /** Uncached tokens per millisecond that were sent there, decaying over PREFILL_RATE_MS. */
  prefillRate: number;
  activeBlocks: number;
  /** Slot that marginal cost would have picked; undefined when the program did not ask. */
  wouldPick: number | undefined;
  outcome: Outcome;
  firstOutputMs: number | undefined;
  perTokenMs: number | undefined;
  durationMs: number;
  outputTokens: number | undefined;
  reportedPromptTokens: number | undefined;
  cachedTokens: number | undefined;
  /** Other endpoints worked for the request before this one answered it. */
  staged: boolean;
  /** Requests and prompt tokens in flight on the endpoint when the request ended, itself included. */
  inflightAtEnd: number;
  promptTokensAtEnd: number;
}
