import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';
import { SINGLE_PROFILE_HANDLER, singleProfile } from './single-profile.js';

export const singleProfileHandler = definePlugin({
  type: SINGLE_PROFILE_HANDLER,
  kinds: ['profile-handler'],
  stability: 'Stable',
  doc: 'Runs the one profile for every request. Added when no handler is configured.',
  // Published sample configurations give it parameters without effect.
  ...ignoredParameters,
  profileHandler: () => singleProfile,
});
