import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { prefixMatchProducerName } from '../producer-names.js';

/** Parameter of the core for a limit that it learns. */
const LEARNED = -1;

const parameters = () =>
  z.strictObject({
    maxWaiting: z
      .number()
      .gt(0)
      .optional()
      .describe('Waiting requests from which on an endpoint is overloaded. Absent: learned, see batches.'),
    maxKvCacheUsage: z
      .number()
      .gt(0)
      .max(1)
      .optional()
      .describe(
        'Share of the KV cache in use from which on an endpoint is overloaded. Absent: learned, where the uncached ' +
          'part of the prompt has no room beside what is in use, by the size that the engine tells.',
      ),
    batches: z
      .number()
      .gt(0)
      .max(1_000)
      .default(1)
      .describe('Learned limit of waiting requests, in multiples of the requests that the engine runs at most.'),
    fallbackOnEmpty: z.boolean().default(true).describe('Keep all endpoints when all are overloaded.'),
    prefixMatchInfoProducerName: prefixMatchProducerName,
  });

export const overloadFilter = definePlugin({
  type: 'overload-filter',
  kinds: ['filter'],
  stability: 'Alpha',
  doc:
    'Vetoes endpoints that have too many requests waiting or too full a KV cache, whatever their scores. Limits that ' +
    'are not given are learned for each endpoint; until then, and without fresh signals, the endpoint is kept.',
  parameters,
  consumes: ({ prefixMatchInfoProducerName }) => [{ key: 'prefix-match', producer: prefixMatchInfoProducerName }],
  operations: ['OP_FILTER_OVERLOAD'],
  compile: ({ maxWaiting, maxKvCacheUsage, batches, fallbackOnEmpty }, weight, { name }) => ({
    code: 'OP_FILTER_OVERLOAD',
    name,
    weight,
    parameters: [maxWaiting ?? LEARNED, maxKvCacheUsage ?? LEARNED, batches, fallbackOnEmpty ? 1 : 0],
  }),
});
