import { definePlugin } from '../plugin.js';
import { producerName } from '../producer-names.js';
import { lengthNeedsScale, prefixCacheScorer, prefixCacheScorerParameters } from './prefix-cache-scorer.js';

const parameters = () =>
  prefixCacheScorerParameters()
    .extend({
      prefixMatchInfoProducerName: producerName('multicluster-approx-prefix-cache-producer').describe(
        'Name of the plugin that produces the prefix matches.',
      ),
    })
    .refine(...lengthNeedsScale);

export const multiclusterPrefixCacheScorer = definePlugin({
  type: 'multicluster-prefix-cache-scorer',
  kinds: ['scorer'],
  stability: 'Alpha',
  doc: 'Prefers clusters that were sent a longer prefix of the prompt; the formula is that of prefix-cache-scorer.',
  parameters,
  consumes: (given) => prefixCacheScorer.consumes!(given),
  operations: ['OP_SCORE_PREFIX', 'OP_SCORE_HOST'],
  compile: (given, weight, context) => prefixCacheScorer.compile!(given, weight, context),
});
