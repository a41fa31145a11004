import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { errorMessage } from '../runtime/error-message.js';
import { messageWithPlace, placeIn } from '../runtime/error-place.js';
import type { PluginDefinition } from '../scheduling/plugin.js';
import { ConfigurationError } from './error.js';

/** Exports of a module of third-party plugins. */
interface PluginModule {
  readonly plugins?: unknown;
}

/**
 * Address of a module of third-party plugins: a path (`./file.js`, `/file.js`), from `folder`, or the name of a package
 * that is installed there.
 * @throws ConfigurationError with the wanted module and the reason of the failure.
 */
export function resolvePluginModule(name: string, folder: string): string {
  if (name.startsWith('file:')) return name;
  if (name.startsWith('.') || isAbsolute(name)) return pathToFileURL(resolve(folder, name)).href;
  try {
    return pathToFileURL(createRequire(join(folder, 'package.json')).resolve(name)).href;
  } catch (error) {
    const unexported = (error as NodeJS.ErrnoException).code === 'ERR_PACKAGE_PATH_NOT_EXPORTED';
    const why = unexported
      ? 'the package exports nothing under "default": give the path of its file'
      : `no such package from ${folder}: install it, or write a path as ./${name}`;
    throw new ConfigurationError(`--plugin ${name}: ${why}`);
  }
}

/**
 * The definitions of modules, in order.
 * @param modules addresses from resolvePluginModule
 * @param known types that exist already
 * @throws ConfigurationError naming the module, when it cannot be loaded or what it exports is no list of definitions.
 */
export async function loadPluginModules(
  modules: readonly string[],
  known: readonly PluginDefinition[],
): Promise<readonly PluginDefinition[]> {
  const types = new Set(known.map(({ type }) => type));
  const loaded: PluginDefinition[] = [];
  for (const address of modules) {
    for (const definition of definitionsOf(await load(address), address)) {
      if (types.has(definition.type)) {
        throw refused(address, `type "${definition.type}" exists already: give it another name`);
      }
      types.add(definition.type);
      loaded.push(definition);
    }
  }
  return loaded;
}

async function load(address: string): Promise<PluginModule> {
  try {
    return (await import(address)) as PluginModule;
  } catch (error) {
    const place = error instanceof SyntaxError ? syntaxPlace(error, address) : undefined;
    const why = place === undefined ? messageWithPlace(error) : `${place}: ${errorMessage(error)}`;
    throw refused(address, `cannot be loaded: ${why}`);
  }
}

/** Modules that cannot be parsed have no frame of their own on the stack: a check of the file shows the place. */
function syntaxPlace(error: SyntaxError, address: string): string | undefined {
  const known = placeIn(error.stack ?? '');
  if (known !== undefined || !address.startsWith('file:')) return known;
  const { stderr } = spawnSync(process.execPath, ['--check', fileURLToPath(address)], { encoding: 'utf8' });
  return placeIn(stderr);
}

function definitionsOf({ plugins }: PluginModule, address: string): readonly PluginDefinition[] {
  if (!Array.isArray(plugins) || plugins.length === 0) {
    throw refused(address, 'must export a list: export const plugins = [definePlugin({ … })]');
  }
  for (const [index, plugin] of (plugins as unknown[]).entries()) {
    const missing = missingField(plugin);
    if (missing !== undefined) throw refused(address, `plugins[${index}] ${missing}: make it with definePlugin({ … })`);
  }
  return plugins as PluginDefinition[];
}

/** Returns the first field that a definition lacks; JavaScript modules have no other type check. */
function missingField(plugin: unknown): string | undefined {
  if (typeof plugin !== 'object' || plugin === null) return 'is no object';
  const { type, kinds, stability, doc, parameters } = plugin as Partial<PluginDefinition>;
  if (typeof type !== 'string' || type === '') return 'has no type';
  if (!Array.isArray(kinds) || kinds.length === 0) return 'has no kinds';
  if (!['Stable', 'Beta', 'Alpha'].includes(stability as string)) return 'has no stability (Stable, Beta or Alpha)';
  if (typeof doc !== 'string') return 'has no doc';
  if (typeof (parameters as { safeParse?: unknown } | undefined)?.safeParse !== 'function') return 'has no parameters';
  return undefined;
}

function refused(address: string, why: string): ConfigurationError {
  return new ConfigurationError(`--plugin ${address}: ${why}`);
}
