import { z } from 'zod';

/**
 * Parameters of a plugin without parameters. Not strict: llm-d-router ignores them, so existing configurations may
 * contain some.
 */
export const ignoredParameters = {
  parameters: () => z.looseObject({}),
  advise: (given: Readonly<Record<string, unknown>>): readonly string[] => {
    const names = Object.keys(given);
    return names.length === 0 ? [] : [`takes no parameters: ${names.join(', ')} has no effect`];
  },
};
