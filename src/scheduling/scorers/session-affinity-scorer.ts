import { definePlugin } from '../plugin.js';
import { sessionAffinity } from '../session/session-affinity.js';
import { SESSION_FILES, sessionAffinityParameters } from '../session/session-affinity-parameters.js';

export const sessionAffinityScorer = definePlugin({
  type: 'session-affinity-scorer',
  kinds: ['scorer'],
  stability: 'Alpha',
  doc: 'Scores 1 for the endpoint that served the session before and 0 for the others.',
  parameters: sessionAffinityParameters,
  files: SESSION_FILES,
  host: (parameters, context) => {
    const sessions = sessionAffinity(parameters, context);
    return {
      score: (request, endpoints, column) => {
        const slot = sessions.preferred(request, endpoints);
        if (slot !== undefined) column[slot] = 1;
      },
      placed: (request, placement, endpoints) => sessions.placed(request, placement, endpoints),
      responseHeaders: (request, response) => sessions.responseHeaders?.(request, response),
    };
  },
});
