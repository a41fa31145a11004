import { z } from 'zod';

/**
 * Makes later schemas interpreted ones. A schema is otherwise compiled into a function when it first checks something,
 * which pays when it checks thousands of things; a start checks each part of its configuration once.
 */
export function interpretSchemas(): void {
  z.config({ jitless: true });
}
