import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { topologyColumns, topologyProducerName } from '../topology/topology-columns.js';

export const topologyAffinityScorer = definePlugin({
  type: 'topology-affinity-scorer',
  kinds: ['scorer'],
  stability: 'Alpha',
  doc:
    'Prefers endpoints near the one that an earlier profile of the request picked: the same host 1, rack 0.2, zone ' +
    '0.05, ' +
    'region 0.02, else 0. Without such a pick or without a topology-extractor 0 for all.',
  parameters: () => z.strictObject({ topologyProducerName }),
  operations: ['OP_SCORE_TOPOLOGY'],
  compile: ({ topologyProducerName: extractor }, weight, context) => {
    const columns = topologyColumns(extractor, context);
    if (columns === undefined) return undefined;
    return { code: 'OP_SCORE_TOPOLOGY', name: context.name, weight, parameters: columns };
  },
});
