import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { topologyColumns, topologyProducerName } from '../topology/topology-columns.js';

const LEVELS = ['host', 'rack', 'zone', 'region'] as const;

export const topologyAffinityFilter = definePlugin({
  type: 'topology-affinity-filter',
  kinds: ['filter'],
  stability: 'Alpha',
  doc:
    'Keeps the endpoints that are near the one that an earlier profile of the request picked. Keeps all when there ' +
    'is no ' +
    'such pick, nothing is known about where it is, none is near enough, or there is no topology-extractor.',
  parameters: () =>
    z.strictObject({
      minAffinity: z
        .enum(['', ...LEVELS])
        .default('host')
        .describe('The same host, rack, zone or region, or nearer; empty means host.'),
      topologyProducerName,
    }),
  operations: ['OP_FILTER_TOPOLOGY'],
  compile: ({ minAffinity, topologyProducerName: extractor }, weight, context) => {
    const columns = topologyColumns(extractor, context);
    if (columns === undefined) return undefined;
    const level = LEVELS.indexOf(minAffinity || 'host') + 1;
    return { code: 'OP_FILTER_TOPOLOGY', name: context.name, weight, parameters: [level, ...columns] };
  },
});
