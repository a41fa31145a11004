import { ignoredParameters } from '../../scheduling/ignored-parameters.js';
import { definePlugin } from '../../scheduling/plugin.js';

export const modelsDataExtractor = definePlugin({
  type: 'models-data-extractor',
  kinds: ['extractor'],
  stability: 'Beta',
  doc:
    'Reads the models and adapters of an endpoint from models-data-source. The metrics page shows them as ' +
    'pointsman_endpoint_model.',
  ...ignoredParameters,
});
