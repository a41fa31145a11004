import { builtinPlugins } from '../config/builtin-plugins.js';
import { loadPluginModules, resolvePluginModule } from '../config/plugin-modules.js';
import type { PluginDefinition } from '../scheduling/plugin.js';

/** Plugin modules, and all definitions that there are with them. */
export interface PluginRegistry {
  /** Addresses, for threads that load the modules themselves. */
  readonly modules: readonly string[];
  readonly registry: readonly PluginDefinition[];
}

/**
 * The built-in plugins and those of `--plugin`, whose paths count from the working directory.
 * @throws ConfigurationError as loadPluginModules
 */
export async function pluginRegistry(names: readonly string[]): Promise<PluginRegistry> {
  const modules = names.map((name) => resolvePluginModule(name, process.cwd()));
  return { modules, registry: [...builtinPlugins, ...(await loadPluginModules(modules, builtinPlugins))] };
}

/** Collects the values of an option that may be given several times. */
export function repeated(value: string, earlier: readonly string[]): readonly string[] {
  return [...earlier, value];
}
