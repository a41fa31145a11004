import { definePlugin } from '../plugin.js';
import { prefixCacheScorer, prefixCacheScorerParameters } from './prefix-cache-scorer.js';

const parameters = () => {
  const general = prefixCacheScorerParameters();
  return general.extend({
    prefixMatchInfoProducerName: general.shape.prefixMatchInfoProducerName
      .unwrap()
      .default('multicluster-approx-prefix-cache-producer')
      .describe('Name of the plugin that produces the prefix matches.'),
  });
};

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
