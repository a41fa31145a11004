import { z } from 'zod';
import type { ConfigurationDocument, Path } from './document.js';
import type { ConfigurationError } from './error.js';
import { didYouMean } from './nearest-name.js';

type Issue = z.core.$ZodIssue;

/**
 * `data` checked against `schema`, defaults filled in. Throws the first problem as a ConfigurationError that points into
 * `document`; `data` stands there at `path`. `subject` (a plugin type) goes before the message.
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
  throw issueError(result.error.issues[0]!, schema, data, document, path, subject);
}

/** All errors that `validate` would throw one by one, in the order of the schema. */
export function violations(
  schema: z.ZodType,
  data: unknown,
  document: ConfigurationDocument,
  path: Path = [],
  subject = '',
): readonly ConfigurationError[] {
  const issues = schema.safeParse(data).error?.issues ?? [];
  return issues.map((issue) => issueError(issue, schema, data, document, path, subject));
}

function issueError(
  issue: Issue,
  schema: z.ZodType,
  data: unknown,
  document: ConfigurationDocument,
  base: Path,
  subject: string,
): ConfigurationError {
  const inner = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  const prefix = subject === '' ? '' : `${subject}: `;
  if (issue.code === 'unrecognized_keys') {
    const key = issue.keys[0]!;
    const message = unknownField(key, fieldsAt(schema, inner), subject, inner.length === 0);
    return document.error([...base, ...inner, key], message, 'key');
  }
  if (data === undefined && base.length === 0) return document.error([], emptyDocument(fieldsAt(schema, [])));
  const value = valueAt(data, inner);
  return document.error([...base, ...inner], prefix + describe(issue, value));
}

function unknownField(key: string, fields: readonly string[], subject: string, top: boolean): string {
  if (fields.length === 0 && top) return `${subject} takes no parameters`;
  if (fields.length === 0) return `${subject}: unknown field "${key}": nothing can be set here`;
  const hint = didYouMean(key, fields) || `; valid here: ${fields.join(', ')}`;
  return `${subject === '' ? '' : `${subject}: `}unknown field "${key}"${hint}`;
}

function describe(issue: Issue, value: unknown): string {
  if (value === undefined && issue.code !== 'custom') return 'is required';
  switch (issue.code) {
    case 'invalid_type':
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
    default:
      return isPlain(value) ? `${issue.message}, got ${shown(value)}` : issue.message;
  }
}

function emptyDocument(fields: readonly string[]): string {
  return `the document is empty: it needs ${fields.length === 0 ? 'a value' : `fields; valid here: ${fields.join(', ')}`}`;
}

/** The message that a schema gives for a value of another type; undefined = zod's own. */
function ownMessage({ message }: Issue): string | undefined {
  return message.startsWith('Invalid input') ? undefined : message;
}

function entries(count: number | bigint): string {
  return `${count} ${Number(count) === 1 ? 'entry' : 'entries'}`;
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
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function valueAt(data: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, part) =>
      value !== null && typeof value === 'object' ? (value as Record<string | number, unknown>)[part] : undefined,
    data,
  );
}

/** Names of the fields that the object schema at `path` inside `schema` knows. */
function fieldsAt(schema: z.ZodType, path: Path): readonly string[] {
  let current = unwrapped(schema);
  for (const part of path) {
    if (current instanceof z.ZodObject) current = unwrapped(current.shape[part]);
    else if (current instanceof z.ZodArray) current = unwrapped(current.element);
  }
  return current instanceof z.ZodObject ? Object.keys(current.shape) : [];
}

function unwrapped(schema: unknown): unknown {
  let current = schema;
  while (current instanceof z.ZodOptional || current instanceof z.ZodDefault) current = current.unwrap();
  return current;
}
