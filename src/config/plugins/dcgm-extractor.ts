import { ignoredParameters } from '../../scheduling/ignored-parameters.js';
import { definePlugin } from '../../scheduling/plugin.js';

export const dcgmExtractor = definePlugin({
  type: 'dcgm-extractor',
  kinds: ['extractor'],
  stability: 'Alpha',
  doc:
    'Reads the attribute GPUUtilization from a page of dcgm-data-source: the busiest GPU of the endpoint, 0 to 1 ' +
    '(DCGM_FI_DEV_GPU_UTIL / 100). Of series with a label `pod` only those count that name the endpoint.',
  ...ignoredParameters,
});
