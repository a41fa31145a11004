import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import {
  indexerFields,
  preciseAdvice,
  preciseEventSettings,
  preciseFields,
  precisePrefixSettings,
} from '../producers/kv-event-parameters.js';
import { prefixCacheScorer } from './prefix-cache-scorer.js';

const parameters = () =>
  z.strictObject({
    ...preciseFields(),
    indexerConfig: z
      .strictObject({
        ...indexerFields(),
        tokenizersPoolConfig: z
          .looseObject({ modelName: z.string().optional().describe('Model whose tokeniser it was.') })
          .optional()
          .describe('Deprecated, and not served: a tokeniser of its own. Configure a token-producer.'),
      })
      .optional()
      .describe('Where the index is kept, and what its tiers count.'),
  });

export const precisePrefixCacheScorer = definePlugin({
  type: 'precise-prefix-cache-scorer',
  kinds: ['scorer', 'producer', 'extractor'],
  stability: 'Beta',
  deprecated: { replacement: 'precise-prefix-cache-producer' },
  doc:
    'Producer and scorer in one: matched / total blocks, as the engines say. Use the producer and ' +
    'prefix-cache-scorer.',
  parameters,
  produces: ['prefix-match'],
  consumes: () => [{ key: 'prompt-tokens' }],
  advise: (given) => [
    ...preciseAdvice(given),
    ...(given.indexerConfig?.tokenizersPoolConfig === undefined
      ? []
      : ['tokenizersPoolConfig is deprecated and not served: configure a token-producer with vllm']),
  ],
  prefixSettings: precisePrefixSettings,
  kvEventSettings: preciseEventSettings,
  operations: ['OP_SCORE_PREFIX', 'OP_SCORE_HOST'],
  compile: (_parameters, weight, context) =>
    prefixCacheScorer.compile!(prefixCacheScorer.parameters.parse({}), weight, context),
});
