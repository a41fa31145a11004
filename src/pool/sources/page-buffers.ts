const FIRST_BYTES = 64 * 1024;
const SPARE_MAX = 16;
const SPARE_BYTES_MAX = 1024 * 1024;

/**
 * Buffers for pages that are still arriving. Only as many exist as pages are under way at one time, plus a few spare
 * ones: an endpoint between two scrapes holds none.
 */
export class PageBuffers {
  readonly #spare: Uint8Array[] = [];

  take(): Uint8Array {
    return this.#spare.pop() ?? new Uint8Array(FIRST_BYTES);
  }

  give(buffer: Uint8Array): void {
    if (this.#spare.length < SPARE_MAX && buffer.length <= SPARE_BYTES_MAX) this.#spare.push(buffer);
  }

  /** A buffer of at least `bytes` that begins with the first `used` bytes of `buffer`, which is freed. */
  grow(buffer: Uint8Array, used: number, bytes: number): Uint8Array {
    let size = buffer.length;
    while (size < bytes) size *= 2;
    const larger = new Uint8Array(size);
    larger.set(buffer.subarray(0, used));
    this.give(buffer);
    return larger;
  }
}
