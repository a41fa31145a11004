import { z } from 'zod';
import { CORE } from '../../core/core-names.js';
import { definePlugin } from '../plugin.js';

/**
 * Minimum block size. Smaller blocks cost memory without a better distinction of prompts; llm-d-router has the same
 * minimum.
 */
const BLOCK_TOKENS_MIN = 64;
const DEFAULT_BLOCK_TOKENS = 16;
const DEFAULT_CAPACITY_BLOCKS = 31_250;

export const approxPrefixCacheProducerParameters = () =>
  z.strictObject({
    autoTune: z
      .boolean()
      .default(true)
      .describe(
        'Take the capacity from the engines where they report it, and count a match as far as their own blocks are ' +
          'whole.',
      ),
    blockSizeTokens: z
      .int()
      .min(0)
      .optional()
      .describe(
        `Tokens in a block (absent or 0: ${DEFAULT_BLOCK_TOKENS}); values below ${BLOCK_TOKENS_MIN} are raised to it.`,
      ),
    blockSize: z.int().min(0).optional().describe('Deprecated name of blockSizeTokens.'),
    maxPrefixTokensToMatch: z
      .int()
      .min(0)
      .default(131_072)
      .describe('Longest prefix that is compared, in tokens; 0 = use maxPrefixBlocksToMatch.'),
    maxPrefixBlocksToMatch: z
      .int()
      .min(0)
      .default(2048)
      .describe('Longest prefix that is compared, in blocks, when the bound in tokens is 0; both 0 = no bound.'),
    prefixHashSource: z
      .string()
      .optional()
      .describe(
        'Where llm-d-router takes the hashes of blocks from. Without effect: they are made of the prompt here.',
      ),
    lruCapacityPerServer: z
      .int()
      .min(0)
      .default(DEFAULT_CAPACITY_BLOCKS)
      .describe('Bound on the blocks of one endpoint, when the engine does not report its own; 0 means the default.'),
  });

type Parameters = z.output<ReturnType<typeof approxPrefixCacheProducerParameters>>;

function blockTokens(given: Parameters): number {
  return Math.max(BLOCK_TOKENS_MIN, given.blockSizeTokens || given.blockSize || DEFAULT_BLOCK_TOKENS);
}

/** Only for a configured size: the default was not asked for. */
function raisedBlocks({ blockSizeTokens, blockSize }: Parameters): readonly string[] {
  const asked = blockSizeTokens || blockSize || BLOCK_TOKENS_MIN;
  if (asked >= BLOCK_TOKENS_MIN) return [];
  return [`blocks of ${asked} tokens are raised to ${BLOCK_TOKENS_MIN}, the least that are told apart`];
}

function maxBlocks(given: Parameters): number {
  const asked =
    given.maxPrefixTokensToMatch > 0
      ? Math.max(1, Math.floor(given.maxPrefixTokensToMatch / blockTokens(given)))
      : given.maxPrefixBlocksToMatch || CORE.CHAIN_BLOCKS_MAX;
  return Math.min(asked, CORE.CHAIN_BLOCKS_MAX);
}

export const approxPrefixCacheProducer = definePlugin({
  type: 'approx-prefix-cache-producer',
  kinds: ['producer'],
  stability: 'Beta',
  doc: 'Remembers which endpoint was sent which prompt blocks, and finds the longest prefix of a prompt on each.',
  parameters: approxPrefixCacheProducerParameters,
  produces: ['prefix-match'],
  defaultProducerOf: ['prefix-match'],
  consumes: () => [{ key: 'prompt-tokens' }],
  advise: (given) => [
    ...(given.blockSize === undefined ? [] : ['blockSize is deprecated: use blockSizeTokens']),
    ...(given.prefixHashSource === undefined
      ? []
      : [`prefixHashSource has no effect: blocks are hashed from the prompt here, not taken from elsewhere`]),
    ...raisedBlocks(given),
  ],
  prefixSettings: (given) => ({
    blockTokens: blockTokens(given),
    maxBlocks: maxBlocks(given),
    capacityBlocks: given.lruCapacityPerServer || DEFAULT_CAPACITY_BLOCKS,
    autoTune: given.autoTune,
  }),
});
