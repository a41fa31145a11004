import { bufferSize, giveBuffer, keepLent, takeBuffer } from './kept-buffers.js';

/** Sizes of slots in bytes: a short chat, a long one, a piece of a body of any length. */
const SLOT_BYTES = [bufferSize(4_096), bufferSize(16_384), bufferSize(65_536)] as const;
const SLOT_BYTES_MAX = SLOT_BYTES[SLOT_BYTES.length - 1]!;

/** A full slot, or a kept buffer: the bytes of the body in it. */
interface Piece {
  readonly bytes: Uint8Array;
  readonly buffer: Buffer;
}

let inUse = 0;

function takeSlot(bytes: number): Buffer {
  inUse++;
  return takeBuffer(bytes);
}

function giveSlot(slot: Buffer): void {
  inUse--;
  giveBuffer(slot);
}

/** Slots and buffers of this thread that bodies hold. */
export function slotsInUse(): number {
  return inUse;
}

/**
 * The bytes of one body: copied once into slots that the thread uses again, or kept where they came, in a buffer that a
 * transport lends. Reuse spares the garbage collector, which took a fifth of the time with bodies of 400 KB. The owner
 * holds the memory from the first byte to `release`; others may `retain` it beyond that. After the last release its
 * slots go to other bodies.
 */
export class BodyMemory {
  /** Full slots and kept bytes, in the order of the body; undefined = there are none, as with most chats. */
  #pieces: Piece[] | undefined;
  /** Slot with room, and its filled bytes. */
  #slot: Buffer | undefined;
  #filled = 0;
  #held = 0;
  #holders = 1;

  /** Bytes of the slots and buffers. */
  get heldBytes(): number {
    return this.#held;
  }

  append(bytes: Uint8Array): void {
    // A slot with room is filled first, so that the memory is never much larger than the body.
    const buffer = this.#slot === undefined ? keepLent(bytes) : undefined;
    if (buffer !== undefined) this.#keep(buffer, bytes);
    else this.#copy(bytes);
  }

  #copy(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const slot = this.#slot ?? this.#nextSlot(bytes.length - at);
      const end = Math.min(bytes.length, at + slot.length - this.#filled);
      slot.set(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end), this.#filled);
      this.#filled += end - at;
      at = end;
      if (this.#filled === slot.length) this.#closeSlot(slot);
    }
  }

  /** The bytes so far, in pieces that do not change while the memory is held. */
  chunks(): Uint8Array[] {
    const last = this.#slot?.subarray(0, this.#filled);
    if (this.#pieces === undefined) return last === undefined ? [] : [last];
    const chunks = this.#pieces.map(({ bytes }) => bytes);
    if (last !== undefined) chunks.push(last);
    return chunks;
  }

  retain(): void {
    if (this.#holders === 0) throw new Error('body memory was retained after its release');
    this.#holders++;
  }

  release(): void {
    if (this.#holders === 0) throw new Error('body memory was released twice');
    if (--this.#holders > 0) return;
    for (const { buffer } of this.#pieces ?? []) giveSlot(buffer);
    if (this.#slot !== undefined) giveSlot(this.#slot);
    this.#pieces = undefined;
    this.#slot = undefined;
    this.#filled = 0;
    this.#held = 0;
  }

  #keep(buffer: Buffer, bytes: Uint8Array): void {
    this.#close({ bytes, buffer });
    this.#held += buffer.length;
    inUse++;
  }

  #closeSlot(slot: Buffer): void {
    this.#close({ bytes: slot, buffer: slot });
    this.#slot = undefined;
    this.#filled = 0;
  }

  #close(piece: Piece): void {
    if (this.#pieces === undefined) this.#pieces = [piece];
    else this.#pieces.push(piece);
  }

  /** The smallest slot for the first bytes, the largest for a body that continues. */
  #nextSlot(needed: number): Buffer {
    const isFirst = this.#pieces === undefined;
    const slot = takeSlot(isFirst ? (SLOT_BYTES.find((bytes) => bytes >= needed) ?? SLOT_BYTES_MAX) : SLOT_BYTES_MAX);
    this.#slot = slot;
    this.#held += slot.length;
    return slot;
  }
}
