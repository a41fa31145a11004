import type { ProfileHandler } from '../profile-handler.js';
import { stageHeaders } from './stage-headers.js';

/** Header by which a client chooses one profile (`--allow-profile-header`). */
const PROFILE_HEADER = 'x-pointsman-profile';

/** Runs only the profile that the request names; other requests use the configured handler. */
export function requestedProfile(configured: ProfileHandler): ProfileHandler {
  return {
    handle: (runs) => {
      const asked = runs.input.headers.get(PROFILE_HEADER)?.trim();
      if (asked === undefined || asked === '') return configured.handle(runs);
      if (!runs.profiles.includes(asked)) {
        const valid = runs.profiles.join(', ');
        const message = `${PROFILE_HEADER}: there is no profile ${JSON.stringify(asked)}; there are ${valid}`;
        return { kind: 'rejected', code: 'BadRequest', message, reason: undefined };
      }
      const primary = runs.run(asked, 'answer');
      if (primary.kind === 'rejected') return primary;
      return { kind: 'handled', primary, headers: stageHeaders(undefined, undefined) };
    },
  };
}
