import { resolve } from 'node:path';
import { z } from 'zod';
import { didYouMean } from '../runtime/nearest-name.js';
import type { ConfiguredPlugin, PluginDefinition, PluginKind } from '../scheduling/plugin.js';
import type { ConfigurationDocument, Path } from './document.js';
import { ConfigurationError } from './error.js';
import type { EndpointPickerConfig } from './schema.js';
import { inside, isWrapper, violations } from './validation.js';

/** A plugin of the configuration and where it stands there; plugins added by default stand nowhere. */
export interface LoadedPlugin extends ConfiguredPlugin {
  readonly path: Path | undefined;
}

type Fields = Record<string, unknown>;

/** A file or folder that a parameter names. */
export interface NamedFile {
  /** Path of the parameter in the document. */
  readonly path: Path;
  /** The name as written. */
  readonly given: string;
  readonly file: string;
}

/** The plugins of one configuration by name, in the order of the file, those added by default behind them. */
export class PluginSet {
  readonly warnings: string[] = [];
  readonly files: NamedFile[] = [];
  readonly #plugins = new Map<string, LoadedPlugin>();
  readonly #document: ConfigurationDocument;
  readonly #registry: readonly PluginDefinition[];
  readonly #allowExperimental: boolean;

  constructor(document: ConfigurationDocument, registry: readonly PluginDefinition[], allowExperimental: boolean) {
    this.#document = document;
    this.#registry = registry;
    this.#allowExperimental = allowExperimental;
  }

