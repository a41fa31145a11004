import { CORE } from '../core/core-names.js';
import type { CompileContext } from './plugin.js';

/** Endpoint values of the core itself, by number (assembly/columns/values.ts). */
const ENDPOINT_VALUES = {
  'active-requests': CORE.VALUE_ACTIVE_REQUESTS,
  'active-tokens': CORE.VALUE_ACTIVE_TOKENS,
  'waiting-queue': CORE.VALUE_WAITING,
  'running-requests': CORE.VALUE_RUNNING,
  'kv-cache-utilization': CORE.VALUE_KV_USAGE,
} as const;

/** Number of an endpoint value in a program: one of the core's own, or an attribute by its key. */
export function valueSource(attribute: string, context: CompileContext): number {
  if (Object.hasOwn(ENDPOINT_VALUES, attribute)) return ENDPOINT_VALUES[attribute as keyof typeof ENDPOINT_VALUES];
  return CORE.VALUE_ATTRIBUTE + context.attribute(attribute);
}

/** List of the names for the descriptions of parameters. */
export const VALUE_NAMES = Object.keys(ENDPOINT_VALUES).join(', ');
