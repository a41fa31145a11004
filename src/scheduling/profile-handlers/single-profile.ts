import type { ProfileHandler } from '../profile-handler.js';

export const SINGLE_PROFILE_HANDLER = 'single-profile-handler';

/** Runs the one profile for every request. */
export const singleProfile: ProfileHandler = {
  handle: (runs) => {
    const primary = runs.run(runs.profiles[0]!, 'answer');
    return primary.kind === 'picked' ? { kind: 'handled', primary } : primary;
  },
};
