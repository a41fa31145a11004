import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { prefixMatchProducerName } from '../producer-names.js';

const DEFAULT_SIZE = 1024;

const parameters = () =>
  z.strictObject({
    lruSize: z
      .int()
      .default(DEFAULT_SIZE)
      .describe('Endpoints whose last cold prompt is remembered; 0 or less means the default.'),
    prefixMatchInfoProducerName: prefixMatchProducerName,
    prefixPluginType: z.string().optional().describe('Deprecated, has no effect.'),
    prefixPluginName: z.string().optional().describe('Deprecated name of prefixMatchInfoProducerName, has no effect.'),
  });

export const noHitLruScorer = definePlugin({
  type: 'no-hit-lru-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Spreads prompts that no endpoint holds: the endpoints that were sent one longest ago score highest, 1 - rank ' +
    '/ (n - 1). ' +
    'A prompt that some candidate holds in part scores 0.5 everywhere.',
  parameters,
  consumes: ({ prefixMatchInfoProducerName }) => [{ key: 'prefix-match', producer: prefixMatchInfoProducerName }],
  advise: ({ prefixPluginType, prefixPluginName }) =>
    prefixPluginType === undefined && prefixPluginName === undefined
      ? []
      : ['prefixPluginType and prefixPluginName are deprecated: use prefixMatchInfoProducerName'],
  operations: ['OP_SCORE_NO_HIT_LRU'],
  compile: ({ lruSize }, weight, { name }) => ({
    code: 'OP_SCORE_NO_HIT_LRU',
    name,
    weight,
    parameters: [lruSize > 0 ? lruSize : DEFAULT_SIZE],
  }),
});
