const PLACES = 64;
/** Longest text that is remembered. */
const LENGTH_MAX = 128;

/**
 * Decodes texts of UTF-8, of which many come again and again: paths, content types, models. A text that is remembered
 * is compared with the bytes and not made anew, which takes 80 ns and memory. Each place remembers its latest text.
 */
export class RememberedTexts {
  readonly #texts: string[] = new Array<string>(PLACES).fill('');

  read(bytes: Buffer, from: number, to: number): string {
    const length = to - from;
    if (length === 0) return '';
    if (length > LENGTH_MAX) return bytes.toString('utf8', from, to);
    const place = (length + bytes[from]! + 31 * bytes[to - 1]!) % PLACES;
    const known = this.#texts[place]!;
    if (isAt(known, bytes, from, length)) return known;
    const text = bytes.toString('utf8', from, to);
    // A text with as many characters as bytes is ASCII, or its bytes are not UTF-8; such bytes equal no other text's.
    if (text.length === length) this.#texts[place] = text;
    return text;
  }
}

function isAt(text: string, bytes: Buffer, from: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let i = 0; i < length; i++) if (text.charCodeAt(i) !== bytes[from + i]) return false;
  return true;
}
