import { isIP, SocketAddress } from 'node:net';
import { isMap, isNode, isSeq, LineCounter, type ParsedNode, parseDocument, type YAMLMap } from 'yaml';
import { z } from 'zod';
import type { ModelRewrite } from '../../contract/endpoint.js';
import { didYouMean } from '../../runtime/nearest-name.js';
import { once } from '../../runtime/once.js';

/** Value of an address field: an IP in its canonical text (IPv6 without brackets), or a name to be resolved. */
type HostAddress = { readonly ip: string } | { readonly hostName: string };

// RFC 1123 with underscores, which container networks use, and an optional dot at the end.
const HOST_NAME =
  /^(?=.{1,253}\.?$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*\.?$/i;

/** Reads an address: IPv4, IPv6 with or without brackets, or a host name. Undefined = neither of them. */
function readHostAddress(text: string): HostAddress | undefined {
  const bracketed = text.startsWith('[') && text.endsWith(']');
  const plain = bracketed ? text.slice(1, -1) : text;
  // A zone (fe80::1%eth0) means something on one machine only: it cannot be a destination for a proxy.
  if (plain.includes('%')) return undefined;
  const version = isIP(plain);
  if (version === 6) return { ip: new SocketAddress({ address: plain, family: 'ipv6' }).address };
  if (bracketed) return undefined;
  if (version === 4) return { ip: plain };
  // Digits and dots alone are a mistyped IPv4 address, which resolvers would read in surprising ways.
  if (/^[0-9.]+$/.test(plain) || !HOST_NAME.test(plain)) return undefined;
  return { hostName: plain.toLowerCase() };
}

/** An endpoint of the file; a host name is not yet resolved. */
export interface FileEndpoint {
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  readonly host: HostAddress;
  readonly port: number;
  readonly labels: Readonly<Record<string, string>>;
  /** `file:line: entry "name"`, for what is reported about it later. */
  readonly origin: string;
}

export interface EndpointsFile {
  readonly endpoints: readonly FileEndpoint[];
  readonly objectives: ReadonlyMap<string, number>;
  readonly rewrites: readonly ModelRewrite[];
  /** One line for each entry that was left out. */
  readonly problems: readonly string[];
}

/** The file as a whole cannot be used: no list of endpoints can be taken from it. One line. */
export class BrokenFile extends Error {
  constructor(message: string) {
    super(flat(message));
  }
}

/** Keys of a file may hold line breaks; a report is one line. */
const flat = (text: string) => text.replace(/\p{Cc}+/gu, ' ');
const firstLine = (text: string) => text.replace(/\s*\n[\s\S]*$/, '').trim();
const name = z
  .union([z.string(), z.number()], 'must be a text')
  .transform(String)
  .refine((text) => /^[^\s/\p{Cc}]{1,253}$/u.test(text), 'must be 1 to 253 characters without blanks or "/"');
const wholeNumber = (min: number, max: number, hint: string) =>
  z.number(hint).refine((value) => Number.isInteger(value) && value >= min && value <= max, hint);

const PORT_HINT = 'must be a whole number from 1 to 65535';
const port = z
  .union([z.string(), z.number()], PORT_HINT)
  .refine((value) => /^[0-9]{1,5}$/.test(String(value)) && Number(value) >= 1 && Number(value) <= 65_535, PORT_HINT)
  .transform(Number);
const ADDRESS_HINT = 'must be an IPv4 address, an IPv6 address without zone, or a host name';
const address = z.string(ADDRESS_HINT).transform((text, context) => {
  const host = readHostAddress(text);
  if (host !== undefined) return host;
  context.addIssue({ code: 'custom', message: ADDRESS_HINT });
  return z.NEVER;
});
const labelValue = z.union([z.string(), z.number(), z.boolean()], 'must be a text').transform(String);

const endpointEntry = z.strictObject({
  name,
  namespace: name.default('default'),
  address,
  port,
  labels: z.record(z.string(), labelValue, 'must be a map of texts').default({}),
});
const PRIORITY_HINT = 'must be a whole number from -2147483648 to 2147483647';
const objectiveEntry = once(() =>
  z.strictObject({ name, priority: wholeNumber(-(2 ** 31), 2 ** 31 - 1, PRIORITY_HINT) }),
);
const rewriteEntry = once(() => {
  const nonEmpty = z.string('must be a text').min(1, 'must not be empty').max(1024, 'must be at most 1024 characters');
  return z.strictObject({
    name,
    models: z.array(nonEmpty, 'must be a list of model names').max(1000, 'must be at most 1000 names').default([]),
    targets: z
      .array(
        z.strictObject({
          model: nonEmpty,
          weight: wholeNumber(1, 1_000_000, 'must be a whole number from 1 to 1000000').optional(),
        }),
        'must be a list of { model, weight }',
      )
      .min(1, 'must name at least one target')
      .max(100, 'must be at most 100 targets'),
  });
});
const SECTIONS = ['endpoints', 'objectives', 'rewrites'];

/**
 * Reads an endpoints file (YAML, of which JSON is a part). Throws BrokenFile when the file as a whole is unusable; an
 * entry that is wrong in itself, or repeats an id, is left out and named in `problems`.
 * @param file its name in messages
 */
export function readEndpointsFile(text: string, file: string): EndpointsFile {
  const lines = new LineCounter();
  const { root, values } = readSections(text, file, lines);
  const problems: string[] = [];
  const read = <T>(section: string, schema: () => EntrySchema<T>, key: (entry: T) => string) =>
    readEntries(
      { file, lines, section, node: root.get(section, true), values: values[section], problems },
      schema,
      key,
    );

  const endpoints = read(
    'endpoints',
    () => endpointEntry,
    (entry) => `${entry.namespace}/${entry.name}`,
  );
  const objectives = read('objectives', objectiveEntry, (entry) => entry.name);
  const rewrites = read('rewrites', rewriteEntry, (entry) => entry.name);
  return {
    endpoints: endpoints.map(({ entry, id, origin }) => ({
      id,
      name: entry.name,
      namespace: entry.namespace,
      host: entry.address,
      port: entry.port,
      labels: entry.labels,
      origin,
    })),
    objectives: new Map(objectives.map(({ entry }) => [entry.name, entry.priority])),
    rewrites: rewrites.map(({ entry }, age) => ({ ...entry, age })),
    problems,
  };
}

interface Sections {
  /** With positions. */
  readonly root: YAMLMap<unknown, ParsedNode>;
  /** The same as plain values, aliases followed. */
  readonly values: Readonly<Record<string, unknown>>;
}

function readSections(text: string, file: string, lines: LineCounter): Sections {
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: true });
  const error = document.errors[0];
  if (error !== undefined) {
    const line = error.linePos?.[0].line ?? 1;
    const why = firstLine(error.message).replace(/ at line \d+, column \d+:?$/, '');
    throw new BrokenFile(`${file}:${line}: not valid YAML or JSON: ${why}`);
  }
  const root = document.contents;
  if (!isMap(root)) throw new BrokenFile(`${file}:1: must be a map that holds "endpoints:", as in endpoints: []`);
  for (const { key } of root.items) {
    const section = String(key);
    if (SECTIONS.includes(section)) continue;
    throw new BrokenFile(
      `${file}:${lineOf(key, lines)}: ${section}: is unknown: the sections are ${SECTIONS.join(', ')}`,
    );
  }
  if (!root.has('endpoints'))
    throw new BrokenFile(`${file}:1: endpoints: is missing: write endpoints: [] for an empty pool`);
  try {
    return { root: root as YAMLMap<unknown, ParsedNode>, values: document.toJS() };
  } catch (error) {
    // Aliases that multiply, or lists nested too deep.
    throw new BrokenFile(`${file}:1: cannot be read: ${firstLine(String(error))}`);
  }
}

