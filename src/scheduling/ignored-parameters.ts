import { z } from 'zod';

/**
 * Parameters of a plugin that has none. Not strict: the incumbent does not look at them, so that configurations exist
 * which give some.
 */
export const ignoredParameters = {
  parameters: z.looseObject({}),
  advise: (given: Readonly<Record<string, unknown>>): readonly string[] => {
    const names = Object.keys(given);
    return names.length === 0 ? [] : [`takes no parameters: ${names.join(', ')} has no effect`];
  },
};
