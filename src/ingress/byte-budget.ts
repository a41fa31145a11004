import type { ByteBudget } from './transport.js';

/** Bytes that a shard's streams and their transport hold together. */
export class HeldBytes implements ByteBudget {
  readonly bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  force(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes <= this.bytesMax;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}
