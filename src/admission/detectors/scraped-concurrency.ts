import { z } from 'zod';
import { durationMilliseconds, parseDuration } from '../../scheduling/duration.js';
import { duration } from '../../scheduling/duration-schema.js';
import { definePlugin } from '../../scheduling/plugin.js';

const longer = (text: string) => (parseDuration(text) ?? 1) > 0;

export const scrapedConcurrencyDetector = definePlugin({
  type: 'scraped-concurrency-detector',
  kinds: ['saturation-detector'],
  stability: 'Alpha',
  doc:
    'Saturation of the pool: the requests that run and wait on its endpoints, as the engines tell, with those sent ' +
    'since, as a share of what may be there. Every replica of the picker sees the same, without telling each other.',
  parameters: () =>
    z.strictObject({
      maxConcurrency: z.int().min(1).default(100).describe('Requests on an endpoint at which it is saturated.'),
      metricsStalenessThreshold: duration
        .refine(longer, { error: 'must be longer than 0' })
        .default('2s')
        .describe('Age of signals from which on what is in flight from here counts in their place.'),
      ownDispatchWindow: duration
        .refine(longer, { error: 'must be longer than 0' })
        .default('1s')
        .describe('Without effect: what was sent counts until the next scrape shows it, however long that takes.'),
    }),
  saturationSettings: ({ maxConcurrency, metricsStalenessThreshold }) => ({
    type: 'scraped-concurrency-detector',
    maxConcurrency,
    metricsStalenessMs: durationMilliseconds(metricsStalenessThreshold),
  }),
});