  /** All plugins, or those of one kind. */
  list(kind?: PluginKind): readonly LoadedPlugin[] {
    const all = [...this.#plugins.values()];
    return kind === undefined ? all : all.filter((plugin) => plugin.definition.kinds.includes(kind));
  }

  /** Loads the `plugins` section. Throws ConfigurationError at the first entry that cannot be used. */
  load(entries: EndpointPickerConfig['plugins']): void {
    for (const [index, entry] of entries.entries()) {
      const [problem] = this.#loadEntry(entry, index);
      if (problem !== undefined) throw problem;
    }
  }

  /** Loads the valid entries of the `plugins` section, and reports the others. */
  loadUsable(entries: EndpointPickerConfig['plugins']): readonly ConfigurationError[] {
    return entries.flatMap((entry, index) => this.#loadEntry(entry, index));
  }

  #loadEntry(entry: EndpointPickerConfig['plugins'][number], index: number): readonly ConfigurationError[] {
    const path = ['plugins', index];
    const definition = this.#registry.find((candidate) => candidate.type === entry.type);
    if (definition === undefined) return [this.#unknownType(entry.type, path)];
    const name = entry.name || entry.type;
    if (this.#plugins.has(name)) {
      const place = [...path, entry.name ? 'name' : 'type'];
      return [this.#document.error(place, `plugin name "${name}" is already taken: give this one another name`)];
    }
    const experimental = this.#experimental(name, definition, path);
    if (experimental !== undefined) return [experimental];
    const place = [...path, 'parameters'];
    const given = definition.parameters.safeParse(entry.parameters ?? {});
    if (!given.success) {
      return violations(definition.parameters, entry.parameters ?? {}, this.#document, place, entry.type);
    }
    this.#advise(name, definition, given.data, path);
    this.#adviseIdle(name, definition, entry.parameters ?? {}, place);
    const parameters = this.#withFiles(definition, given.data, place);
    const { fault, advice = [] } = definition.examine?.(parameters) ?? {};
    if (fault !== undefined) return [this.#document.error(place, `${entry.type}: ${fault}`)];
    this.warnings.push(...advice.map((text) => this.#document.warning(place, `${name}: ${text}`)));
    this.#plugins.set(name, { name, definition, parameters, path });
    return [];
  }

  /** The parameters with absolute paths. */
  #withFiles({ files = [] }: PluginDefinition, given: unknown, place: Path): unknown {
    if (files.length === 0) return given;
    const parameters = structuredClone(given) as Fields;
    for (const path of files) {
      const owner = path.slice(0, -1).reduce<Fields | undefined>((fields, key) => fields?.[key] as Fields, parameters);
      const key = path.at(-1)!;
      const written = owner?.[key];
      if (typeof written !== 'string' || written === '') continue;
      const file = resolve(this.#document.folder, written);
      owner![key] = file;
      this.files.push({ path: [...place, ...path], given: written, file });
    }
    return parameters;
  }

  #unknownType(type: string, path: Path): ConfigurationError {
    const hint = didYouMean(
      type,
      this.#registry.map((each) => each.type),
    );
    return this.#document.error([...path, 'type'], `unknown plugin type "${type}"${hint}`);
  }

  /** The plugin with the name of its type `type`, added with default parameters when there is none. */
  ensure(type: string): LoadedPlugin {
    const present = this.#plugins.get(type);
    if (present !== undefined) return present;
    const definition = this.#registry.find((candidate) => candidate.type === type);
    if (definition === undefined) throw new ConfigurationError(`the registry lacks the default plugin "${type}"`);
    const experimental = this.#experimental(type, definition, []);
    if (experimental !== undefined) throw experimental;
    const added: LoadedPlugin = {
      name: type,
      definition,
      parameters: definition.parameters.parse({}),
      path: undefined,
    };
    this.#plugins.set(type, added);
    return added;
  }

  /**
   * The plugin that the reference at `path` names. Throws ConfigurationError unless it exists and is of one of `kinds`.
   */
  resolve(name: string, kinds: readonly PluginKind[], path: Path): LoadedPlugin {
    const plugin = this.#plugins.get(name);
    if (plugin === undefined) throw this.#document.error(path, `plugin "${name}" is not defined${this.#remedy(name)}`);
    if (!plugin.definition.kinds.some((kind) => kinds.includes(kind))) {
      const is = plugin.definition.kinds.join(' and ');
      throw this.#document.error(path, `plugin "${name}" is of kind ${is}, expected ${kinds.join(', ')}`);
    }
    return plugin;
  }

  #remedy(name: string): string {
    if (this.#registry.some((definition) => definition.type === name)) return `: add "- type: ${name}" to plugins`;
    return didYouMean(name, this.#plugins.keys()) || ': add it to plugins';
  }

  #experimental(name: string, definition: PluginDefinition, path: Path): ConfigurationError | undefined {
    if (definition.stability !== 'Alpha' || this.#allowExperimental) return undefined;
    return this.#document.error(
      path,
      `plugin "${name}" of type "${definition.type}" has Alpha stability level, ` +
        'but command line flag --allow-experimental-plugins is not set',
    );
  }

  #advise(name: string, definition: PluginDefinition, parameters: unknown, path: Path): void {
    if (definition.deprecated !== undefined) {
      const text = `plugin type "${definition.type}" is deprecated: use "${definition.deprecated.replacement}"`;
      this.warnings.push(this.#document.warning([...path, 'type'], text));
    }
    for (const text of definition.advise?.(parameters) ?? []) {
      this.warnings.push(this.#document.warning([...path, 'parameters'], `${name}: ${text}`));
    }
  }

  /** Names written parameters without effect, but for those that the plugin's own advice names. */
  #adviseIdle(name: string, definition: PluginDefinition, given: unknown, place: Path): void {
    for (const { path, why } of idleParameters(definition, given)) {
      const parameter = path.join('.');
      const own = `${name}: `;
      const isNamed = this.warnings.some((text) => text.includes(own) && text.includes(String(path.at(-1))));
      if (isNamed) continue;
      const text = `${own}${parameter} has no effect${why === '' ? '' : `: ${why}`}`;
      this.warnings.push(this.#document.warning([...place, ...path], text));
    }
  }
}

/** A written parameter that is accepted and does nothing. */
interface IdleParameter {
  readonly path: readonly (string | number)[];
  /** Reason, as the end of a sentence; '' = none. */
  readonly why: string;
}

/** Words of descriptions that say it, with the reason behind a colon. */
const IDLE = /\b(?:without|has no) effect(?:: ([^.]*)|, ([^.]*))?/i;

/** Parameters that are written and whose description says that they have no effect. Defaults may be written. */
function idleParameters({ parameters }: PluginDefinition, given: unknown): readonly IdleParameter[] {
  return [...idleIn(parameters, given, [])];
}

function* idleIn(schema: unknown, value: unknown, path: IdleParameter['path']): Generator<IdleParameter> {
  let current = schema;
  for (;;) {
    const found = IDLE.exec(current instanceof z.ZodType ? (current.description ?? '') : '');
    if (found !== null && path.length > 0) {
      if (!isDefault(schema, value)) yield { path, why: found[1] ?? found[2] ?? '' };
      return;
    }
    if (!isWrapper(current)) break;
    current = current.unwrap();
  }
  if (typeof value !== 'object' || value === null) return;
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  for (const [key, part] of entries) yield* idleIn(inside(current, key), part, [...path, key]);
}

function isDefault(schema: unknown, value: unknown): boolean {
  const filled = schema instanceof z.ZodType ? schema.safeParse(undefined) : undefined;
  return filled?.success === true && JSON.stringify(filled.data) === JSON.stringify(value);
}
