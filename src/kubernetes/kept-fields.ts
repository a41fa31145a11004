/**
 * Kept fields of a JSON object: `true` = the whole value, else the listed fields of it. Holds for each element of an
 * array.
 */
export interface KeptFields {
  readonly [field: string]: KeptFields | true;
}

/** Fields that are kept by either one. */
export function unionOfFields(a: KeptFields, b: KeptFields): KeptFields {
  const union = new Map(Object.entries(a));
  for (const [field, kept] of Object.entries(b)) {
    const other = union.get(field);
    union.set(field, other === undefined || kept === true ? kept : other === true ? true : unionOfFields(other, kept));
  }
  return Object.fromEntries(union);
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const [ARRAY_OPEN, ARRAY_CLOSE] = [0x5b, 0x5d];
const [OBJECT_OPEN, OBJECT_CLOSE] = [0x7b, 0x7d];
/** No byte of JSON's white space is above it. */
const SPACE = 0x20;
const KEPT_BYTES_START = 16 * 1024;
/** Room for kept parts that stays between two texts. */
const KEPT_BYTES_SPARE_MAX = 64 * 1024;

/**
 * Reads JSON without the fields that are not kept. A pod has 5 to 20 KB, of which one is read: the rest costs no
 * memory, and less time than `JSON.parse` needs for it.
 */
export class KeptFieldsReader {
  readonly #kept: KeptFields;
  #json: Buffer = Buffer.alloc(0);
  #at = 0;
  #out = Buffer.allocUnsafeSlow(KEPT_BYTES_START);
  #outAt = 0;

  constructor(kept: KeptFields) {
    this.#kept = kept;
  }

  /** @throws SyntaxError on a text that is no JSON; in passed-over values only brackets and strings are checked */
  parse(json: Buffer): unknown {
    this.#json = json;
    this.#at = 0;
    this.#outAt = 0;
    // A text without the shape of JSON is left to JSON.parse, which names the fault.
    const whole = this.#value(this.#kept) && this.#blank() === undefined;
    const text = whole ? this.#out.toString('utf8', 0, this.#outAt) : json.toString('utf8');
    this.#json = Buffer.alloc(0);
    if (this.#out.length > KEPT_BYTES_SPARE_MAX) this.#out = Buffer.allocUnsafeSlow(KEPT_BYTES_START);
    return JSON.parse(text) as unknown;
  }

  /** Next byte that is not blank; undefined at the end. */
  #blank(): number | undefined {
    while (this.#json[this.#at]! <= SPACE) this.#at++;
    return this.#json[this.#at];
  }

  #value(kept: KeptFields | true): boolean {
    const first = this.#blank();
    if (kept === true || (first !== OBJECT_OPEN && first !== ARRAY_OPEN)) return this.#copyValue();
    return first === OBJECT_OPEN ? this.#object(kept) : this.#array(kept);
  }

  #copyValue(): boolean {
    const start = this.#at;
    if (!this.#passValue()) return false;
    this.#copy(start, this.#at);
    return true;
  }

  #object(kept: KeptFields): boolean {
    this.#put(OBJECT_OPEN);
    this.#at++;
    let first = true;
    if (this.#blank() !== OBJECT_CLOSE) {
      do {
        if (this.#blank() !== QUOTE) return false;
        const start = this.#at;
        if (!this.#passString()) return false;
        const end = this.#at;
        if (this.#blank() !== COLON) return false;
        this.#at++;
        const own = this.#ownFields(kept, start, end);
        if (own === undefined) {
          this.#blank();
          if (!this.#passValue()) return false;
          continue;
        }
        if (!first) this.#put(COMMA);
        first = false;
        this.#copy(start, end);
        this.#put(COLON);
        if (!this.#value(own)) return false;
      } while (this.#passComma());
    }
    return this.#close(OBJECT_CLOSE);
  }

  /** Kept fields of the field with the name between these quotes; undefined = nothing. */
  #ownFields(kept: KeptFields, start: number, end: number): KeptFields | true | undefined {
    const raw = this.#json.toString('utf8', start + 1, end - 1);
    const name = raw.includes('\\') ? unescaped(`"${raw}"`) : raw;
    return Object.hasOwn(kept, name) ? kept[name] : undefined;
  }

  #array(kept: KeptFields): boolean {
    this.#put(ARRAY_OPEN);
    this.#at++;
    if (this.#blank() !== ARRAY_CLOSE) {
      do if (!this.#value(kept)) return false;
      while (this.#passComma() && this.#put(COMMA));
    }
    return this.#close(ARRAY_CLOSE);
  }

  #close(bracket: number): boolean {
    if (this.#blank() !== bracket) return false;
    this.#at++;
    return this.#put(bracket);
  }

  #passComma(): boolean {
    if (this.#blank() !== COMMA) return false;
    this.#at++;
    return true;
  }

  /** Passes over one value, from its first byte. False at an end inside it. */
  #passValue(): boolean {
    const first = this.#json[this.#at];
    if (first === QUOTE) return this.#passString();
    if (first === OBJECT_OPEN || first === ARRAY_OPEN) return this.#passNested();
    const start = this.#at;
    while (!isEndOfWord(this.#json[this.#at])) this.#at++;
    return this.#at > start;
  }

  /** Passes over an object or array, from its opening bracket to behind the closing one. */
  #passNested(): boolean {
    const json = this.#json;
    let depth = 0;
    for (let at = this.#at; at < json.length; at++) {
      const byte = json[at]!;
      if (byte === QUOTE) at = endOfString(json, at);
      else if (byte === OBJECT_OPEN || byte === ARRAY_OPEN) depth++;
      else if ((byte === OBJECT_CLOSE || byte === ARRAY_CLOSE) && --depth === 0) {
        this.#at = at + 1;
        return true;
      }
    }
    return false;
  }

  /** Passes over a string, from its opening quote to behind the closing one. */
  #passString(): boolean {
    const end = endOfString(this.#json, this.#at);
    this.#at = end + 1;
    return end < this.#json.length;
  }

  #put(byte: number): true {
    this.#room(1);
    this.#out[this.#outAt++] = byte;
    return true;
  }

  #copy(start: number, end: number): void {
    this.#room(end - start);
    this.#json.copy(this.#out, this.#outAt, start, end);
    this.#outAt += end - start;
  }

  #room(bytes: number): void {
    if (this.#outAt + bytes <= this.#out.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#outAt + bytes));
    this.#out.copy(larger, 0, 0, this.#outAt);
    this.#out = larger;
  }
}

/** Place of the closing quote; the length of the text when there is none. */
function endOfString(json: Buffer, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  return json.length;
}

function isEndOfWord(byte: number | undefined): boolean {
  if (byte === undefined || byte <= SPACE) return true;
  return byte === COMMA || byte === OBJECT_CLOSE || byte === ARRAY_CLOSE;
}

/** Name of a field that is written with escapes; empty when they are wrong. */
function unescaped(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return '';
  }
}
