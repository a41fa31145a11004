import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { findings } from '../../dist/src/config/findings.js';
import { BUILTIN_ENGINES } from '../../dist/src/pool/engines/builtin-engines.js';

/** All that the picker finds wrong with a configuration; empty when it loads without a word. */
export function complaints(text: string, allowExperimental = false): string[] {
  const options = { registry: builtinPlugins, allowExperimental, engines: BUILTIN_ENGINES };
  const { errors, warnings } = findings({ text }, options);
  return [...errors.map(({ message }) => message), ...warnings];
}
