import type { JsonSchema } from '../../dist/src/config/json-schema.js';

/** One mapping inside a document that knows its keys. */
export interface Section {
  /** As messages write it: `flowControl.priorityBands[0]`; empty = the top of the document. */
  readonly path: string;
  /** Keys that the section knows. */
  readonly keys: readonly string[];
  /** The smallest document that has the section, with `key` in it. */
  withKey(key: string): unknown;
}

type Fields = Readonly<Record<string, JsonSchema>>;
/** Makes the whole document of the value of one of its parts. */
type Around = (value: unknown) => unknown;

/** Every section of the documents that `schema` describes, references left out. */
export function sectionsOf(schema: JsonSchema, path = '', around: Around = (value) => value): readonly Section[] {
  const parts = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined;
  const own = schema.additionalProperties === false ? [section(schema, path, around)] : [];
  const below = Object.entries((schema.properties ?? {}) as Fields).flatMap(([key, field]) =>
    sectionsOf(field, path === '' ? key : `${path}.${key}`, (value) => around({ ...smallest(schema), [key]: value })),
  );
  const { items, additionalProperties: values } = schema as { items?: JsonSchema; additionalProperties?: JsonSchema };
  return [
    ...own,
    ...below,
    ...(items === undefined ? [] : sectionsOf(items, `${path}[0]`, (value) => around([value]))),
    ...(typeof values !== 'object' ? [] : sectionsOf(values, path === '' ? 'a' : `${path}.a`, (a) => around({ a }))),
    ...(parts ?? []).flatMap((part) => sectionsOf(part, path, around)),
  ];
}

function section(schema: JsonSchema, path: string, around: Around): Section {
  const withKey = (key: string) => around({ ...smallest(schema), [key]: 1 });
  return { path, keys: Object.keys((schema.properties ?? {}) as Fields), withKey };
}

/** A value of the schema with what it requires and nothing else. */
function smallest(schema: JsonSchema): object {
  const fields = (schema.properties ?? {}) as Fields;
  return Object.fromEntries(((schema.required ?? []) as readonly string[]).map((key) => [key, example(fields[key]!)]));
}

function example(schema: JsonSchema): unknown {
  const [first] = (schema.anyOf ?? schema.oneOf ?? schema.enum ?? schema.examples ?? []) as readonly unknown[];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined || schema.examples !== undefined) return first;
  if (first !== undefined) return example(first as JsonSchema);
  const type = schema.type as string;
  if (type === 'object') return smallest(schema);
  if (type === 'array')
    return Array.from({ length: Number(schema.minItems ?? 0) }, () => example(schema.items as JsonSchema));
  if (type === 'integer' || type === 'number') return Math.max(1, Number(schema.minimum ?? 1));
  return type === 'boolean' ? true : 'a'.repeat(Number(schema.minLength ?? 1));
}
