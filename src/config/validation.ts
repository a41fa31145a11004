import { z } from 'zod';
import { counted } from '../runtime/counted.js';
import { didYouMean, nearestName } from '../runtime/nearest-name.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { ConfigurationError } from './error.js';

type Issue = z.core.$ZodIssue;

/**
 * `data` checked against `schema`, defaults filled in. Throws the first problem as a ConfigurationError that points
 * into `document`; `data` stands there at `path`. `subject` (a plugin type) goes before the message.
 */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  data: unknown,
  document: ConfigurationDocument,
  path: Path = [],
  subject = '',
): z.output<Schema> {
  const result = schema.safeParse(data);
  if (result.success) return result.data;
  throw issueError(toldOf(result.error.issues, schema, data)[0]!, schema, data, document, path, subject);
}

/** All errors that `validate` would throw one by one, in the order of the schema, typos before what is missing. */
export function violations(
  schema: z.ZodType,
  data: unknown,
  document: ConfigurationDocument,
  path: Path = [],
  subject = '',
): readonly ConfigurationError[] {
  const issues = toldOf(schema.safeParse(data).error?.issues ?? [], schema, data);
  return issues.map((issue) => issueError(issue, schema, data, document, path, subject));
}

/**
 * The issues in the order in which they are told: an unknown field before those that are missing beside it. Left out
 * are missing fields that the issue of an unknown field names.
 */
function toldOf(issues: readonly Issue[], schema: z.ZodType, data: unknown): readonly Issue[] {
  const meant = new Set(
    issues.flatMap((issue) => {
      if (issue.code !== 'unrecognized_keys') return [];
      const fields = fieldsAt(schema, data, inDocument(issue.path));
      return issue.keys.map((key) => JSON.stringify([...issue.path, nearestName(key, fields)]));
    }),
  );
  const isTold = ({ path }: Issue) => meant.has(JSON.stringify(path)) && valueAt(data, inDocument(path)) === undefined;
  return typosFirst(
    issues.filter((issue) => !isTold(issue)),
    (path) => valueAt(data, path) === undefined,
  );
}

/** A field that is missing may be there under a name with a typo, which the schema checks last. */
function typosFirst(issues: readonly Issue[], isMissing: (path: Path) => boolean): readonly Issue[] {
  const mapping = (path: readonly PropertyKey[]) => JSON.stringify(path);
  const typos = Map.groupBy(
    issues.filter(({ code }) => code === 'unrecognized_keys'),
    ({ path }) => mapping(path),
  );
  const besides = ({ path }: Issue) =>
    path.length > 0 && isMissing(inDocument(path)) ? (typos.get(mapping(path.slice(0, -1))) ?? []) : [];
  return [...new Set(issues.flatMap((issue) => [...besides(issue), issue]))];
}

function inDocument(path: readonly PropertyKey[]): Path {
  return path.map((part) => (typeof part === 'symbol' ? String(part) : part));
}

function issueError(
  issue: Issue,
  schema: z.ZodType,
  data: unknown,
  document: ConfigurationDocument,
  base: Path,
  subject: string,
): ConfigurationError {
  const inner = inDocument(issue.path);
  const prefix = subject === '' ? '' : `${subject}: `;
  if (issue.code === 'unrecognized_keys') {
    const key = issue.keys[0]!;
    const fields = fieldsAt(schema, data, inner);
    const bare = fields.length === 0 && inner.length === 0 && subject !== '';
    const message = bare ? `${subject} takes no parameters` : prefix + unknownField(key, fields);
    return document.error([...base, ...inner, key], message, 'key');
  }
  if (data === undefined && base.length === 0) return document.error([], emptyDocument(fieldsAt(schema, data, [])));
  const value = valueAt(data, inner);
  return document.error([...base, ...inner], prefix + describe(issue, value));
}

function unknownField(key: string, fields: readonly string[]): string {
  if (fields.length === 0) return `unknown field "${key}": nothing can be set here`;
  return `unknown field "${key}"${didYouMean(key, fields) || `; valid here: ${fields.join(', ')}`}`;
}

