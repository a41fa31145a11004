import { NONE } from './request-slab.js';

/** Classes of a pool, so that a set of them is two words. */
export const CLASSES = 64;
/** The class of requests that any endpoint may serve. */
export const WHOLE_POOL = 0;
/** Takes the requests whose candidates are like nobody's when all other classes are in use. */
export const OVERFLOW = CLASSES - 1;

/**
 * Classes of candidate endpoints. Requests with the same candidates wait together, so that one whose endpoints are full
 * holds up only those that wait for the same ones. A class without requests stays known until its number is needed.
 */
export class CandidateSets {
  /** Who uses each class: waiting requests count once for the class that is theirs and once for the one they stand in. */
  readonly members = new Int32Array(CLASSES);
  /** Words of slots, per class; of the whole pool and of classes that are not in use undefined. */
  readonly #slots: (Uint32Array | undefined)[] = new Array(CLASSES).fill(undefined);
  readonly #byHash = new Map<number, number[]>();
  /** Two words per slot: the classes that contain it, without the whole pool. */
  #classesOf = new Uint32Array(0);
  #overflows = 0;
  readonly #renamed: (id: number) => void;

  /** @param renamed told when a number that had other candidates is used again */
  constructor(renamed: (id: number) => void) {
    this.#renamed = renamed;
  }

  /** Requests that were put into the overflow class. */
  get overflows(): number {
    return this.#overflows;
  }

  /** Classes with a slot, as two words: this one is of classes 0 to 31. */
  lowOf(slot: number): number {
    return ((this.#classesOf[slot * 2] ?? 0) | (1 << WHOLE_POOL)) >>> 0;
  }

  /** Classes 32 to 63. */
  highOf(slot: number): number {
    return this.#classesOf[slot * 2 + 1] ?? 0;
  }

  /** Roughly how many requests wait in a class: exactly, but for those that wait for one endpoint first. */
  waitingIn(id: number): number {
    return Math.ceil(this.members[id]! / 2);
  }

  /** Slots of a class; undefined = the whole pool. */
  slotsOf(id: number): readonly number[] | undefined {
    if (id === WHOLE_POOL) return undefined;
    const words = this.#slots[id] ?? new Uint32Array(0);
    const slots: number[] = [];
    for (let slot = 0; slot < words.length * 32; slot++) {
      if ((words[slot >> 5]! >>> (slot & 31)) & 1) slots.push(slot);
    }
    return slots;
  }

  /** Whether no endpoint of the pool is in a class any more. */
  isEmpty(id: number): boolean {
    return id !== WHOLE_POOL && (this.#slots[id]?.every((word) => word === 0) ?? true);
  }

  /** The class of these candidates, made when there is none. */
  find(candidates: Uint32Array | undefined): number {
    if (candidates === undefined) return WHOLE_POOL;
    const found = this.findExact(candidates);
    if (found !== NONE) return found;
    this.#overflows++;
    if (this.members[OVERFLOW] === 0) this.#forget(OVERFLOW);
    this.#add(OVERFLOW, candidates);
    return OVERFLOW;
  }

  /** The class of these candidates, made when there is none; NONE when no number is free. */
  findExact(candidates: Uint32Array): number {
    const length = trimmedLength(candidates);
    const hash = hashOf(candidates, length);
    for (const id of this.#byHash.get(hash) ?? []) if (equal(this.#slots[id]!, candidates, length)) return id;
    const id = this.#unused();
    if (id === NONE) return NONE;
    this.#forget(id);
    this.#add(id, candidates);
    const list = this.#byHash.get(hash);
    if (list === undefined) this.#byHash.set(hash, [id]);
    else list.push(id);
    return id;
  }

  /** The slot's endpoint has left: its classes go on without it. */
  removeSlot(slot: number): void {
    if (slot * 2 + 1 >= this.#classesOf.length) return;
    for (let id = 1; id < CLASSES; id++) {
      const words = this.#slots[id];
      if (words === undefined || !this.#has(id, slot)) continue;
      this.#unhash(id);
      words[slot >> 5]! &= ~(1 << (slot & 31));
      // An empty class is nobody's candidates: who asks for no endpoint must not join those that lost theirs.
      if (id !== OVERFLOW && !this.isEmpty(id)) this.#hash(id);
    }
    this.#classesOf[slot * 2] = 0;
    this.#classesOf[slot * 2 + 1] = 0;
  }

  #has(id: number, slot: number): boolean {
    return ((this.#classesOf[slot * 2 + (id >> 5)]! >>> (id & 31)) & 1) === 1;
  }

  #unused(): number {
    for (let id = 1; id < OVERFLOW; id++) if (this.#slots[id] === undefined) return id;
    for (let id = 1; id < OVERFLOW; id++) if (this.members[id] === 0) return id;
    return NONE;
  }

  #hash(id: number): void {
    const words = this.#slots[id]!;
    const hash = hashOf(words, trimmedLength(words));
    const list = this.#byHash.get(hash);
    if (list === undefined) this.#byHash.set(hash, [id]);
    else list.push(id);
  }

  #unhash(id: number): void {
    const words = this.#slots[id]!;
    const hash = hashOf(words, trimmedLength(words));
    const rest = (this.#byHash.get(hash) ?? []).filter((other) => other !== id);
    if (rest.length === 0) this.#byHash.delete(hash);
    else this.#byHash.set(hash, rest);
  }

  #forget(id: number): void {
    const words = this.#slots[id];
    if (words === undefined) return;
    this.#unhash(id);
    this.#renamed(id);
    for (let slot = 0; slot * 2 < this.#classesOf.length; slot++) {
      this.#classesOf[slot * 2 + (id >> 5)]! &= ~(1 << (id & 31));
    }
    this.#slots[id] = undefined;
  }

  /** A class is the union of what is added to it; only the overflow class gets more than one set. */
  #add(id: number, candidates: Uint32Array): void {
    const length = trimmedLength(candidates);
    const old = this.#slots[id];
    const words = new Uint32Array(Math.max(length, old?.length ?? 0));
    if (old !== undefined) words.set(old);
    for (let i = 0; i < length; i++) words[i]! |= candidates[i]!;
    this.#slots[id] = words;
    this.#reach(words.length * 32);
    for (let slot = 0; slot < words.length * 32; slot++) {
      if ((words[slot >> 5]! >>> (slot & 31)) & 1) this.#classesOf[slot * 2 + (id >> 5)]! |= 1 << (id & 31);
    }
  }

  #reach(slots: number): void {
    if (this.#classesOf.length >= slots * 2) return;
    const larger = new Uint32Array(slots * 2);
    larger.set(this.#classesOf);
    this.#classesOf = larger;
  }
}

function trimmedLength(words: Uint32Array): number {
  let length = words.length;
  while (length > 0 && words[length - 1] === 0) length--;
  return length;
}

/** FNV-1a over whole words: sets are compared in full afterwards. */
function hashOf(words: Uint32Array, length: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ words[i]!, 0x01000193);
  return hash;
}

function equal(a: Uint32Array, b: Uint32Array, length: number): boolean {
  if (trimmedLength(a) !== length) return false;
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return false;
  return true;
}
