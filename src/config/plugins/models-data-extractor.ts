import { ignoredParameters } from '../../scheduling/ignored-parameters.js';
import { definePlugin } from '../../scheduling/plugin.js';

export const modelsDataExtractor = definePlugin({
  type: 'models-data-extractor',
  kinds: ['extractor'],
  stability: 'Beta',
  doc:
    'Reads the models and adapters of an endpoint from models-data-source, which dataLayer.sources wires to it. ' +
    'lora-affinity-scorer takes a model with a parent as an adapter, served-model-filter and models-responder read ' +
    'the lists; the metrics page shows all as pointsman_endpoint_model.',
  produces: ['served-models'],
  ...ignoredParameters,
});