function describe(issue: Issue, value: unknown): string {
  if (value === undefined && issue.code !== 'custom') return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      if (typeof value === 'number' && !Number.isFinite(value)) return `expected a finite number, got ${shown(value)}`;
      return `${ownMessage(issue) ?? `expected ${article(issue.expected)}`}, got ${shown(value)}`;
    case 'too_small':
      if (issue.origin === 'string') return 'must not be empty';
      if (Array.isArray(value)) return `must have at least ${entries(issue.minimum)}, got ${value.length}`;
      return `must be ${issue.inclusive ? 'at least' : 'greater than'} ${issue.minimum}, got ${shown(value)}`;
    case 'too_big':
      if (typeof value === 'string') return `must have at most ${issue.maximum} characters, got ${value.length}`;
      if (Array.isArray(value)) return `must have at most ${entries(issue.maximum)}, got ${value.length}`;
      return `must be ${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}, got ${shown(value)}`;
    case 'invalid_value': {
      const names = issue.values.map(String);
      const hint = typeof value === 'string' ? didYouMean(value, names) : '';
      return `expected one of ${names.join(', ')}, got ${shown(value)}${hint}`;
    }
    case 'invalid_key':
      return `${issue.issues[0]?.message}, got ${shown(issue.path.at(-1))}`;
    default:
      return isPlain(value) ? `${issue.message}, got ${shown(value)}` : issue.message;
  }
}

function emptyDocument(fields: readonly string[]): string {
  return (
    'the document is empty: it needs ' +
    `${fields.length === 0 ? 'a value' : `fields; valid here: ${fields.join(', ')}`}`
  );
}

/** The message that a schema gives for a value of another type; undefined = zod's own. */
function ownMessage({ message }: Issue): string | undefined {
  return message.startsWith('Invalid input') ? undefined : message;
}

function entries(count: number | bigint): string {
  return counted(Number(count), 'entry', 'entries');
}

const EXPECTED: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
};

function article(expected: string): string {
  return EXPECTED[expected] ?? expected;
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** A value as messages show it, at most about 60 characters long. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value !== null && typeof value === 'object') return 'a mapping';
  // JSON has no such numbers; it would contain null.
  const isEndless = typeof value === 'number' && !Number.isFinite(value);
  const text = isEndless ? String(value) : (JSON.stringify(value) ?? 'nothing');
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function valueAt(data: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, part) =>
      value !== null && typeof value === 'object' ? (value as Record<string | number, unknown>)[part] : undefined,
    data,
  );
}

/** Names of the fields that the object schema at `path` inside `schema` knows; `data` decides between alternatives. */
function fieldsAt(schema: z.ZodType, data: unknown, path: Path): readonly string[] {
  let current = chosen(schema, data);
  for (const [depth, part] of path.entries()) {
    current = chosen(inside(current, part), valueAt(data, path.slice(0, depth + 1)));
  }
  return current instanceof z.ZodObject ? Object.keys(current.shape) : [];
}

/** Schema of the value under `part`; undefined = the schema says nothing of it. */
export function inside(schema: unknown, part: string | number): unknown {
  if (schema instanceof z.ZodObject) return schema.shape[part];
  if (schema instanceof z.ZodArray) return schema.element;
  if (schema instanceof z.ZodRecord) return schema.valueType;
  return undefined;
}

/** The schema under defaults and the like; of alternatives with a field that tells them apart, the one of `data`. */
function chosen(schema: unknown, data: unknown): unknown {
  let current = schema;
  while (isWrapper(current)) current = current.unwrap();
  if (!(current instanceof z.ZodDiscriminatedUnion)) return current;
  const { options, def } = current;
  const kind = valueAt(data, [def.discriminator]);
  return chosen(
    options.find((option) => accepts(inside(option, def.discriminator), kind)),
    data,
  );
}

/** Whether a schema wraps another one, with the same fields. */
export function isWrapper(schema: unknown): schema is { unwrap(): unknown } {
  return WRAPPERS.some((wrapper) => schema instanceof wrapper);
}

const WRAPPERS = [z.ZodLazy, z.ZodOptional, z.ZodNullable, z.ZodDefault, z.ZodPrefault, z.ZodReadonly] as const;

function accepts(schema: unknown, value: unknown): boolean {
  return schema instanceof z.ZodType && schema.safeParse(value).success;
}
