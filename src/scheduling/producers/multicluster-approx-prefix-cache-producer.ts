import { definePlugin } from '../plugin.js';
import { approxPrefixCacheProducer, approxPrefixCacheProducerParameters } from './approx-prefix-cache-producer.js';

export const multiclusterApproxPrefixCacheProducer = definePlugin({
  type: 'multicluster-approx-prefix-cache-producer',
  kinds: ['producer'],
  stability: 'Alpha',
  doc: 'Remembers which cluster was sent which prompt blocks, as approx-prefix-cache-producer does for endpoints.',
  parameters: approxPrefixCacheProducerParameters,
  produces: ['prefix-match'],
  defaultProducerOf: ['prefix-match'],
  consumes: () => [{ key: 'prompt-tokens' }],
  advise: (given) => approxPrefixCacheProducer.advise!(given),
  prefixSettings: (given) => approxPrefixCacheProducer.prefixSettings!(given),
});
