// Plugins that the tests load with --plugin: one that always fails, and one that uses the hooks of the answer.
import { definePlugin, z } from 'pointsman/plugin';

const failingScorer = definePlugin({
  type: 'failing-scorer',
  kinds: ['scorer'],
  stability: 'Stable',
  doc: 'Throws.',
  parameters: z.strictObject({}),
  host: () => ({
    score() {
      throw new Error('boom');
    },
  }),
});

const answerReporter = definePlugin({
  type: 'answer-reporter',
  kinds: ['reporter'],
  stability: 'Stable',
  doc: 'Says how many tokens an answer had, and who gave it.',
  parameters: z.strictObject({ prefix: z.string().default('pod:') }),
  host: ({ prefix }) => ({
    requestHeaders: (request) => request.attributes.set('tier', request.headers.get('x-tier')),
    admit: (request) =>
      request.attributes.get('tier') === 'none' ? { code: 'ResourceExhausted', message: 'no tier' } : undefined,
    responseHeaders: (_request, response) =>
      response.setHeader('x-answered-by', `${prefix}${response.endpoint.endpoint.name}`),
    report: (_request, usage, metadata) => metadata.set('envoy.lb', 'tokens', usage.totalTokens),
  }),
});

const turnScorer = definePlugin({
  type: 'turn-scorer',
  kinds: ['scorer'],
  stability: 'Stable',
  doc: 'Prefers another endpoint for every request: the choice depends on what it has seen before.',
  parameters: z.strictObject({}),
  host: () => {
    let turn = 0;
    return {
      score(_request, endpoints, column) {
        turn++;
        for (const [i, slot] of endpoints.slots.entries()) column[slot] = i === turn % endpoints.slots.length ? 1 : 0;
      },
    };
  },
});

export const plugins = [failingScorer, answerReporter, turnScorer];
