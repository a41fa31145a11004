import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { configurationSchema, type JsonSchema, parametersSchema } from '../../dist/src/config/json-schema.js';

const schema = configurationSchema(builtinPlugins) as JsonSchema & { $defs: Record<string, JsonSchema> };

/** Paths of fields, at any depth, that say nothing about themselves. */
function withoutDoc(part: JsonSchema, path: string): string[] {
  const fields = Object.entries((part.properties ?? {}) as Record<string, JsonSchema>);
  const items = part.items as JsonSchema | undefined;
  return [
    ...fields.flatMap(([name, field]) => [
      ...(field.description || field.$ref ? [] : [`${path}.${name}`]),
      ...withoutDoc(field, `${path}.${name}`),
    ]),
    ...(items === undefined ? [] : withoutDoc(items, `${path}[]`)),
  ];
}

function formOf(plugin: string, parameter: string): RegExp {
  const { properties } = schema.$defs[plugin] as { properties: Record<string, JsonSchema> };
  return new RegExp(properties[parameter]!.pattern as string);
}

describe('the JSON Schema of the configuration', () => {
  it('the JSON Schema of the configuration knows every plugin type with its parameters', () => {
    expect(Object.keys(schema.$defs)).toEqual(builtinPlugins.map(({ type }) => type));
  });

  it('the JSON Schema of the configuration marks a deprecated type and names its replacement', () => {
    const { items } = (schema.properties as Record<string, { items: { properties: { type: { anyOf: unknown[] } } } }>)
      .plugins!;
    expect(items.properties.type.anyOf).toContainEqual(
      expect.objectContaining({
        const: 'by-label',
        deprecated: true,
        description: expect.stringContaining('Deprecated: use label-selector-filter.'),
      }),
    );
  });

  it('the JSON Schema of the configuration has a description for every field of the file', () => {
    expect(withoutDoc(schema, '')).toEqual([]);
  });

  it.each(builtinPlugins)(
    'the JSON Schema of the configuration has a description for every parameter of $type',
    (definition) => {
      expect(withoutDoc(parametersSchema(definition), definition.type)).toEqual([]);
    },
  );

  it('the JSON Schema of the configuration says default, range and type of a parameter', () => {
    const { properties } = schema.$defs['prefix-cache-scorer'] as { properties: Record<string, JsonSchema> };
    expect(properties.matchLengthWeight).toMatchObject({ type: 'number', minimum: 0, maximum: 1, default: 0 });
  });

  it('the JSON Schema of the configuration requires no field that has a default', () => {
    expect(schema.$defs['file-discovery']).toMatchObject({ required: ['path'], additionalProperties: false });
    expect(schema.$defs['max-score-picker']).not.toHaveProperty('required');
  });

  it('the JSON Schema of the configuration takes durations and quantities by their form', () => {
    const form = formOf('utilization-detector', 'metricsStalenessThreshold');
    expect(['50ms', '1m30s', '0', '1.5h'].every((text) => form.test(text))).toBe(true);
    expect(['50', 'ms', '1 s', ''].some((text) => form.test(text))).toBe(false);
  });

  it('the JSON Schema of the configuration takes an empty duration where it is the default', () => {
    const form = formOf('metrics-data-source', 'interval');
    expect(['', '50ms', '0'].every((text) => form.test(text))).toBe(true);
    expect(['50', '1 s', ' '].some((text) => form.test(text))).toBe(false);
  });
});

describe('parameters of the sample configurations', () => {
  const folder = fileURLToPath(new URL('../../examples/', import.meta.url));
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml') && !name.startsWith('endpoints'));

  it.each(files)('%s is valid by the schema of each plugin', (file) => {
    const { plugins } = parse(readFileSync(`${folder}${file}`, 'utf8')) as {
      plugins: { type: string; parameters?: unknown }[];
    };
    for (const { type, parameters } of plugins) {
      const check = z.fromJSONSchema(schema.$defs[type] as Parameters<typeof z.fromJSONSchema>[0]);
      expect(check.safeParse(parameters ?? {}).error?.issues ?? []).toEqual([]);
    }
  });
});
