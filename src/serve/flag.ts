import type { FlagParser } from './flag-values.js';
import { parseBoolean, parseOptionalText } from './flag-values.js';

/** One command-line flag. */
export interface Flag<Value> {
  readonly group: string;
  /** Placeholder of the value in the help; undefined = a boolean flag, which needs no value. */
  readonly placeholder: string | undefined;
  readonly initial: Value;
  /** The default as the help shows it; undefined = nothing worth showing. */
  readonly shown: string | undefined;
  readonly doc: string;
  /** The value by which the program behaves, whatever is given, and why; undefined = the flag has its effect. */
  readonly inert?: { readonly value: unknown; readonly why: string };
  /** Throws FlagError. A method, so that flags of different values fit one table. */
  parse(...given: Parameters<FlagParser<Value>>): Value;
}

export function flag<Value>(
  group: string,
  placeholder: string,
  initial: Value,
  shown: string | undefined,
  parse: FlagParser<Value>,
  doc: string,
): Flag<Value> {
  return { group, placeholder, initial, shown, doc, parse };
}

export function toggle(group: string, initial: boolean, doc: string): Flag<boolean> {
  return { group, placeholder: undefined, initial, shown: String(initial), doc, parse: parseBoolean };
}

export function optionalText(group: string, placeholder: string, doc: string): Flag<string | undefined> {
  return flag<string | undefined>(group, placeholder, undefined, undefined, parseOptionalText, doc);
}

type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** The values of a table's flags by name in camel case: sizes in bytes, durations in milliseconds. */
export type FlagValues<Table> = {
  readonly [Name in keyof Table & string as CamelCase<Name>]: Table[Name] extends Flag<infer Value> ? Value : never;
};
