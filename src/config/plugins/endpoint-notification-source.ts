import { ignoredParameters } from '../../scheduling/ignored-parameters.js';
import { definePlugin } from '../../scheduling/plugin.js';

export const endpointNotificationSource = definePlugin({
  type: 'endpoint-notification-source',
  kinds: ['data-source'],
  stability: 'Beta',
  doc:
    'Kept for configurations of llm-d-router, where it tells extractors which endpoints come and go. Here every ' +
    'plugin ' +
    'that has to know it is told without it.',
  ...ignoredParameters,
});
