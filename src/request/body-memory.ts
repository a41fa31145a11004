/** Sizes of slots in bytes: a short chat, a long one, a piece of a body of any length. Powers of two. */
const SLOT_BYTES = [4_096, 16_384, 65_536] as const;
const SLOT_BYTES_MAX = SLOT_BYTES[SLOT_BYTES.length - 1]!;
/** Bound on the bytes of free slots of one size that the thread keeps for later bodies. */
const SPARE_BYTES_MAX = 16 * 1024 * 1024;

const spare = new Map<number, Buffer[]>(SLOT_BYTES.map((bytes) => [bytes, []]));
let inUse = 0;

function takeSlot(bytes: number): Buffer {
  inUse++;
  return spare.get(bytes)!.pop() ?? Buffer.allocUnsafeSlow(bytes);
}

function giveSlot(slot: Buffer): void {
  inUse--;
  const slots = spare.get(slot.length)!;
  if ((slots.length + 1) * slot.length <= SPARE_BYTES_MAX) slots.push(slot);
}

/** Slots of this thread that bodies hold. */
export function slotsInUse(): number {
  return inUse;
}

/**
 * The bytes of one body, copied once into slots that the thread uses again. Reuse spares the garbage collector, which
 * took a fifth of the time with bodies of 400 KB. The owner holds the memory from the first byte to `release`; others
 * may `retain` it beyond that. After the last release its slots go to other bodies.
 */
export class BodyMemory {
  readonly #slots: Buffer[] = [];
  /** Filled bytes of the last slot; all others are full. */
  #filled = 0;
  #held = 0;
  #holders = 1;

  /** Bytes of the slots. */
  get heldBytes(): number {
    return this.#held;
  }

  append(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const slot = this.#lastSlot(bytes.length - at);
      const end = Math.min(bytes.length, at + slot.length - this.#filled);
      slot.set(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end), this.#filled);
      this.#filled += end - at;
      at = end;
    }
  }

  /** The bytes so far, in pieces that do not change while the memory is held. */
  chunks(): Buffer[] {
    const last = this.#slots.length - 1;
    return this.#slots.map((slot, i) => (i === last ? slot.subarray(0, this.#filled) : slot));
  }

  retain(): void {
    if (this.#holders === 0) throw new Error('body memory was retained after its release');
    this.#holders++;
  }

  release(): void {
    if (this.#holders === 0) throw new Error('body memory was released twice');
    if (--this.#holders > 0) return;
    for (const slot of this.#slots) giveSlot(slot);
    this.#slots.length = 0;
    this.#filled = 0;
    this.#held = 0;
  }

  /** A slot with room: the smallest size for the first bytes, the largest for a body that continues. */
  #lastSlot(needed: number): Buffer {
    const last = this.#slots[this.#slots.length - 1];
    if (last !== undefined && this.#filled < last.length) return last;
    const first = SLOT_BYTES.find((bytes) => bytes >= needed) ?? SLOT_BYTES_MAX;
    const slot = takeSlot(last === undefined ? first : SLOT_BYTES_MAX);
    this.#slots.push(slot);
    this.#filled = 0;
    this.#held += slot.length;
    return slot;
  }
}
