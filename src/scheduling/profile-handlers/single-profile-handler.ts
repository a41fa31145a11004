import { z } from 'zod';
import { definePlugin } from '../plugin.js';

export const singleProfileHandler = definePlugin({
  type: 'single-profile-handler',
  kinds: ['profile-handler'],
  stability: 'Stable',
  doc: 'Runs the one profile for every request. Added when no handler is configured.',
  // Not strict like the others: published sample configurations give it parameters, which have never had an effect.
  parameters: z.looseObject({}),
  advise: (given) => {
    const names = Object.keys(given);
    return names.length === 0 ? [] : [`takes no parameters: ${names.join(', ')} has no effect`];
  },
});
