import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { prefixMatchProducerName } from '../producer-names.js';

const parameters = () =>
  z.strictObject({
    prefixMatchInfoProducerName: prefixMatchProducerName,
  });

export const marginalCostScorer = definePlugin({
  type: 'marginal-cost-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Prefers the endpoint where one more request costs least, for itself and for those already there: time to its ' +
    'first ' +
    'output and per output token, plus the delay that it adds to others, in shares of their targets. What a token of ' +
    ('prefill, a waiting request and a busy endpoint cost is learned from measured latencies (section adaptation); ' +
      'until ') +
    'then, and without it, the configured assumptions count.',
  source: 'the marginal cost of Pointsman (docs/adaptation.md)',
  signals: ['waiting requests', 'KV usage'],
  parameters,
  consumes: ({ prefixMatchInfoProducerName }) => [{ key: 'prefix-match', producer: prefixMatchInfoProducerName }],
  operations: ['OP_SCORE_MARGINAL_COST'],
  compile: (_parameters, weight, { name }) => ({ code: 'OP_SCORE_MARGINAL_COST', name, weight, parameters: [] }),
});
