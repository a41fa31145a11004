import { TOKEN_BYTES } from './prompt-sizes.js';

/** Bound on the models of a shard; the one that was longest without an answer leaves. */
const MODELS_MAX = 256;
/** A prompt of fewer estimated tokens is mostly the engine's template, and tells nothing of longer ones. */
const PROMPT_TOKENS_MIN = 32;
/** Estimated tokens above which a prompt counts no more than others. */
const PROMPT_WEIGHT_TOKENS = 4_096;
/** Estimated tokens that count as having had the ratio 1, before the first prompt. */
const PRIOR_TOKENS = 1_024;
/** Part of the sums that a prompt leaves: of the present ratio, the last 500 prompts have made two thirds. */
const KEPT = 1 - 1 / 500;
/** The ratio of one prompt counts within this factor of the present one. */
const FACTOR_MAX = 4;
/** Bounds of a ratio: a token of 1 to 40 bytes. */
const RATIO_MIN = 0.1;
const RATIO_MAX = 4;
/** A size of blocks gives way to the next one when the ratio is closer to that by so much of a token. */
const STAY_TOKENS = 0.1;

interface Model {
  /** Of past prompts, weighed: tokens by the estimate, and as the engine told. */
  estimated: number;
  told: number;
  blockTokens: number;
}

/**
 * Tokens of the model's own in one token of the estimate (TOKEN_BYTES bytes), by model, learned from the engines'
 * `usage.prompt_tokens`: a ratio of sums that forgets slowly. It is used to the precision of a whole number of tokens
 * in each block, so that lengths of prompts and of matches are scaled alike.
 */
export class TokenRatios {
  readonly #blockTokens: number;
  readonly #models = new Map<string, Model>();

  /** @param blockTokens tokens of a block by the estimate */
  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens;
  }

  /** Tokens that the model has in a block of the estimate. */
  blockTokens(model: string): number {
    return this.#models.get(model)?.blockTokens ?? this.#blockTokens;
  }

  /** Tokens that the model has in a text, by the ratio that `blockTokens` tells. */
  promptTokens(model: string, bytes: number): number {
    return Math.ceil((bytes / TOKEN_BYTES / this.#blockTokens) * this.blockTokens(model));
  }

  /** Notes the tokens that an engine told of a text. */
  note(model: string, bytes: number, told: number): void {
    const estimated = bytes / TOKEN_BYTES;
    if (estimated < PROMPT_TOKENS_MIN || told <= 0) return;
    const known = this.#models.get(model) ?? this.#begin();
    // The model that was used last stands last.
    this.#models.delete(model);
    this.#models.set(model, known);
    const weight = Math.min(estimated, PROMPT_WEIGHT_TOKENS);
    const present = known.told / known.estimated;
    const ratio = within(told / estimated, present / FACTOR_MAX, present * FACTOR_MAX);
    known.estimated = known.estimated * KEPT + weight;
    known.told = known.told * KEPT + weight * ratio;
    const exact = within(known.told / known.estimated, RATIO_MIN, RATIO_MAX) * this.#blockTokens;
    if (Math.abs(exact - known.blockTokens) > 0.5 + STAY_TOKENS) known.blockTokens = Math.max(1, Math.round(exact));
  }

  /** Makes room for one more model. */
  #begin(): Model {
    if (this.#models.size >= MODELS_MAX) this.#models.delete(this.#models.keys().next().value!);
    return { estimated: PRIOR_TOKENS, told: PRIOR_TOKENS, blockTokens: this.#blockTokens };
  }
}

function within(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
