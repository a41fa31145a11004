import { DEFAULT_PARSERS, isParserName } from '../request/dialects.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import type { EndpointPickerConfig } from './schema.js';

/** The configured parsers, else those of the deprecated field `parser`, else the default ones. */
export function resolveParsers(
  config: EndpointPickerConfig,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): readonly LoadedPlugin[] {
  const listed = config.requestHandler?.parsers ?? [];
  if (config.parser !== undefined) {
    const used = listed.length > 0 ? ', and ignored because that is set' : '';
    warnings.push(document.warning(['parser'], `is deprecated: use requestHandler.parsers${used}`));
  }
  const resolve = (name: string, path: Path) => {
    // The default parsers need not be listed in plugins to be named.
    if (isParserName(name) && DEFAULT_PARSERS.includes(name)) plugins.ensure(name);
    return plugins.resolve(name, ['parser'], path);
  };
  if (listed.length > 0) {
    return listed.map(({ pluginRef }, index) => resolve(pluginRef, ['requestHandler', 'parsers', index, 'pluginRef']));
  }
  if (config.parser !== undefined) return [resolve(config.parser.pluginRef, ['parser', 'pluginRef'])];
  return DEFAULT_PARSERS.map((type) => plugins.ensure(type));
}
