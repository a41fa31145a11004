import type { ByteBudget } from '../../transport.js';
import { RELAXED_BYTES } from './limits.js';
import type { MessageMemory } from './message-reader.js';

/** One connection's part of a budget: one hostile client cannot hold all of it. */
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

  /** Bytes that the connection may hold more, if the whole has room for them. */
  get room(): number {
    return this.bytesMax - this.#bytes;
  }

  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.bytesMax || !this.#whole.take(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  force(bytes: number): boolean {
    this.#bytes += bytes;
    const hadRoom = this.#whole.force(bytes);
    return hadRoom && this.#bytes <= this.bytesMax;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
    this.#whole.give(bytes);
  }
}

/** Part of a connection's memory that messages take which are not whole. */
export class UnfinishedMessages extends ConnectionBudget implements MessageMemory {
  get isTight(): boolean {
    return this.bytes > RELAXED_BYTES;
  }
}
