/** Label value for all values beyond a bound. */
export const OTHER = 'other';

/** Bound on the different values of a label that clients choose; further ones count as `other`. */
export const LABEL_VALUES_MAX = 1000;

/** Admits the first `limit` different values of a label and returns `other` for every later one. */
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
