import { nearestName } from '../runtime/nearest-name.js';

/** A command line that cannot be used. The message is one line that names the flag and the remedy. */
export class FlagError extends Error {
  override readonly name = 'FlagError';
}

/** Error about a value that a flag cannot have. */
export function badValue(flag: string, expected: string, text: string, hint = ''): FlagError {
  return new FlagError(`--${flag}: ${expected}, got ${JSON.stringify(text)}${hint}`);
}

/** Error about an argument that belongs to no flag. */
export function unexpectedArgument(argument: string, hint: string): FlagError {
  return new FlagError(`unexpected argument ${JSON.stringify(argument)}${hint}`);
}

/** Bound on the flags that begin as the typed one and are named. */
const BEGINNINGS_MAX = 3;

/** Error about a flag that does not exist. `name` and `names` have no dashes; `see` says where all flags are listed. */
export function unknownFlag(name: string, names: readonly string[], see: string): FlagError {
  const nearest = nearestName(name, names);
  const begun = plain(name) === '' ? [] : names.filter((each) => plain(each).startsWith(plain(name)));
  const meant = begun.length > 0 ? begun.slice(0, BEGINNINGS_MAX) : nearest === undefined ? [] : [nearest];
  const hint = meant.length === 0 ? `; see ${see}` : `; did you mean ${meant.map((each) => `--${each}`).join(' or ')}?`;
  return new FlagError(`unknown flag --${name}${hint}`);
}

/** Letters and digits of a name: dashes and case are what is left out most. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}
