const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const [ARRAY_OPEN, ARRAY_CLOSE] = [0x5b, 0x5d];
const [OBJECT_OPEN, OBJECT_CLOSE] = [0x7b, 0x7d];
/** The text in front of the array of a list's elements. */
const ITEMS = /[{,]\s*"items"\s*:\s*$/;
/** Depths of brackets: inside the list, inside its array of elements, inside one element. */
const [IN_LIST, IN_ITEMS, IN_ELEMENT] = [1, 2, 3];

/**
 * Cuts the objects in `items` out of a list while its bytes come: a page of 500 pods has 4 MB, which would otherwise be
 * held twice and parsed in one turn of the event loop.
 */
export class ListElements {
  readonly #take: (element: Buffer) => void;
  #around: Buffer[] = [];
  /** Pieces of the element that has begun. */
  #begun: Buffer[] = [];
  #depth = 0;
  #inItems = false;
  #inString = false;
  #escaped = false;

  /** @param take told the JSON of each element */
  constructor(take: (element: Buffer) => void) {
    this.#take = take;
  }

  /**
   * The list without its elements.
   * @throws SyntaxError on a text that is no JSON
   * @throws Error without a list of elements: unknown is not empty
   */
  rest(): unknown {
    const rest = JSON.parse(Buffer.concat(this.#around).toString('utf8')) as { readonly items?: unknown } | null;
    if (Array.isArray(rest?.items)) return rest;
    throw new Error(`the answer is no list: items is ${rest?.items === null ? 'null' : 'missing or no list'}`);
  }

  add(piece: Buffer): void {
    let start = 0;
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at]!;
      if (this.#inString) this.#passString(byte);
      else if (byte === QUOTE) this.#inString = true;
      else if (byte === OBJECT_OPEN || byte === ARRAY_OPEN) {
        this.#depth++;
        if (!this.#inItems && this.#opensItems(byte, piece.subarray(start, at))) {
          this.#around.push(piece.subarray(start, at + 1));
          this.#inItems = true;
        } else if (this.#inItems && this.#depth === IN_ELEMENT) start = at;
      } else if (byte === OBJECT_CLOSE || byte === ARRAY_CLOSE) {
        this.#depth--;
        if (!this.#inItems) continue;
        if (this.#depth === IN_ITEMS) this.#give(piece.subarray(start, at + 1));
        else if (this.#depth === IN_LIST) {
          this.#inItems = false;
          start = at;
        }
      }
    }
    if (!this.#inItems) this.#around.push(piece.subarray(start));
    else if (this.#depth >= IN_ELEMENT) this.#begun.push(piece.subarray(start));
  }

  #passString(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (byte === BACKSLASH) this.#escaped = true;
    else if (byte === QUOTE) this.#inString = false;
  }

  /** Whether the bracket opens the array of elements. */
  #opensItems(bracket: number, before: Buffer): boolean {
    if (bracket !== ARRAY_OPEN || this.#depth !== IN_ITEMS) return false;
    return ITEMS.test(Buffer.concat([...this.#around, before]).toString('utf8'));
  }

  #give(end: Buffer): void {
    const element = this.#begun.length === 0 ? end : Buffer.concat([...this.#begun, end]);
    this.#begun = [];
    this.#take(element);
  }
}
