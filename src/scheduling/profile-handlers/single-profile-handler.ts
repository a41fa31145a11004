import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';

export const singleProfileHandler = definePlugin({
  type: 'single-profile-handler',
  kinds: ['profile-handler'],
  stability: 'Stable',
  doc: 'Runs the one profile for every request. Added when no handler is configured.',
  // Published sample configurations give it parameters without effect.
  ...ignoredParameters,
  profileHandler: () => ({
    handle: (runs) => {
      const primary = runs.run(runs.profiles[0]!, 'answer');
      return primary.kind === 'picked' ? { kind: 'handled', primary } : primary;
    },
  }),
});
