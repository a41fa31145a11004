import type { HeldMemory } from '../../transport.js';

interface Part {
  bytes: Uint8Array;
  at: number;
  readonly memory: HeldMemory | undefined;
  /** Whether the bytes change at the end of the call that added them. */
  passing: boolean;
}

/**
 * Bytes of replies beyond the client's windows, in their order. Parts of held memory are not copied: the memory is kept
 * until they have been read.
 */
export class ReplyQueue {
  #parts: Part[] = [];
  /** Index of the first part that is not read to its end. */
  #head = 0;
  #bytes = 0;

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @param memory that the bytes lie in; undefined = they may change after `keep` */
  add(bytes: Uint8Array, memory: HeldMemory | undefined): void {
    if (bytes.length === 0) return;
    memory?.retain();
    this.#parts.push({ bytes, at: 0, memory, passing: memory === undefined });
    this.#bytes += bytes.length;
  }

  /** Copies unread parts that were added without a memory. */
  keep(): void {
    for (let i = this.#parts.length - 1; i >= this.#head; i--) {
      const part = this.#parts[i]!;
      if (!part.passing) continue;
      part.bytes = Buffer.from(part.bytes.subarray(part.at));
      part.at = 0;
      part.passing = false;
    }
  }

  /** Moves `length` waiting bytes to `into` at `at`. */
  read(length: number, into: Uint8Array, at: number): void {
    let to = at;
    const end = at + length;
    while (to < end) {
      const part = this.#parts[this.#head]!;
      const next = Math.min(part.bytes.length, part.at + end - to);
      into.set(part.bytes.subarray(part.at, next), to);
      to += next - part.at;
      part.at = next;
      if (next === part.bytes.length) {
        part.memory?.release();
        this.#head++;
      }
    }
    this.#bytes -= length;
    if (this.#bytes === 0) this.#forget();
  }

  /** Drops what waits. */
  clear(): void {
    for (let i = this.#head; i < this.#parts.length; i++) this.#parts[i]!.memory?.release();
    this.#forget();
  }

  #forget(): void {
    this.#parts = [];
    this.#head = 0;
    this.#bytes = 0;
  }
}
