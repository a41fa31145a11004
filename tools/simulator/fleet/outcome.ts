import type { SessionCounts } from '../../../src/core/session-ledger.js';
import type { LearnerSample } from './learner.js';

/** Outcome of one request. Times are the client's, in milliseconds. */
export interface RequestOutcome {
  readonly part: number;
  readonly session: number;
  readonly arrivalMs: number;
  readonly status: 'served' | 'rejected' | 'failed' | 'timeout';
  /** The endpoint that answered, -1 = none. */
  readonly endpoint: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Prompt tokens found in the engine's cache, and those that the picker expected there. */
  readonly cachedTokens: number;
  readonly expectedTokens: number;
  /** Tokens of the found ones that came back from a tier below the GPU. */
  readonly loadedTokens: number;
  readonly ttftMs: number;
  /** Mean time between two tokens; 0 when there was only one. */
  readonly tpotMs: number;
  readonly e2eMs: number;
  readonly attempts: number;
  /** Number of the client of a fixed number of them; -1 = none. */
  readonly client: number;
  /** Milliseconds that it waited in the picker's queues. */
  readonly heldMs: number;
  /**
   * Milliseconds of thought of the client before it, and milliseconds that it would take alone with its session's
   * cache.
   */
  readonly thinkMs: number;
  readonly aloneMs: number;
}

/** Results of one run. */
export interface RunOutcome {
  /** In the order in which they ended. */
  readonly requests: readonly RequestOutcome[];
  readonly preemptions: number;
  readonly steps: number;
  /** Milliseconds of computing, per endpoint. */
  readonly busyMs: readonly number[];
  readonly endMs: number;
  /** Number of clients of fixed numbers of them. */
  readonly clients: number;
  readonly decisions: number;
  /** Of the first picker; undefined when it learns nothing. */
  readonly learning: readonly LearnerSample[] | undefined;
  /** Turns that were sent to an endpoint, and the sessions that they belong to. */
  readonly placed: { readonly turns: number; readonly sessions: number };
  /** Sessions by the counts of all pickers; undefined = they do not count them. */
  readonly sessions: SessionCounts | undefined;
  readonly transitions:
    | readonly { readonly timeMs: number; readonly to: string; readonly reason: string }[]
    | undefined;
}
