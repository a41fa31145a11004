// Writes docs/plugins.md and the schemas of docs/ from the plugin definitions and the pools file: `npm run
// plugin-docs`. With --print the page goes to standard output instead.
//
// Everything on the page comes from the definitions of the built program, so it cannot say anything else than the
// loader does.
import { writeFileSync } from 'node:fs';
import { builtinPlugins } from '../dist/src/config/builtin-plugins.js';
import { type JsonSchema, parametersSchema } from '../dist/src/config/json-schema.js';
import type { PluginDefinition, PluginKind } from '../dist/src/scheduling/plugin.js';
import { poolsSchemaText, schemaText } from '../dist/tools/schema/schema.js';

const INTRODUCTION = `# Plugins

Every plugin type of the configuration, in the order of its kind. This page and the
[JSON Schema](endpoint-picker-config.schema.json) are written by \`npm run plugin-docs\` from the definitions that the
program loads with; \`pointsman schema\` prints the schema of the program at hand.

An Alpha type loads only with \`--allow-experimental-plugins\`. A deprecated type loads with a warning that names its
replacement. Where no source is named, the type is llm-d-router's, with its name, parameters, defaults and formula;
[compatibility](compatibility.md) lists the differences.`;

/** Chapters in the order of the page; kinds without an entry come behind them under their own name. */
const CHAPTERS: Readonly<Partial<Record<PluginKind, string>>> = {
  filter: 'Filters',
  scorer: 'Scorers',
  picker: 'Pickers',
  'profile-handler': 'Profile handlers',
  decider: 'Deciders of profile handlers',
  producer: 'Data producers',
  'header-processor': 'Header processors',
  screener: 'Screeners',
  admitter: 'Admitters',
  reporter: 'Reporters',
  parser: 'Parsers',
  discovery: 'Discovery',
  'data-source': 'Data sources',
  extractor: 'Extractors',
  'saturation-detector': 'Saturation detectors',
  'ordering-policy': 'Ordering policies',
  'fairness-policy': 'Fairness policies',
  'usage-limit-policy': 'Usage limit policies',
  'eviction-policy': 'Eviction policies',
  responder: 'Responders',
  'peer-discovery': 'Discovery of replicas',
  'replica-syncer': 'Replica syncers',
};

/** The page. A type of several kinds stands in the chapter of its first one. */
export function pluginPage(plugins: readonly PluginDefinition[] = builtinPlugins): string {
  const kinds = new Set<string>([...Object.keys(CHAPTERS), ...plugins.map(({ kinds: [first] }) => first!)]);
  const chapters = [...kinds]
    .map((kind) => ({ kind, members: plugins.filter(({ kinds: [first] }) => first === kind) }))
    .filter(({ members }) => members.length > 0)
    .map(({ kind, members }) =>
      chapter(
        kind,
        [...members].sort((a, b) => (a.type < b.type ? -1 : 1)),
      ),
    );
  return `${INTRODUCTION}\n\n${chapters.join('\n\n')}\n`;
}

function chapter(kind: string, members: readonly PluginDefinition[]): string {
  const title = CHAPTERS[kind as PluginKind] ?? kind;
  const rows = members.map((member) => [
    `[\`${member.type}\`](#${member.type})`,
    status(member),
    firstSentence(member),
  ]);
  return `## ${title}\n\n${table(['Type', 'Stability', 'In short'], rows)}\n\n${members.map(entry).join('\n\n')}`;
}

function status({ stability, deprecated }: PluginDefinition): string {
  return deprecated === undefined ? stability : `${stability}, deprecated`;
}

function firstSentence({ doc }: PluginDefinition): string {
  return /^.*?[.](?= |$)/s.exec(doc)?.[0] ?? doc;
}

function entry(definition: PluginDefinition): string {
  const { type, kinds, stability, deprecated, doc, source, produces, signals } = definition;
  const facts = [`Kind: ${kinds.join(', ')}`, `stability: ${stability}`];
  if (produces !== undefined) facts.push(`produces: ${produces.join(', ')}`);
  if (signals !== undefined) facts.push(`reads: ${signals.join(', ')}`);
  const replaced = deprecated === undefined ? [] : [`**Deprecated**: use \`${deprecated.replacement}\`.`];
  const from = `Source: ${source ?? 'llm-d-router'}.`;
  return [`### ${type}`, ...replaced, doc, `${facts.join(' · ')}. ${from}`, parameterTable(definition)].join('\n\n');
}

function parameterTable(definition: PluginDefinition): string {
  const rows = parameterRows(parametersSchema(definition), '');
  if (rows.length === 0) return 'No parameters.';
  return table(['Parameter', 'Type', 'Default', 'Meaning'], rows);
}

/** One row for each field, fields of lists and mappings behind their own row. */
function parameterRows(schema: JsonSchema, prefix: string): string[][] {
  const required = new Set((schema.required as string[] | undefined) ?? []);
  return Object.entries((schema.properties as Record<string, JsonSchema> | undefined) ?? {}).flatMap(
    ([name, field]) => {
      const path = `${prefix}${name}`;
      const row = [
        `\`${path}\``,
        typeText(field),
        defaultText(field, required.has(name)),
        String(field.description ?? ''),
      ];
      const items = field.items as JsonSchema | undefined;
      return [
        row,
        ...parameterRows(field, `${path}.`),
        ...(items === undefined ? [] : parameterRows(items, `${path}[].`)),
      ];
    },
  );
}

function defaultText(field: JsonSchema, required: boolean): string {
  if (field.default !== undefined) return `\`${JSON.stringify(field.default)}\``;
  return required ? 'required' : '–';
}

function typeText(field: JsonSchema): string {
  const choices = field.enum as readonly unknown[] | undefined;
  if (choices !== undefined) return choices.map((choice) => `\`${choice}\``).join(', ');
  const alternatives = field.anyOf as readonly JsonSchema[] | undefined;
  if (alternatives !== undefined) return alternatives.map(typeText).join(' or ');
  if (field.const !== undefined) return `\`${JSON.stringify(field.const)}\``;
  switch (field.type) {
    case 'integer':
      return `whole number${rangeText(field)}`;
    case 'number':
      return `number${rangeText(field)}`;
    case 'string':
      return field.minLength === 1 ? 'text, not empty' : 'text';
    case 'boolean':
      return 'true or false';
    case 'array':
      return `list of ${plural(field.items as JsonSchema | undefined)}`;
    default:
      return 'mapping';
  }
}

function plural(items: JsonSchema | undefined): string {
  if (items === undefined) return 'values';
  if (items.type === 'object') return 'mappings';
  const text = typeText(items);
  return text.startsWith('text') ? text.replace('text', 'texts') : text.replace('number', 'numbers');
}

function rangeText({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonSchema): string {
  const least = minimum !== undefined ? `≥ ${minimum}` : exclusiveMinimum !== undefined ? `> ${exclusiveMinimum}` : '';
  const most = maximum !== undefined ? `≤ ${maximum}` : exclusiveMaximum !== undefined ? `< ${exclusiveMaximum}` : '';
  const range = [least, most].filter((part) => part !== '').join(', ');
  return range === '' ? '' : ` ${range}`;
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}

if (process.argv[1] === import.meta.filename) {
  if (process.argv.includes('--print')) process.stdout.write(pluginPage());
  else {
    writeFileSync(new URL('../docs/plugins.md', import.meta.url), pluginPage());
    writeFileSync(new URL('../docs/endpoint-picker-config.schema.json', import.meta.url), schemaText());
    writeFileSync(new URL('../docs/pools.schema.json', import.meta.url), poolsSchemaText());
  }
}
