/** Streams that are remembered after this side has reset them: frames of them may be on their way still. */
const REMEMBERED_MAX = 1_024;

/** The latest streams that this side has reset. What the peer says on them means nothing, and is no error. */
export class ResetStreams {
  readonly #streams = new Set<number>();

  add(stream: number): void {
    if (this.#streams.size >= REMEMBERED_MAX) {
      const oldest = this.#streams.values().next();
      if (!oldest.done) this.#streams.delete(oldest.value);
    }
    this.#streams.add(stream);
  }

  has(stream: number): boolean {
    return this.#streams.has(stream);
  }
}
