import { definePlugin } from '../../scheduling/plugin.js';
import { fileDiscoveryParameters } from './file-discovery.js';

export const multiclusterFileDiscovery = definePlugin({
  type: 'multicluster-file-discovery',
  kinds: ['discovery'],
  stability: 'Alpha',
  doc:
    'Takes the gateways of other clusters from a file, as file-discovery takes endpoints. The labels ' +
    'metricsAddress and ' +
    'metricsPort of an entry say where its metrics are, if not at its own address.',
  parameters: fileDiscoveryParameters,
  files: [['path']],
});
