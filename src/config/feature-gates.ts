import { didYouMean } from '../runtime/nearest-name.js';
import type { ConfigurationDocument } from './document.js';
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

/** A gate that an entry sets. */
export interface GateEntry {
  readonly name: string;
  readonly on: boolean;
}

/**
 * Reads `name`, `name=true` or `name=false`.
 * @param refuse makes the error of an unknown text
 */
export function parseGate(entry: string, refuse: (problem: string) => Error): GateEntry {
  const [name = '', ...rest] = entry.split('=');
  if (!GATES.has(name)) {
    const hint = didYouMean(name, GATES.keys()) || `; known: ${[...GATES.keys()].join(', ')}`;
    throw refuse(`unknown feature gate "${name}"${hint}`);
  }
  const on = rest.length === 0 ? true : BOOLEANS.get(rest.join('='));
  if (on === undefined) throw refuse(`feature gate ${name} must be true or false, got ${shown(rest.join('='))}`);
  return { name, on };
}

/**
 * All gates with their values; of several entries for a gate the last counts.
 * @param above entries that go before those of the document (`--feature-gates`)
 */
export function resolveFeatureGates(
  entries: readonly string[],
  above: readonly GateEntry[],
  document: ConfigurationDocument,
): ReadonlyMap<string, boolean> {
  const written = entries.map((entry, index) =>
    parseGate(entry, (problem) => document.error(['featureGates', index], problem)),
  );
  return new Map([...GATES, ...[...written, ...above].map(({ name, on }) => [name, on] as const)]);
}
