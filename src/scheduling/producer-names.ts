import { z } from 'zod';

/** Name of a producer; an empty one, as templates write it, is the default. */
export const producerName = (standard: string) =>
  z
    .string()
    .overwrite((name) => name || standard)
    .default(standard);

/** Parameter of plugins that read prefix matches. */
export const prefixMatchProducerName = producerName('approx-prefix-cache-producer').describe(
  'Name of the plugin that produces the prefix matches.',
);

/** Parameter of plugins that read the load in flight. */
export const inFlightLoadProducerName = producerName('inflight-load-producer').describe(
  'Name of the plugin that counts in-flight load.',
);
