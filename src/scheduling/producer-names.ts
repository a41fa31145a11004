import { z } from 'zod';

/** Parameter of plugins that read prefix matches. */
export const prefixMatchProducerName = z
  .string()
  .default('approx-prefix-cache-producer')
  .describe('Name of the plugin that produces the prefix matches.');

/** Parameter of plugins that read the load in flight. */
export const inFlightLoadProducerName = z
  .string()
  .default('inflight-load-producer')
  .describe('Name of the plugin that counts in-flight load.');
