import { z } from 'zod';

/** Parameters of every picker. */
export const endpointCount = z.strictObject({
  maxNumOfEndpoints: z
    .int()
    .default(1)
    .describe('Endpoints to name, the best first; the others are fallbacks. 0 or less means 1.'),
});

/** Number of endpoints to pick, at least 1. */
export function picks({ maxNumOfEndpoints }: z.output<typeof endpointCount>): number {
  return Math.max(1, maxNumOfEndpoints);
}
