/** Label value for all values that are not shown by name. */
export const OTHER = 'other';

const CHARACTERS_MAX = 1024;
// C0 and C1: a terminal or a log that shows the page would act on them.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const EVERY_CONTROL = new RegExp(CONTROL, 'g');

/** A text as a label value: at most 1,024 characters, with U+FFFD for each control character. */
export function labelValue(text: string): string {
  const cut = text.length > CHARACTERS_MAX ? text.slice(0, CHARACTERS_MAX) : text;
  return CONTROL.test(cut) ? cut.replace(EVERY_CONTROL, '\ufffd') : cut;
}

/** Bound on the different values of a label that a plugin sets; further ones count as `other`. */
const LABEL_VALUES_MAX = 100;

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
