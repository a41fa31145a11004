import type { CurrentSettings } from '../../dist/src/contract/current-settings.js';
import type { DecisionSettings } from '../../dist/src/scheduling/charges.js';
import { singleProfileHandler } from '../../dist/src/scheduling/profile-handlers/single-profile-handler.js';

/** Settings of a scheduler with one profile, without a prefix index unless `given` has one. */
export function singleProfileSettings(given: Partial<DecisionSettings> = {}): CurrentSettings<DecisionSettings> {
  return { current: { profiles: ['default'], prefix: undefined, estimateOutput: undefined, ...given } };
}

/** What a scheduler of one profile is told about profiles. */
export const singleProfile = {
  settings: singleProfileSettings(),
  handler: singleProfileHandler.profileHandler!({}, { name: 'single', decider: () => () => false }),
};
