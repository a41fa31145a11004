import type { StepConstants } from './step-time.js';

/** Properties of an engine that every deployment knows, enough to begin with. */
export interface EngineRecipe {
  /** Milliseconds of one token of a lone request with a short context. */
  readonly tokenMs: number;
  /** Prompt tokens per second at full chunks. */
  readonly promptTokensPerSecond: number;
  /**
   * Bytes of one token in the KV cache, over all layers and GPUs: layers × 2 × KV heads × head size × bytes of a
   * number.
   */
  readonly kvBytesPerToken: number;
  /** Memory bandwidth of all its GPUs together, in GB/s. */
  readonly bandwidthGBs: number;
}

/** Milliseconds of scheduling and launching in a step of vLLM. */
const OVERHEAD_MS = 1;
/**
 * Sharpness of the bend between reading weights and computing tokens, and slowdown of decoding beside prompts: medians
 * of the fits in hardware.ts.
 */
const POWER = 2.75;
const MIXED = 1.7;

/**
 * Constants of a step from three numbers: the weights are read once for a lone token, a full chunk computes at the rate
 * of the prompt, and a decoding sequence reads its whole context: KV bytes per token ÷ bandwidth.
 */
export function recipeConstants(recipe: EngineRecipe): StepConstants {
  const { tokenMs, promptTokensPerSecond, kvBytesPerToken, bandwidthGBs } = recipe;
  return {
    weightsMs: Math.max(0.01, tokenMs - OVERHEAD_MS),
    tokenUs: 1e6 / promptTokensPerSecond,
    power: POWER,
    reduceMs: 0,
    reduceTokenUs: 0,
    prefillTokenUs: 0,
    prefillPairNs: 0,
    decodeSequenceUs: 0,
    decodeTokenNs: kvBytesPerToken / bandwidthGBs,
    mixed: MIXED,
    rowsMs: 0,
    rowUs: 0,
    overheadMs: Math.min(OVERHEAD_MS, tokenMs),
  };
}
