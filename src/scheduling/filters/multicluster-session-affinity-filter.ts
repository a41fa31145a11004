import { definePlugin } from '../plugin.js';
import { SESSION_FILES, sessionAffinityParameters } from '../session/session-affinity-parameters.js';
import { sessionAffinityFilter } from './session-affinity-filter.js';

export const multiclusterSessionAffinityFilter = definePlugin({
  type: 'multicluster-session-affinity-filter',
  kinds: ['filter'],
  stability: 'Alpha',
  doc: 'Keeps the cluster that served the session before, as session-affinity-filter keeps an endpoint.',
  parameters: sessionAffinityParameters,
  files: SESSION_FILES,
  whenNoneLeft: 'keep-all',
  host: (parameters, context) => sessionAffinityFilter.host!(parameters, context),
});
