import { z } from 'zod';

/** A port that the proxy is told instead of that of the picked rank; the text of the error is the incumbent's. */
export function primaryPort(fallback: number, text: string) {
  return z
    .int()
    .refine((port) => port >= 0 && port <= 65_535, { error: 'invalid primaryPort: must be between 1 and 65535' })
    .default(fallback)
    .describe(text);
}
