import { definePlugin } from '../plugin.js';
import { sessionAffinity } from '../session/session-affinity.js';
import { SESSION_FILES, sessionAffinityParameters } from '../session/session-affinity-parameters.js';

export const sessionAffinityFilter = definePlugin({
  type: 'session-affinity-filter',
  kinds: ['filter'],
  stability: 'Alpha',
  doc:
    'Keeps the endpoint that served the session before. Without a session, or when its endpoint cannot be used, ' +
    'keeps all.',
  parameters: sessionAffinityParameters,
  files: SESSION_FILES,
  whenNoneLeft: 'keep-all',
  host: (parameters, context) => {
    const sessions = sessionAffinity(parameters, context);
    return {
      filter: (request, endpoints, column) => {
        const slot = sessions.preferred(request, endpoints);
        if (slot === undefined) return;
        for (const other of endpoints.slots) column[other] = 0;
        column[slot] = 1;
      },
      placed: (request, placement, endpoints) => sessions.placed(request, placement, endpoints),
      responseHeaders: (request, response) => sessions.responseHeaders?.(request, response),
    };
  },
});
