import type { PromptFeature, PromptTokens } from '../../core/token-chain.js';
import { errorMessage } from '../../runtime/error-message.js';

/** An answer of a render server that has not the expected shape. */
export class UnusableAnswer extends Error {}

/**
 * Tokens from the answer of a render server: `{token_ids, features?}`, or a list with one such object for each prompt
 * of the request, which are joined.
 * @throws UnusableAnswer
 */
export function renderedTokens(text: string): PromptTokens {
  const prompts = parts(text);
  const total = prompts.reduce((sum, { token_ids }) => sum + token_ids.length, 0);
  const ids = new Uint32Array(total);
  const features: PromptFeature[] = [];
  let at = 0;
  for (const prompt of prompts) {
    ids.set(prompt.token_ids, at);
    for (const feature of featuresOf(prompt)) features.push({ ...feature, offset: feature.offset + at });
    at += prompt.token_ids.length;
  }
  return { ids, features };
}

interface RenderedPrompt {
  readonly token_ids: readonly number[];
  readonly features?: unknown;
}

function parts(text: string): readonly RenderedPrompt[] {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch (error) {
    throw new UnusableAnswer(`its answer is no JSON: ${errorMessage(error)}`);
  }
  const list: readonly unknown[] = Array.isArray(answer) ? answer : [answer];
  if (list.length > 0 && list.every(isRendered)) return list;
  throw new UnusableAnswer('its answer has no token_ids');
}

function isRendered(value: unknown): value is RenderedPrompt {
  const ids = (value as RenderedPrompt | null)?.token_ids;
  return Array.isArray(ids) && ids.every((id) => Number.isInteger(id) && id >= 0 && id <= 0xffff_ffff);
}

/**
 * Reads vLLM's `features`: for each modality the hashes of the items and the ranges of their placeholders, in one
 * order.
 */
function featuresOf({ features, token_ids }: RenderedPrompt): readonly PromptFeature[] {
  const { mm_hashes: hashes, mm_placeholders: places } = (features ?? {}) as {
    readonly mm_hashes?: Readonly<Record<string, unknown>>;
    readonly mm_placeholders?: Readonly<Record<string, unknown>>;
  };
  const found = Object.entries(hashes ?? {}).flatMap(([modality, identifiers]) => {
    const ranges = places?.[modality];
    if (!Array.isArray(identifiers) || !Array.isArray(ranges) || identifiers.length !== ranges.length) {
      throw new UnusableAnswer(`its answer says not where its ${modality} features stand`);
    }
    return identifiers.map((identifier: unknown, index) => feature(identifier, ranges[index], token_ids.length));
  });
  return found.sort((a, b) => a.offset - b.offset);
}

function feature(identifier: unknown, range: unknown, tokens: number): PromptFeature {
  const { offset, length } = (range ?? {}) as Partial<PromptFeature>;
  const fits = Number.isInteger(offset) && Number.isInteger(length) && offset! >= 0 && length! > 0;
  if (typeof identifier === 'string' && fits && offset! + length! <= tokens) {
    return { identifier, offset: offset!, length: length! };
  }
  throw new UnusableAnswer('its answer has a feature that stands outside of the prompt');
}
