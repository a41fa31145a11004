/** What an entry costs beside its text and ids: its places in the map, measured roughly. */
const ENTRY_BYTES = 160;

/** Token ids by text, the least recently used forgotten first. */
export class SegmentCache {
  readonly #bytesMost: number;
  readonly #entries = new Map<string, Uint32Array>();
  #bytes = 0;

  constructor(bytesMost: number) {
    this.#bytesMost = bytesMost;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The ids of a text, made by `make` when they are not known. */
  ids(text: string, make: (text: string) => Uint32Array): Uint32Array {
    const known = this.#entries.get(text);
    if (known !== undefined) {
      // A map keeps the order of insertion: the front is what was used longest ago.
      this.#entries.delete(text);
      this.#entries.set(text, known);
      return known;
    }
    const made = make(text);
    this.#keep(text, made);
    return made;
  }

  #keep(text: string, ids: Uint32Array): void {
    const bytes = costOf(text, ids);
    if (bytes > this.#bytesMost) return;
    this.#entries.set(text, ids);
    this.#bytes += bytes;
    for (const [oldest, old] of this.#entries) {
      if (this.#bytes <= this.#bytesMost) return;
      this.#entries.delete(oldest);
      this.#bytes -= costOf(oldest, old);
    }
  }
}

function costOf(text: string, ids: Uint32Array): number {
  return text.length * 2 + ids.byteLength + ENTRY_BYTES;
}
