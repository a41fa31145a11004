import { z } from 'zod';
import { PATIENT_BUDGET_MS } from '../hooks/plugin-guard.js';
import { definePlugin } from '../plugin.js';
import { type MediaMatch, mediaMatchAttribute } from '../producers/media/media-match.js';

const parameters = () =>
  z.strictObject({
    producerName: z
      .string()
      .default('mm-embeddings-cache-producer')
      .describe('Name of the mm-embeddings-cache-producer that finds the matches.'),
  });

export const mmEmbeddingsCacheScorer = definePlugin({
  type: 'mm-embeddings-cache-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Prefers endpoints that were sent the images, videos and sounds of the prompt before: those that they have / ' +
    'all. ' +
    '0 for every endpoint when the prompt has none.',
  parameters,
  consumes: ({ producerName }) => [{ key: 'encoder-match', producer: producerName || 'mm-embeddings-cache-producer' }],
  budgetMs: PATIENT_BUDGET_MS,
  host: ({ producerName }) => {
    const attribute = mediaMatchAttribute(producerName || 'mm-embeddings-cache-producer');
    return {
      score: ({ attributes }, _endpoints, column) => {
        const match = attributes.get(attribute) as MediaMatch | undefined;
        if (match === undefined) return;
        for (const [slot, matched] of match.matched) column[slot] = matched / match.total;
      },
    };
  },
});
