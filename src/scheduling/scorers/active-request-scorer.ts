import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { inFlightLoadProducerName } from '../producer-names.js';

const parameters = () =>
  z.strictObject({
    idleThreshold: z.int().min(0).default(0).describe('In-flight requests up to which an endpoint counts as idle.'),
    maxBusyScore: z.number().min(0).max(1).default(1).describe('Largest score of an endpoint that is not idle.'),
    inFlightLoadProducerName,
    requestTimeout: z.string().optional().describe('Deprecated, has no effect.'),
  });

export const activeRequestScorer = definePlugin({
  type: 'active-request-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Prefers endpoints with fewer requests in flight from here: 1 up to idleThreshold, else ' +
    '(max - count) / max × maxBusyScore, max over the candidates.',
  parameters,
  consumes: ({ inFlightLoadProducerName }) => [{ key: 'in-flight-load', producer: inFlightLoadProducerName }],
  advise: ({ requestTimeout }) =>
    requestTimeout === undefined ? [] : ['requestTimeout is deprecated and has no effect: remove it'],
  operations: ['OP_SCORE_ACTIVE_REQUEST'],
  compile: ({ idleThreshold, maxBusyScore }, weight, { name }) => ({
    code: 'OP_SCORE_ACTIVE_REQUEST',
    name,
    weight,
    parameters: [idleThreshold, maxBusyScore],
  }),
});
