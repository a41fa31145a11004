import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { noProfile, type ProfileRuns } from '../profile-handler.js';
import type { Handled } from './stages.js';

export const headerProfileHandler = definePlugin({
  type: 'header-profile-handler',
  kinds: ['profile-handler'],
  stability: 'Alpha',
  doc:
    'Runs the profile that a request header names. With only one profile, runs that one. An unknown name is answered ' +
    'with 429.',
  parameters: () =>
    z.strictObject({
      headerName: z.string().default('EPP-Profile').describe('Request header with the name; empty means the default.'),
      defaultProfile: z
        .string()
        .default('decode')
        .describe('Profile of requests whose header is absent or blank; empty means the default.'),
    }),
  handlerAdvice: ({ defaultProfile }, profiles) => {
    const name = defaultProfile.trim() || 'decode';
    if (profiles.length === 1 || profiles.includes(name)) return [];
    return [`there is no profile "${name}": requests that name none are turned away (429)`];
  },
  profileHandler: ({ headerName, defaultProfile }) => {
    const header = headerName.trim().toLowerCase() || 'epp-profile';
    const otherwise = defaultProfile.trim() || 'decode';
    const handle = (runs: ProfileRuns): Handled => {
      const asked = runs.input.headers.get(header)?.trim() || otherwise;
      const profile = runs.profiles.length === 1 ? runs.profiles[0]! : asked;
      if (!runs.profiles.includes(profile))
        return noProfile(`there is no profile ${JSON.stringify(asked)} (${header})`);
      const primary = runs.run(profile, 'answer');
      return primary.kind === 'rejected' ? primary : { kind: 'handled', primary };
    };
    return { handle };
  },
});
