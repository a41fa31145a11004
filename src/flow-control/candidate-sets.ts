import { NONE } from './request-slab.js';

/** Bound on the candidate sets of a pool: 64 of them fit a mask of two words. */
export const CANDIDATE_SETS_MAX = 64;
/** The candidate set of requests that any endpoint may serve. */
const WHOLE_POOL = 0;
/** The candidate set of requests whose own set finds no free number. */
export const OVERFLOW = CANDIDATE_SETS_MAX - 1;
/** The candidate set in which held turns wait, whatever their own candidates are. */
export const HELD = CANDIDATE_SETS_MAX - 2;

/**
 * Candidate sets. Requests with the same candidates wait together, so one with full endpoints holds up only requests
 * for the same endpoints. A set without requests stays known until its number is needed.
 */
export class CandidateSets {
  /** Uses of each set: a waiting request counts once for its own set and once for the set in which it waits. */
  readonly members = new Int32Array(CANDIDATE_SETS_MAX);
  /** Bit masks of slots per set; undefined for the whole pool and for unused sets. */
  readonly #slots: (Uint32Array | undefined)[] = new Array(CANDIDATE_SETS_MAX).fill(undefined);
  readonly #byHash = new Map<number, number[]>();
  /** Two words per slot: the sets that contain it, without the whole pool. */
  #setsOf = new Uint32Array(0);
  #overflows = 0;
  readonly #renamed: (id: number) => void;

  /** @param renamed called when a number is used for other candidates */
  constructor(renamed: (id: number) => void) {
    this.#renamed = renamed;
  }

  /** Requests that were put into the overflow set. */
  get overflows(): number {
    return this.#overflows;
  }

  /** Sets that contain a slot, as two words: these are sets 0 to 31. */
  lowOf(slot: number): number {
    return ((this.#setsOf[slot * 2] ?? 0) | (1 << WHOLE_POOL)) >>> 0;
  }

  /** Sets 32 to 63. */
  highOf(slot: number): number {
    return this.#setsOf[slot * 2 + 1] ?? 0;
  }

  /** Estimated number of requests that wait in a set; exact unless some of them wait for one endpoint first. */
  waitingIn(id: number): number {
    return Math.ceil(this.members[id]! / 2);
  }

  /** Slots of a set; undefined = the whole pool. */
  slotsOf(id: number): readonly number[] | undefined {
    if (id === WHOLE_POOL) return undefined;
    const words = this.#slots[id] ?? new Uint32Array(0);
    const slots: number[] = [];
    for (let slot = 0; slot < words.length * 32; slot++) {
      if ((words[slot >> 5]! >>> (slot & 31)) & 1) slots.push(slot);
    }
    return slots;
  }

  /** Whether a set has no endpoint of the pool any more. */
  isEmpty(id: number): boolean {
    return id !== WHOLE_POOL && (this.#slots[id]?.every((word) => word === 0) ?? true);
  }

  /** The set of these candidates; made when there is none. */
  find(candidates: Uint32Array | undefined): number {
    if (candidates === undefined) return WHOLE_POOL;
    const found = this.findExact(candidates);
    if (found !== NONE) return found;
    this.#overflows++;
    if (this.members[OVERFLOW] === 0) this.#forget(OVERFLOW);
    this.#add(OVERFLOW, candidates);
    return OVERFLOW;
  }

  /** The set of these candidates; made when there is none. NONE when no number is free. */
  findExact(candidates: Uint32Array): number {
    const length = trimmedLength(candidates);
    const hash = hashOf(candidates, length);
    for (const id of this.#byHash.get(hash) ?? []) if (equal(this.#slots[id]!, candidates, length)) return id;
    const id = this.#unused();
    if (id === NONE) return NONE;
    this.#forget(id);
    this.#add(id, candidates);
    this.#hash(id);
    return id;
  }

  /** Removes a slot whose endpoint has left from all sets. */
  removeSlot(slot: number): void {
    if (slot * 2 + 1 >= this.#setsOf.length) return;
    for (let id = 1; id < CANDIDATE_SETS_MAX; id++) {
      const words = this.#slots[id];
      if (words === undefined || !this.#has(id, slot)) continue;
      this.#unhash(id);
      words[slot >> 5]! &= ~(1 << (slot & 31));
      // An empty set is not found again: a request without any candidate must not join requests that lost theirs.
      if (id !== OVERFLOW && !this.isEmpty(id)) this.#hash(id);
    }
    this.#setsOf[slot * 2] = 0;
    this.#setsOf[slot * 2 + 1] = 0;
  }

  #has(id: number, slot: number): boolean {
    return ((this.#setsOf[slot * 2 + (id >> 5)]! >>> (id & 31)) & 1) === 1;
  }

  #unused(): number {
    for (let id = 1; id < HELD; id++) if (this.#slots[id] === undefined) return id;
    for (let id = 1; id < HELD; id++) if (this.members[id] === 0) return id;
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
    for (let slot = 0; slot * 2 < this.#setsOf.length; slot++) {
      this.#setsOf[slot * 2 + (id >> 5)]! &= ~(1 << (id & 31));
    }
    this.#slots[id] = undefined;
  }

  /** Adds candidates to a set. Only the overflow set gets more than one addition. */
  #add(id: number, candidates: Uint32Array): void {
    const length = trimmedLength(candidates);
    const old = this.#slots[id];
    const words = new Uint32Array(Math.max(length, old?.length ?? 0));
    if (old !== undefined) words.set(old);
    for (let i = 0; i < length; i++) words[i]! |= candidates[i]!;
    this.#slots[id] = words;
    this.#reach(words.length * 32);
    for (let slot = 0; slot < words.length * 32; slot++) {
      if ((words[slot >> 5]! >>> (slot & 31)) & 1) this.#setsOf[slot * 2 + (id >> 5)]! |= 1 << (id & 31);
    }
  }

  #reach(slots: number): void {
    if (this.#setsOf.length >= slots * 2) return;
    const larger = new Uint32Array(slots * 2);
    larger.set(this.#setsOf);
    this.#setsOf = larger;
  }
}

function trimmedLength(words: Uint32Array): number {
  let length = words.length;
  while (length > 0 && words[length - 1] === 0) length--;
  return length;
}

/** FNV-1a over whole words. Sets with equal hashes are compared in full. */
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
