import { z } from 'zod';
import { parseQuantity, QUANTITY_EXPECTED, QUANTITY_FORM } from './quantity.js';

/** Schema of a quantity, as text or as a number; it stays as it is. */
export const quantity = z
  .union([z.number(), z.string()], { error: QUANTITY_EXPECTED })
  .refine((given) => parseQuantity(String(given)) !== undefined, { error: QUANTITY_EXPECTED })
  .meta({ pattern: QUANTITY_FORM.source, examples: ['1Gi', '500Mi', 1000] });
