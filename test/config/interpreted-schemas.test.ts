import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { interpretSchemas } from '../../dist/src/config/interpreted-schemas.js';

/** Whether checking with `schema` makes functions of text. */
function compiles(schema: z.ZodType, data: unknown): boolean {
  const { Function: own } = globalThis;
  let made = 0;
  const counted = new Proxy(own, {
    construct: (target, texts) => {
      made++;
      return Reflect.construct(target, texts);
    },
  });
  globalThis.Function = counted;
  try {
    schema.parse(data);
  } finally {
    globalThis.Function = own;
  }
  return made > 0;
}

describe('schemas of a start', () => {
  it('a schema that is made after interpretSchemas is interpreted, one before it is compiled', () => {
    const before = z.object({ name: z.string() });
    interpretSchemas();
    const after = z.object({ name: z.string() });
    expect(compiles(before, { name: 'a' })).toBe(true);
    expect(compiles(after, { name: 'a' })).toBe(false);
    expect(after.safeParse({ name: 1 }).success).toBe(false);
  });
});
