import { z } from 'zod';
import type { OrderingSettings } from '../../contract/queue-settings.js';
import { durationMilliseconds, parseDuration } from '../../scheduling/duration.js';
import { duration } from '../../scheduling/duration-schema.js';
import { ignoredParameters } from '../../scheduling/ignored-parameters.js';
import { definePlugin } from '../../scheduling/plugin.js';

/** The part of a waiting request that ordering policies use. */
export interface OrderedRequest {
  readonly enqueuedMs: number;
  /** End of its wait: arrival + time to live, or its own deadline. */
  readonly dueMs: number;
  /** End of its time-to-first-token objective; infinite without one. */
  readonly firstTokenDueMs: number;
  readonly uncachedTokens: number;
  /** Number of its arrival. */
  readonly sequence: number;
}

/** Sort key of a request among those of its flow; the smallest is next. */
export function orderOf(settings: OrderingSettings, request: OrderedRequest): number {
  switch (settings.kind) {
    case 'arrival':
      return request.sequence;
    case 'deadline':
      return request.dueMs;
    case 'first-token-objective':
      return request.firstTokenDueMs;
    case 'shortest-first':
      return request.enqueuedMs + Math.min(settings.ageBoundMs, settings.msPerToken * request.uncachedTokens);
  }
}

export const fcfsOrderingPolicy = definePlugin({
  type: 'fcfs-ordering-policy',
  kinds: ['ordering-policy'],
  stability: 'Beta',
  doc: 'Queues of flow control: the request that has waited longest first.',
  ...ignoredParameters,
  orderingSettings: () => ({ kind: 'arrival' }),
});

export const edfOrderingPolicy = definePlugin({
  type: 'edf-ordering-policy',
  kinds: ['ordering-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: the request whose wait must end first goes first. The end is arrival + time to live, ' +
    'or what the ' +
    'request says in x-pointsman-deadline-ms or x-llm-d-inference-ttl, whichever comes first.',
  ...ignoredParameters,
  orderingSettings: () => ({ kind: 'deadline' }),
});

export const sloDeadlineOrderingPolicy = definePlugin({
  type: 'slo-deadline-ordering-policy',
  kinds: ['ordering-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: the request whose first token is due first goes first, by x-llm-d-slo-ttft-ms. Requests ' +
    'without that header go last.',
  ...ignoredParameters,
  orderingSettings: () => ({ kind: 'first-token-objective' }),
});

const shortestFirstParameters = () =>
  z.strictObject({
    msPerToken: z
      .number()
      .min(0)
      .default(15)
      .describe('Milliseconds that each prompt token which is not cached puts a request back.'),
    ageBound: duration
      .refine((text) => (parseDuration(text) ?? 0) >= 0, { error: 'must not be negative' })
      .default('30s')
      .describe('No request is overtaken by one that came so much later.'),
  });

export const shortestFirstOrderingPolicy = definePlugin({
  type: 'shortest-first-ordering-policy',
  kinds: ['ordering-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: short prompts before long ones, as if each token had cost waiting time already, with ' +
    'a bound ' +
    ('on how far a request can be put back. Lowers the mean wait in a deep queue; the longest requests wait a ' +
      'little longer.'),
  source: 'Pointsman: weighted shortest processing time (Smith 1956) with an age bound',
  parameters: shortestFirstParameters,
  orderingSettings: ({ msPerToken, ageBound }) => ({
    kind: 'shortest-first',
    msPerToken,
    ageBoundMs: durationMilliseconds(ageBound),
  }),
});
