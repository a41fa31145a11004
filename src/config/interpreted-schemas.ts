import { z } from 'zod';

/**
 * Has schemas interpreted that are made from now on. A schema is otherwise compiled into a function when it first
 * checks something, which pays when it checks thousands of things; a start checks each part of its configuration once.
 */
export function interpretSchemas(): void {
  z.config({ jitless: true });
}
