import type { ConfigurationDocument } from './document.js';
import { didYouMean } from './nearest-name.js';
import { shown } from './validation.js';

/** Feature gates and whether they are on by default. */
const GATES: ReadonlyMap<string, boolean> = new Map([
  ['flowControl', false],
  ['haPopulateNonLeaderDatastore', true],
]);

/** Spellings of a boolean that Go's strconv.ParseBool takes. */
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false] as const),
]);

/** All gates with their values, from entries `name`, `name=true` or `name=false`; of several for a gate the last. */
export function resolveFeatureGates(
  entries: readonly string[],
  document: ConfigurationDocument,
): ReadonlyMap<string, boolean> {
  const gates = new Map(GATES);
  for (const [index, entry] of entries.entries()) {
    const [name = '', ...rest] = entry.split('=');
    const path = ['featureGates', index];
    if (!GATES.has(name)) {
      const hint = didYouMean(name, GATES.keys()) || `; known: ${[...GATES.keys()].join(', ')}`;
      throw document.error(path, `unknown feature gate "${name}"${hint}`);
    }
    const value = rest.length === 0 ? true : BOOLEANS.get(rest.join('='));
    if (value === undefined) {
      throw document.error(path, `feature gate ${name} must be true or false, got ${shown(rest.join('='))}`);
    }
    gates.set(name, value);
  }
  return gates;
}
