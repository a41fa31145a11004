import { z } from 'zod';

/** Schema of the shares of flows. */
export const flowWeights = z
  .record(z.string().min(1), z.number().gt(0))
  .default({})
  .describe('Share of a flow by its fairness id, above 0; 1 for those that are not named.');
