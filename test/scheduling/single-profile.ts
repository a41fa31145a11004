import { singleProfileHandler } from '../../dist/scheduling/profile-handlers/single-profile-handler.js';

/** What a scheduler of one profile is told about profiles. */
export const singleProfile = {
  profiles: ['default'],
  handler: singleProfileHandler.profileHandler!({}, { name: 'single', decider: () => () => false }),
};
