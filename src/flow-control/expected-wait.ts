import { type Band, weightOf } from './band.js';
import type { FlowTable } from './flow-table.js';
import { NONE } from './request-slab.js';

/**
 * Retry-After: a margin over the expected wait and up to a fifth of jitter, within bounds
 * (docs/internals/flow-control.md).
 */
const RETRY_MARGIN = 1.3;
const RETRY_JITTER = 0.2;
const RETRY_SECONDS_MAX = 60;

/**
 * Tokens that are served before a new request of a flow (`flow` = NONE: a new flow with the name `id`). Among fair
 * flows these are the tokens of its own flow and at most as many of each other flow.
 */
export function tokensAhead(band: Band, flows: FlowTable, flow: number, id: string): number {
  if (band.fairness.oneLane) return band.tokens;
  const weight = weightOf(band.settings.fairness, id);
  const waits = flow !== NONE && flows.waiting[flow]! > 0;
  const own = waits ? flows.waitingTokens[flow]! : 0;
  const weights = band.activeWeight + (waits ? 0 : weight);
  return Math.min(band.tokens, (own * weights) / weight);
}

/** Milliseconds in which a band serves `tokens` tokens; undefined while its rate is unknown. */
export function drainMs(band: Band, tokens: number, nowMs: number): number | undefined {
  if (tokens === 0) return 0;
  band.drain.update(nowMs);
  const rate = band.drain.tokensPerSecond;
  return rate === undefined ? undefined : (tokens / rate) * 1000;
}

/**
 * Expected wait in milliseconds of a new request of a flow: the tokens before it, divided by the drain rate of its
 * band. Undefined while the rate is unknown.
 */
export function expectedWaitMs(
  band: Band,
  flows: FlowTable,
  flow: number,
  id: string,
  nowMs: number,
): number | undefined {
  if (band.waiting === 0) return 0;
  band.drain.update(nowMs);
  if (band.drain.tokensPerSecond === undefined) return undefined;
  return drainMs(band, tokensAhead(band, flows, flow, id), nowMs);
}

/** Retry-After of refused requests, with jitter, so that requests refused together do not return together. */
export class RetryAfter {
  #state: number;

  /** @param seed of the jitter */
  constructor(seed: number) {
    this.#state = seed | 1;
  }

  /** Whole seconds, 1 to 60; 1 when the wait is unknown. */
  seconds(waitMs: number | undefined): number {
    if (waitMs === undefined) return 1;
    const wait = RETRY_MARGIN * waitMs * (1 + RETRY_JITTER * this.#random());
    return Math.min(RETRY_SECONDS_MAX, Math.max(1, Math.ceil(wait / 1000)));
  }

  /** Xorshift (Marsaglia 2003), 0 to 1. */
  #random(): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) / 2 ** 32;
  }
}
