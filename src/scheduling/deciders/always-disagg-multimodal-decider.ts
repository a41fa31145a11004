import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';

export const alwaysDisaggMultimodalDecider = definePlugin({
  type: 'always-disagg-multimodal-decider',
  kinds: ['decider'],
  stability: 'Beta',
  doc: 'Decides that a stage runs for every request with images, audio or video in its prompt.',
  ...ignoredParameters,
  decider:
    () =>
    ({ runs }) =>
      runs.input.hasMedia === true,
});