interface Section {
  readonly file: string;
  readonly lines: LineCounter;
  readonly section: string;
  readonly node: unknown;
  readonly values: unknown;
  readonly problems: string[];
}

/** Schema of an entry, with its fields. */
type EntrySchema<T> = z.ZodType<T> & { readonly shape: Readonly<Record<string, unknown>> };

interface Entry<T> {
  readonly entry: T;
  readonly id: string;
  readonly origin: string;
}

/** @param schemaOf makes the schema, for a section that is there */
function readEntries<T>(where: Section, schemaOf: () => EntrySchema<T>, key: (entry: T) => string): Entry<T>[] {
  const { file, lines, section, node, values, problems } = where;
  if (node === undefined) return [];
  if (!isSeq(node) || !Array.isArray(values)) {
    throw new BrokenFile(`${file}:${lineOf(node, lines)}: ${section}: must be a list: write ${section}: [] for none`);
  }
  const schema = schemaOf();
  const read: Entry<T>[] = [];
  const seen = new Set<string>();
  for (const [i, item] of node.items.entries()) {
    const raw = values[i];
    const origin = `${file}:${lineOf(item, lines)}: ${section}[${i}]${nameOf(raw)}`;
    const result = schema.safeParse(raw);
    if (!result.success) {
      const issue = firstIssue(result.error.issues);
      const line = lineOf(deepest(item, issue.path), lines);
      problems.push(
        flat(`${file}:${line}: ${section}[${i}]${nameOf(raw)}: ${explain(issue, raw, Object.keys(schema.shape))}`),
      );
      continue;
    }
    const id = key(result.data);
    if (seen.has(id)) problems.push(`${origin}: "${id}" stands twice: rename or remove one of them`);
    else read.push({ entry: result.data, id, origin });
    seen.add(id);
  }
  return read;
}

/** An unknown field before a missing one: it is often the missing one, misspelled. */
function firstIssue(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue {
  return issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]!;
}

function explain(issue: z.core.$ZodIssue, raw: unknown, fields: readonly string[]): string {
  if (issue.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys;
    const hint = issue.path.length === 0 ? didYouMean(key, fields) : '';
    return `${[...issue.path, key].join('.')}: is an unknown field: correct or remove it${hint}`;
  }
  const field = issue.path.join('.');
  if (field === '') return 'must be a map of fields';
  let value: unknown = raw;
  for (const step of issue.path) value = (value as Record<PropertyKey, unknown> | null | undefined)?.[step];
  if (value === undefined) return `${field}: is missing: it ${issue.message}`;
  // JSON has no infinite numbers; it would contain null.
  const isEndless = typeof value === 'number' && !Number.isFinite(value);
  const shown = isEndless ? String(value) : (JSON.stringify(value) ?? String(value));
  return `${field}: ${shown.length > 80 ? `${shown.slice(0, 80)}…` : shown} ${issue.message}`;
}

function nameOf(raw: unknown): string {
  if (typeof raw !== 'object' || raw === null || !('name' in raw)) return '';
  return typeof raw.name === 'string' || typeof raw.name === 'number' ? ` ${JSON.stringify(String(raw.name))}` : '';
}

function deepest(item: unknown, path: readonly PropertyKey[]): unknown {
  let node = item;
  for (const step of path) {
    const next = isMap(node) || isSeq(node) ? node.get(step, true) : undefined;
    if (!isNode(next)) break;
    node = next;
  }
  return node;
}

function lineOf(node: unknown, lines: LineCounter): number {
  const start = isNode(node) ? node.range?.[0] : undefined;
  return start === undefined ? 1 : lines.linePos(start).line;
}
