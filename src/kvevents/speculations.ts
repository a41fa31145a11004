/** Blocks that an endpoint is expected to hold soon, because a prompt was sent there. */
interface Speculation {
  readonly until: number;
  readonly slot: number;
  readonly generation: number;
  readonly hashes: BigUint64Array;
}

/** Prompts that may wait for their confirmation; of more, the oldest expire early. */
const WAITING_MAX = 65_536;

/** Speculated blocks and their ends: first in, first out, since all have the same lifetime. */
export class Speculations {
  readonly #ttlMs: number;
  readonly #now: () => number;
  readonly #expired: (slot: number, generation: number, hashes: BigUint64Array) => void;
  readonly #waiting: Speculation[] = [];
  /** Index of the oldest: the front is cut off in one piece when it has grown long. */
  #head = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param now milliseconds of a monotonic clock @param expired must not throw */
  constructor(
    ttlMs: number,
    now: () => number,
    expired: (slot: number, generation: number, hashes: BigUint64Array) => void,
  ) {
    this.#ttlMs = ttlMs;
    this.#now = now;
    this.#expired = expired;
  }

  get size(): number {
    return this.#waiting.length - this.#head;
  }

  add(slot: number, generation: number, hashes: BigUint64Array): void {
    this.#waiting.push({ until: this.#now() + this.#ttlMs, slot, generation, hashes });
    if (this.size > WAITING_MAX) this.#expireOldest();
    this.#timer ??= this.#wake(this.#ttlMs);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
    this.#head = 0;
  }

  #wake(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#sweep(), ms).unref();
  }

  #sweep(): void {
    const now = this.#now();
    while (this.size > 0 && this.#waiting[this.#head]!.until <= now) this.#expireOldest();
    const oldest = this.#waiting[this.#head];
    // A timer may fire a moment early.
    this.#timer = oldest && this.#wake(Math.max(1, oldest.until - now));
  }

  #expireOldest(): void {
    const { slot, generation, hashes } = this.#waiting[this.#head++]!;
    this.#compact();
    this.#expired(slot, generation, hashes);
  }

  #compact(): void {
    if (this.size === 0) this.#waiting.length = 0;
    else if (this.#head > 1_024) this.#waiting.splice(0, this.#head);
    else return;
    this.#head = 0;
  }
}
