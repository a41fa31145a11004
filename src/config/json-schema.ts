import { z } from 'zod';
import type { PluginDefinition } from '../scheduling/plugin.js';
import { MOVED_FIELDS } from './api-versions.js';
import type { Path } from './document.js';
import { poolsFile } from './pools-file.js';
import { endpointPickerConfig } from './schema.js';

/** A JSON Schema (draft 2020-12) or a part of one, as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Bounds for "any whole number" say nothing to a reader. */
const UNBOUNDED = [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];

/** JSON Schema of the parameters of one plugin type, as a user may write them: fields with a default are optional. */
export function parametersSchema(definition: PluginDefinition): JsonSchema {
  return schemaOf(definition.parameters);
}

/**
 * JSON Schema of an EndpointPickerConfig with the parameters of every plugin type of `registry`. It holds a file to its
 * shape, names, types and ranges; what spans several fields (references, rules between parameters) is checked at load.
 */
export function configurationSchema(registry: readonly PluginDefinition[]): JsonSchema {
  const schema = withOlderPlaces(schemaOf(endpointPickerConfig)) as Entry;
  const plugins = schema.properties.plugins!;
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'EndpointPickerConfig',
    description: 'Configuration of an endpoint picker: pointsman --config-file.',
    ...schema,
    properties: {
      ...schema.properties,
      plugins: { ...plugins, items: pluginSchema(plugins.items as Entry, registry) },
    },
    $defs: Object.fromEntries(registry.map((definition) => [definition.type, parametersSchema(definition)])),
  };
}

/** The schema with the places that fields had in older versions, which are converted when a file is loaded. */
function withOlderPlaces(schema: JsonSchema): JsonSchema {
  const older = structuredClone(schema) as JsonSchema;
  for (const { from, to } of MOVED_FIELDS) {
    const owner = schemaAt(older, from.slice(0, -1)) as { readonly properties: Record<string, JsonSchema> };
    const description = `In llm-d.ai/v1: ${to.filter((part) => typeof part === 'string').join('.')}.`;
    owner.properties[String(from.at(-1))] = { ...schemaAt(schema, to), description, deprecated: true };
  }
  return older;
}

function schemaAt(schema: JsonSchema, path: Path): JsonSchema {
  return path.reduce<JsonSchema>(
    (part, key) => (typeof key === 'number' ? (part.items as JsonSchema) : (part as Entry).properties[key]!),
    schema,
  );
}

/** JSON Schema of a pools file. The `configuration` of a pool is checked by `configurationSchema` alone. */
export function poolsSchema(): JsonSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Pools',
    description: 'Pools of one picker process: pointsman --pools.',
    ...schemaOf(poolsFile()),
  };
}

type Entry = JsonSchema & { readonly properties: Readonly<Record<string, JsonSchema>> };

/** An entry of `plugins`: the type is one of the registry's, and the type decides on the parameters. */
function pluginSchema(entry: Entry, registry: readonly PluginDefinition[]): JsonSchema {
  const { type, ...properties } = entry.properties;
  return {
    ...entry,
    properties: {
      type: { description: type!.description, type: 'string', anyOf: registry.map(typeChoice) },
      ...properties,
    },
    allOf: registry.map(({ type: name }) => ({
      if: { properties: { type: { const: name } }, required: ['type'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      then: { properties: { parameters: { $ref: `#/$defs/${name}` } } },
    })),
  };
}

function typeChoice({ type, kinds, stability, deprecated, doc }: PluginDefinition): JsonSchema {
  const description = `${kinds.join(', ')} (${stability}). ${doc}`;
  if (deprecated === undefined) return { const: type, description };
  return { const: type, description: `Deprecated: use ${deprecated.replacement}. ${description}`, deprecated: true };
}

function schemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _draft, ...rest } = z.toJSONSchema(schema, { io: 'input' }) as JsonSchema;
  return plain(rest) as JsonSchema;
}

/** The schema without keywords that only say how it was made. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).filter(([key, item]) => !isNoise(key, item));
  return Object.fromEntries(entries.map(([key, item]) => [key, plain(item)]));
}

function isNoise(key: string, value: unknown): boolean {
  if (key === 'minimum' || key === 'maximum') return UNBOUNDED.includes(value as number);
  // A map's keys are strings whether this is said or not.
  return key === 'propertyNames' && JSON.stringify(value) === '{"type":"string"}';
}
