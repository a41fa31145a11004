import type { TierPrices } from '../contract/block-place.js';
import { CORE } from '../core/core-names.js';
import type { TrainingSample } from '../core/training-sample.js';
import { atMost, type LowerTokens, pricedTokens, tokensBelow } from './tier-costs.js';

/** Prompt tokens that an endpoint computes, and those that it loads from below the GPU. */
export interface Work {
  readonly computed: number;
  readonly loaded: LowerTokens;
}

/**
 * Work on a prompt: as reported by the engine, or estimated from the index by its reliability.
 * @param prices those of blocks below the GPU at the decision
 */
export function workOf(sample: TrainingSample, reliability: number, prices: TierPrices): Work {
  const { promptTokens, uncachedTokens, cachedTokens, reportedPromptTokens } = sample;
  const below = tokensBelow(sample);
  if (cachedTokens !== undefined && reportedPromptTokens) {
    const computed = promptTokens * Math.max(0, 1 - cachedTokens / reportedPromptTokens);
    return { computed, loaded: atMost(below, promptTokens - computed) };
  }
  const held = promptTokens - uncachedTokens + pricedTokens(below, prices);
  const computed = Math.max(0, promptTokens - reliability * held);
  return { computed, loaded: atMost(below, promptTokens - computed) };
}

/** Whether the engine has told what it had to compute, or the index promised nothing that it could lack. */
export function isConfirmed({ cachedTokens, promptTokens, uncachedTokens }: TrainingSample): boolean {
  return cachedTokens !== undefined || uncachedTokens === promptTokens;
}

/** Whether the time to the first output holds a wait for memory, which is no work of prefill. */
export function hasWaitedForMemory({ waiting = 0, kvUsage = 0 }: TrainingSample): boolean {
  return waiting > 0 && kvUsage > CORE.MEMORY_FULL_FROM;
}

/** Inputs linear in (θ0, c, w): one, thousands of tokens to prefill, requests waiting. */
export function firstOutputInputs(sample: TrainingSample, speed: number, uncached: number): number[] {
  return [speed, (speed * (sample.prefillTokens + uncached)) / 1000, speed * (sample.waiting ?? 0)];
}
