import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { type ReadName, readsOf } from '../../dist/src/core/operations.js';
import type { EndpointSignal } from '../../dist/src/scheduling/plugin.js';
import { LENIENT_PLUGINS } from './lenient-plugins.ts';

/** A column that an operation which goes by a signal reads. */
const COLUMN_OF: Readonly<Record<EndpointSignal, ReadName>> = {
  'waiting requests': 'waiting',
  'running requests': 'running',
  'KV usage': 'kvUsage',
  'LoRA adapters': 'adaptersRunning',
};
const types = builtinPlugins.map(({ type }) => type);

describe('the built-in plugins', () => {
  it('the built-in plugins have different types', () => {
    expect(new Set(types).size).toBe(types.length);
  });

  it.each(builtinPlugins.map((definition) => [definition.type, definition] as const))(
    '%s is documented, strict, and names an existing replacement when it is deprecated',
    (_type, definition) => {
      expect(definition.doc).not.toBe('');
      expect(definition.parameters).toBeInstanceOf(z.ZodObject);
      const { shape } = definition.parameters as z.ZodObject;
      for (const [field, schema] of Object.entries(shape)) {
        expect(schema.description ?? '', `${definition.type}.${field}`).not.toBe('');
      }
      const accepted = definition.parameters.safeParse({ 'no-such-field': 1 }).success;
      expect(accepted).toBe(LENIENT_PLUGINS.has(definition.type));
      if (definition.deprecated !== undefined) expect(types).toContain(definition.deprecated.replacement);
    },
  );

  it.each(builtinPlugins.map((definition) => [definition.type, definition] as const))(
    '%s compiles or fills a column exactly when it decides: a filter, scorer, picker or admitter',
    (_type, definition) => {
      const takesPart = definition.kinds.some((kind) => ['filter', 'scorer', 'picker', 'admitter'].includes(kind));
      if (!takesPart) expect(definition.compile).toBeUndefined();
      else expect(definition.compile ?? definition.host).toBeDefined();
    },
  );

  it.each(builtinPlugins.map((definition) => [definition.type, definition] as const))(
    '%s names its operations exactly when it compiles, and signals that they read',
    (_type, definition) => {
      const compiles = definition.compile !== undefined || definition.hostedFilter !== undefined;
      expect(definition.operations !== undefined).toBe(compiles);
      if (definition.operations === undefined) return;
      const reads = definition.operations.flatMap((code) => readsOf({ code, parameters: [] }));
      for (const signal of definition.signals ?? []) expect(reads).toContain(COLUMN_OF[signal]);
    },
  );

  it('the built-in plugins produce what they are the default producers of', () => {
    for (const definition of builtinPlugins) {
      for (const key of definition.defaultProducerOf ?? []) expect(definition.produces).toContain(key);
    }
  });
});
