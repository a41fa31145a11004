import { z } from 'zod';
import type { EndpointViews } from '../hooks/hooks.js';
import { definePlugin } from '../plugin.js';
import { inFlightLoadProducerName } from '../producer-names.js';
import { sessionAffinity } from '../session/session-affinity.js';
import { SESSION_FILES, sessionAffinityFields, signedNeedsKey } from '../session/session-affinity-parameters.js';

const parameters = () =>
  z
    .strictObject({
      ...sessionAffinityFields(),
      fullUpTo: z
        .number()
        .min(1)
        .max(1_000)
        .default(1.25)
        .describe('Load of the endpoint up to which the score is 1, in multiples of the mean load.'),
      noneFrom: z
        .number()
        .gt(1)
        .max(1_000)
        .default(2)
        .describe('Load from which the score is 0; above fullUpTo. Between the two it falls in a straight line.'),
      inFlightLoadProducerName,
    })
    .refine(...signedNeedsKey)
    .refine(({ fullUpTo, noneFrom }) => noneFrom > fullUpTo, {
      error: 'noneFrom must be above fullUpTo',
      path: ['noneFrom'],
    });

type Parameters = z.output<ReturnType<typeof parameters>>;

export const softSessionAffinityScorer = definePlugin({
  type: 'soft-session-affinity-scorer',
  kinds: ['scorer'],
  stability: 'Alpha',
  doc:
    'Scores the endpoint that served the session last: 1 while its load is near the mean, falling to 0 as it rises ' +
    'above it, and 0 for the others. Load is requests in flight plus 1. A session that goes elsewhere stays there, ' +
    'where session-affinity-scorer sends it back.',
  parameters,
  files: SESSION_FILES,
  consumes: (given) => [{ key: 'in-flight-load', producer: given.inFlightLoadProducerName }],
  host: (given, context) => {
    const sessions = sessionAffinity(given, context, { followsPicks: true });
    return {
      score: (request, endpoints, column) => {
        const slot = sessions.preferred(request, endpoints);
        if (slot !== undefined) column[slot] = scoreAt(given, loadOf(slot, endpoints));
      },
      placed: (request, placement, endpoints) => sessions.placed(request, placement, endpoints),
      responseHeaders: (request, response) => sessions.responseHeaders?.(request, response),
    };
  },
});

/** Load of an endpoint in multiples of the mean. */
function loadOf(slot: number, { slots, inflight }: EndpointViews): number {
  let sum = 0;
  for (const each of slots) sum += inflight[each]!;
  return (inflight[slot]! + 1) / (sum / slots.length + 1);
}

function scoreAt({ fullUpTo, noneFrom }: Parameters, load: number): number {
  return Math.min(1, Math.max(0, (noneFrom - load) / (noneFrom - fullUpTo)));
}
