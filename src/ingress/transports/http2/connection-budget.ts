import type { ByteBudget } from '../../transport.js';

/** One connection's part of a budget: one hostile peer cannot hold all of it. */
export class ConnectionBudget implements ByteBudget {
  readonly #whole: ByteBudget;
  readonly bytesMax: number;
  #bytes = 0;

  /** @param bytesMax most bytes that this connection may hold */
  constructor(whole: ByteBudget, bytesMax: number) {
    this.#whole = whole;
    this.bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.bytesMax || !this.#whole.take(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
    this.#whole.give(bytes);
  }
}
