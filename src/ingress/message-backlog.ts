import { bufferSize, giveBuffer, takeBuffer } from '../request/kept-buffers.js';

/** Memory that a message takes beside its bytes. */
const MESSAGE_OVERHEAD_BYTES = 16;

/** Messages of a stream that waits for its turn, in order of arrival. */
export class MessageBacklog {
  #buffer: Buffer | undefined;
  #bytes = 0;
  /** End of each message. */
  readonly #ends: number[] = [];

  /** Bytes that the messages take, empty ones included. */
  get heldBytes(): number {
    return (this.#buffer?.length ?? 0) + this.#ends.length * MESSAGE_OVERHEAD_BYTES;
  }

  /** Copies bytes[from, to). */
  add(bytes: Buffer, from: number, to: number): void {
    const need = this.#bytes + to - from;
    if (this.#buffer === undefined || this.#buffer.length < need) this.#grow(need);
    bytes.copy(this.#buffer!, this.#bytes, from, to);
    this.#bytes = need;
    this.#ends.push(need);
  }

  /**
   * Calls `take` for each message and drops them; the bytes are valid during the call.
   * @param take returns false to stop
   */
  drain(take: (bytes: Buffer, from: number, to: number) => boolean): void {
    const buffer = this.#buffer;
    if (buffer === undefined) return;
    // Taken out first: what takes a message may drop the rest.
    this.#buffer = undefined;
    let from = 0;
    try {
      for (const to of this.#ends) {
        if (!take(buffer, from, to)) return;
        from = to;
      }
    } finally {
      giveBuffer(buffer);
      this.drop();
    }
  }

  /** Drops the messages. Idempotent. */
  drop(): void {
    if (this.#buffer !== undefined) giveBuffer(this.#buffer);
    this.#buffer = undefined;
    this.#bytes = 0;
    this.#ends.length = 0;
  }

  #grow(bytes: number): void {
    const buffer = takeBuffer(bufferSize(bytes));
    this.#buffer?.copy(buffer, 0, 0, this.#bytes);
    if (this.#buffer !== undefined) giveBuffer(this.#buffer);
    this.#buffer = buffer;
  }
}
