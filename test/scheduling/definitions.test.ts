import { execFileSync } from 'node:child_process';
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
/** Bound on the schemas that definitions share and that loading makes: a duration, names of producers, …. */
const SHARED_SCHEMAS_MAX = 150;

/** Schemas that a process makes which loads the built-in plugins. */
function schemasOfLoading(): number {
  const plugins = new URL('../../dist/src/config/builtin-plugins.js', import.meta.url);
  const program = `
    import { z } from 'zod';
    let count = 0;
    z.config({ postProcessor: () => count++ });
    await import(${JSON.stringify(plugins.href)});
    console.log(count);`;
  const root = new URL('../..', import.meta.url);
  return Number(
    execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: root, encoding: 'utf8' }),
  );
}
const types = builtinPlugins.map(({ type }) => type);

describe('the built-in plugins', () => {
  it('the built-in plugins have different types', () => {
    expect(new Set(types).size).toBe(types.length);
  });

  it('loading the built-in plugins makes no schema of their parameters, reading one makes it once', () => {
    for (const definition of builtinPlugins) {
      expect(Object.getOwnPropertyDescriptor(definition, 'parameters')?.get, definition.type).toBeDefined();
      expect(definition.parameters).toBe(definition.parameters);
    }
    expect(schemasOfLoading()).toBeLessThan(SHARED_SCHEMAS_MAX);
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
