/** The label value that stands for everything beyond a bound. */
export const OTHER = 'other';

/** Label values that differ per client are bounded: this many of each, then `other`. */
export const LABEL_VALUES_MAX = 1000;

/** Admits the first `limit` different values of a label and answers `other` to every later one. */
export class ValueCap {
  readonly #seen = new Set<string>();
  readonly #limit: number;

  constructor(limit: number = LABEL_VALUES_MAX) {
    this.#limit = limit;
  }

  admit(value: string): string {
    if (value === OTHER || this.#seen.has(value)) return value;
    if (this.#seen.size >= this.#limit) return OTHER;
    this.#seen.add(value);
    return value;
  }
}
