/**
 * Streams that are remembered after this side has reset them: frames of them may be on their way still. A power of two.
 */
const REMEMBERED_MAX = 8_192;

/**
 * The latest streams that this side has reset, each in the place of its number. What the client says on them until it
 * ends them means nothing, and is no error.
 */
export class ResetStreams {
  #streams: Int32Array | undefined;

  add(stream: number): void {
    this.#streams ??= new Int32Array(REMEMBERED_MAX);
    this.#streams[place(stream)] = stream;
  }

  has(stream: number): boolean {
    return this.#streams?.[place(stream)] === stream;
  }

  /** @returns whether the stream was remembered */
  delete(stream: number): boolean {
    if (!this.has(stream)) return false;
    this.#streams![place(stream)] = 0;
    return true;
  }
}

/** Streams of a client have odd numbers. */
function place(stream: number): number {
  return (stream >>> 1) & (REMEMBERED_MAX - 1);
}
