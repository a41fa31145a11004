const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const SPACE = 0x20;

/** Bytes of a field's name that are kept: the names that matter are shorter. */
const NAME_BYTES_MAX = 32;

/** Top level of a JSON object: the names of its fields, and how the value of `input` begins. */
class TopLevel {
  readonly fields = new Set<string>();
  /** First byte of the value of `input`. */
  input: number | undefined;
  /** First byte of its first element, where it is a list. */
  inputElement: number | undefined;
  #depth = 0;
  /** Whether the document is an object. */
  #isObject = false;
  #expectsName = false;
  #inText = false;
  #isName = false;
  #escaped = false;
  #name = '';

  read(byte: number): void {
    if (this.#inText) this.#readText(byte);
    else if (byte > SPACE) this.#readToken(byte);
  }

  #readText(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (byte === BACKSLASH) this.#escaped = true;
    else if (byte === QUOTE) this.#endText();
    else if (this.#isName && this.#name.length < NAME_BYTES_MAX) this.#name += String.fromCharCode(byte);
  }

  #endText(): void {
    this.#inText = false;
    if (this.#isName) this.fields.add(this.#name);
    this.#isName = false;
  }

  #readToken(byte: number): void {
    const atTop = this.#depth === 1;
    if (byte === COMMA || byte === COLON) {
      if (atTop) this.#expectsName = this.#isObject && byte === COMMA;
      return;
    }
    if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) {
      this.#depth--;
      return;
    }
    if (!(atTop && this.#expectsName)) this.#beginValue(byte);
    if (byte === QUOTE) this.#beginText(atTop && this.#expectsName);
    else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) this.#open(byte);
  }

  #open(byte: number): void {
    this.#depth++;
    if (this.#depth === 1) this.#isObject = byte === OPENING_BRACE;
    this.#expectsName = this.#depth === 1 && this.#isObject;
  }

  #beginText(isName: boolean): void {
    this.#inText = true;
    this.#isName = isName;
    if (isName) this.#name = '';
  }

  #beginValue(byte: number): void {
    if (this.#name !== 'input') return;
    if (this.#depth === 1) this.input ??= byte;
    else if (this.#depth === 2 && this.input === OPENING_BRACKET) this.inputElement ??= byte;
  }
}

/**
 * Path that a body belongs to, by its fields: `messages` is a chat, `input` an embedding or a response, `prompt` a
 * completion. An embedding has `dimensions` or `encoding_format`, or a list of texts or tokens as its input.
 * @param chunks the whole body
 * @returns undefined = the fields say nothing
 */
export function pathOfBody(chunks: readonly Uint8Array[]): string | undefined {
  const top = new TopLevel();
  for (const chunk of chunks) for (const byte of chunk) top.read(byte);
  if (top.fields.has('messages')) return '/v1/chat/completions';
  if (top.fields.has('input')) return isEmbedding(top) ? '/v1/embeddings' : '/v1/responses';
  return top.fields.has('prompt') ? '/v1/completions' : undefined;
}

function isEmbedding({ fields, input, inputElement }: TopLevel): boolean {
  if (fields.has('dimensions') || fields.has('encoding_format')) return true;
  return input === OPENING_BRACKET && inputElement !== undefined && inputElement !== OPENING_BRACE;
}
