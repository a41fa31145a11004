import { z } from 'zod';

/** A port for the proxy in place of that of the picked rank; the text of the error is llm-d-router's. */
export function primaryPort(fallback: number, text: string) {
  return z
    .int()
    .refine((port) => port >= 0 && port <= 65_535, { error: 'invalid primaryPort: must be between 1 and 65535' })
    .default(fallback)
    .describe(text);
}
