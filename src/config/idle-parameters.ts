import { z } from 'zod';
import type { PluginDefinition } from '../scheduling/plugin.js';
import { inside, isWrapper } from './validation.js';

/** A written parameter that is accepted and does nothing. */
export interface IdleParameter {
  readonly path: readonly (string | number)[];
  /** Reason, as the end of a sentence; '' = none. */
  readonly why: string;
}

/** Words of descriptions that say it, with the reason behind a colon. */
const IDLE = /\b(?:without|has no) effect(?:: ([^.]*)|, ([^.]*))?/i;

/** Parameters that are written and whose description says that they have no effect. Defaults may be written. */
export function idleParameters({ parameters }: PluginDefinition, given: unknown): readonly IdleParameter[] {
  return [...idleIn(parameters, given, [])];
}

function* idleIn(schema: unknown, value: unknown, path: IdleParameter['path']): Generator<IdleParameter> {
  let current = schema;
  for (;;) {
    const found = IDLE.exec(current instanceof z.ZodType ? (current.description ?? '') : '');
    if (found !== null && path.length > 0) {
      if (!isDefault(schema, value)) yield { path, why: found[1] ?? found[2] ?? '' };
      return;
    }
    if (!isWrapper(current)) break;
    current = current.unwrap();
  }
  if (typeof value !== 'object' || value === null) return;
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  for (const [key, part] of entries) yield* idleIn(inside(current, key), part, [...path, key]);
}

function isDefault(schema: unknown, value: unknown): boolean {
  const filled = schema instanceof z.ZodType ? schema.safeParse(undefined) : undefined;
  return filled?.success === true && JSON.stringify(filled.data) === JSON.stringify(value);
}
