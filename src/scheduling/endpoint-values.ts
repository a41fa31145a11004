import type { CompileContext } from './plugin.js';

/** Numbers of the endpoints that the core has itself: VALUE_* in assembly/columns/values.ts. */
export const ENDPOINT_VALUES = {
  'active-requests': 1,
  'active-tokens': 2,
  'waiting-queue': 3,
  'running-requests': 4,
  'kv-cache-utilization': 5,
} as const;

/** VALUE_ATTRIBUTE: from here on values that other plugins write. */
const FIRST_ATTRIBUTE = 8;

/** Number by which a program names a value of the endpoints: one of the core's own, or an attribute by its key. */
export function valueSource(attribute: string, context: CompileContext): number {
  if (Object.hasOwn(ENDPOINT_VALUES, attribute)) return ENDPOINT_VALUES[attribute as keyof typeof ENDPOINT_VALUES];
  return FIRST_ATTRIBUTE + context.attribute(attribute);
}

/** For the descriptions of parameters. */
export const VALUE_NAMES = Object.keys(ENDPOINT_VALUES).join(', ');
