import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';

export const alwaysDisaggPdDecider = definePlugin({
  type: 'always-disagg-pd-decider',
  kinds: ['decider'],
  stability: 'Beta',
  doc: 'Decides that a stage runs for every request.',
  ...ignoredParameters,
  decider: () => () => true,
});
