import { z } from 'zod';
import { WEIGHT_MAX, WEIGHT_MIN } from '../../settings-check.js';

/** Schema of the shares of flows. */
export const flowWeights = () =>
  z
    .record(z.string().min(1), z.number().min(WEIGHT_MIN).max(WEIGHT_MAX))
    .default({})
    .describe('Share of a flow by its fairness id, 0.000001 to 1000000; 1 for those that are not named.');
