import { z } from 'zod';
import { DURATION_EXPECTED, DURATION_FORM, parseDuration } from './duration.js';

/** Schema of a duration, which keeps the text. */
export const duration = z
  .string({ error: DURATION_EXPECTED })
  .refine((text) => parseDuration(text) !== undefined, { error: DURATION_EXPECTED })
  .meta({ pattern: DURATION_FORM.source, examples: ['50ms', '1m30s'] });

/** The same, or empty, as templates write a duration that is not given. */
export const durationOrNone = z
  .string({ error: DURATION_EXPECTED })
  .refine((text) => text === '' || parseDuration(text) !== undefined, { error: DURATION_EXPECTED })
  .meta({ pattern: `^$|${DURATION_FORM.source}`, examples: ['50ms', '1m30s'] });
