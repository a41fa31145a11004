import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { noProfile } from '../profile-handler.js';
import { ranked } from './pd-profile-handler.js';
import { primaryPort } from './primary-port.js';

export const dataParallelProfileHandler = definePlugin({
  type: 'data-parallel-profile-handler',
  kinds: ['profile-handler'],
  stability: 'Beta',
  deprecated: { replacement: 'single-profile-handler' },
  doc:
    'Runs the one profile over the ranks of data-parallel engines: the proxy is told the primary port of the host, ' +
    'the ' +
    'rank stands in the header x-data-parallel-host-port.',
  parameters: () =>
    z.strictObject({
      primaryPort: primaryPort(8000, 'Port for the proxy; 0 = that of the picked rank.'),
    }),
  handlerAdvice: (_given, profiles) =>
    profiles.length === 1
      ? []
      : [`runs one profile, but there are ${profiles.length}: every request is turned away (429)`],
  profileHandler: ({ primaryPort: port }) => ({
    handle: (runs) => {
      if (runs.profiles.length !== 1) return noProfile(`there are ${runs.profiles.length} profiles, one is expected`);
      const primary = runs.run(runs.profiles[0]!, 'answer');
      return primary.kind === 'rejected' ? primary : { kind: 'handled', primary, ...ranked(primary, port) };
    },
  }),
});
