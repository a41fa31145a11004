/** Estimated bytes of an entry besides its text and ids: its places in the map. */
const ENTRY_BYTES = 160;

interface Entry {
  readonly ids: Uint32Array;
  usedMs: number;
}

/** Token ids by text; the least recently used entry is dropped first. */
export class SegmentCache {
  readonly #bytesMax: number;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  /** @param now milliseconds of a clock that does not go back */
  constructor(bytesMax: number, now: () => number) {
    this.#bytesMax = bytesMax;
    this.#now = now;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Time of the last use of the least recently used entry; undefined = there is none. */
  get oldestMs(): number | undefined {
    return this.#entries.values().next().value?.usedMs;
  }

  /** The ids of a text; `make` is called for a new text. */
  ids(text: string, make: (text: string) => Uint32Array): Uint32Array {
    const known = this.#entries.get(text);
    if (known !== undefined) {
      // A map keeps the order of insertion, so the first entry is the least recently used.
      this.#entries.delete(text);
      this.#entries.set(text, known);
      known.usedMs = this.#now();
      return known.ids;
    }
    const made = make(text);
    this.#keep(text, made);
    return made;
  }

  #keep(text: string, ids: Uint32Array): void {
    const bytes = costOf(text, ids);
    if (bytes > this.#bytesMax) return;
    this.#entries.set(text, { ids, usedMs: this.#now() });
    this.#bytes += bytes;
    for (const [oldest, old] of this.#entries) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#entries.delete(oldest);
      this.#bytes -= costOf(oldest, old.ids);
    }
  }
}

function costOf(text: string, ids: Uint32Array): number {
  return text.length * 2 + ids.byteLength + ENTRY_BYTES;
}
