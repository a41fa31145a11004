// A hook scorer: long prompts avoid endpoints that still have much to read, short ones do not care.
import { definePlugin, z } from 'pointsman/plugin';

const shortFirstScorer = definePlugin({
  type: 'short-first-scorer',
  kinds: ['scorer'],
  stability: 'Stable',
  doc: 'Scores an endpoint by the prompt tokens that it has yet to read, for prompts of at least so many bytes.',
  parameters: z.strictObject({
    promptBytes: z.int().min(0).default(4096).describe('Shorter prompts get the same score everywhere.'),
    halfTokens: z.number().gt(0).default(8192).describe('Tokens in flight that halve the score.'),
  }),
  host: ({ promptBytes, halfTokens }) => ({
    score(request, endpoints, column) {
      if (request.promptBytes < promptBytes) return;
      for (const slot of endpoints.slots) column[slot] = 1 / (1 + endpoints.inflightTokens[slot] / halfTokens);
    },
  }),
});

export const plugins = [shortFirstScorer];
