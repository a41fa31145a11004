/**
 * Environment variables with their faults: for a bad value OpenTelemetry asks for a warning and the default, not an
 * end.
 */
export class Environment {
  readonly warnings: string[] = [];
  readonly #values: Readonly<Record<string, string | undefined>>;

  constructor(values: Readonly<Record<string, string | undefined>>) {
    this.#values = values;
  }

  /** Value of the first of these variables that has one; an empty one counts as absent. */
  text(...names: readonly string[]): string | undefined {
    return this.#first(names)?.[1];
  }

  choice<Choice extends string>(choices: readonly Choice[], ...names: readonly string[]): Choice | undefined {
    const [name, value] = this.#first(names) ?? [];
    if (value === undefined) return undefined;
    const found = choices.find((choice) => choice === value.toLowerCase());
    if (found === undefined) this.#warn(name!, value, `expected ${choices.join(', ')}`);
    return found;
  }

  boolean(...names: readonly string[]): boolean | undefined {
    const value = this.choice(['true', 'false'] as const, ...names);
    return value === undefined ? undefined : value === 'true';
  }

  /** A number in [least, most]. */
  number(min: number, max: number, ...names: readonly string[]): number | undefined {
    const [name, value] = this.#first(names) ?? [];
    if (value === undefined) return undefined;
    const number = Number(value);
    if (number >= min && number <= max) return number;
    this.#warn(name!, value, `expected a number from ${min} to ${max}`);
    return undefined;
  }

  /** Pairs in the form `name=value,name=value`, percent-encoded. */
  pairs(...names: readonly string[]): Map<string, string> {
    const pairs = new Map<string, string>();
    const [name, value] = this.#first(names) ?? [];
    for (const part of value?.split(',') ?? []) {
      const at = part.indexOf('=');
      const key = part.slice(0, Math.max(0, at)).trim();
      const text = decoded(part.slice(at + 1).trim());
      if (key !== '' && text !== undefined) pairs.set(key, text);
      // The value is left out: it may be a credential.
      else if (part.trim() !== '')
        this.warnings.push(`${name}: a part is ignored: expected name=value, percent-encoded`);
    }
    return pairs;
  }

  /** An absolute URL with http or https; `host:port` counts as http. */
  url(...names: readonly string[]): { readonly url: URL; readonly hasScheme: boolean } | undefined {
    const [name, value] = this.#first(names) ?? [];
    if (value === undefined) return undefined;
    const hasScheme = value.includes('://');
    const text = hasScheme ? value : `http://${value}`;
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url !== undefined && (url.protocol === 'http:' || url.protocol === 'https:')) return { url, hasScheme };
    this.#warn(name!, value, 'expected an address such as http://localhost:4317');
    return undefined;
  }

  #first(names: readonly string[]): readonly [name: string, value: string] | undefined {
    for (const name of names) {
      const value = this.#values[name]?.trim();
      if (value !== undefined && value !== '') return [name, value];
    }
    return undefined;
  }

  #warn(name: string, value: string, expected: string): void {
    this.warnings.push(`${name}=${value} is ignored: ${expected}`);
  }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
