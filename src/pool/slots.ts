import type { Endpoint, SlotAssignment } from './endpoint.js';

/** Why an endpoint has no slot. */
export type SlotRefusal = 'pool full' | 'duplicate id';

/** What has to happen to the slots so that they hold a new list of endpoints. Apply `removed` before `added`. */
export interface SlotChanges {
  readonly added: readonly SlotAssignment[];
  readonly removed: readonly SlotAssignment[];
  /** Same slot, same address, other labels (the new endpoint). */
  readonly changed: readonly SlotAssignment[];
  /** Endpoints that stay outside until another one leaves. Never empty silently: the caller reports them. */
  readonly refused: readonly { readonly endpoint: Endpoint; readonly reason: SlotRefusal }[];
}

/**
 * Which endpoint sits in which slot (control thread). An endpoint keeps its slot while it lives; a freed slot waits
 * behind all others that are free, so that late readers of its columns have the longest time to notice.
 */
export class SlotTable {
  readonly #uses = new Map<string, SlotAssignment>();
  readonly #generations: Uint32Array;
  /** Ring of free slots: first freed, first used. */
  readonly #free: Uint32Array;
  #freeStart = 0;
  #freeCount: number;

  /** @param capacity slots of the pool, 1 or more */
  constructor(capacity: number) {
    if (!Number.isInteger(capacity) || capacity < 1) throw new RangeError('capacity must be a whole number from 1');
    this.#generations = new Uint32Array(capacity);
    this.#free = Uint32Array.from({ length: capacity }, (_, slot) => slot);
    this.#freeCount = capacity;
  }

  get capacity(): number {
    return this.#free.length;
  }

  /** Every slot in use, in the order of its endpoint's arrival. */
  uses(): readonly SlotAssignment[] {
    return [...this.#uses.values()];
  }

  /** The slot of an endpoint id, if it has one. */
  find(id: string): SlotAssignment | undefined {
    return this.#uses.get(id);
  }

  /**
   * Make the slots hold `endpoints` and say what that changed. Endpoints that had a slot come before new ones, then the
   * order of the list counts. Another address or port under the same id is another server: removed and added.
   */
  apply(endpoints: readonly Endpoint[]): SlotChanges {
    const wanted = new Map<string, Endpoint>();
    const refused: { endpoint: Endpoint; reason: SlotRefusal }[] = [];
    for (const endpoint of endpoints) {
      if (wanted.has(endpoint.id)) refused.push({ endpoint, reason: 'duplicate id' });
      else wanted.set(endpoint.id, endpoint);
    }
    const removed = this.#removeAllBut(wanted);
    const added: SlotAssignment[] = [];
    const changed: SlotAssignment[] = [];
    for (const endpoint of wanted.values()) {
      const use = this.#uses.get(endpoint.id);
      if (use === undefined) {
        const next = this.#add(endpoint);
        if (next === undefined) refused.push({ endpoint, reason: 'pool full' });
        else added.push(next);
      } else if (!sameLabels(use.endpoint.labels, endpoint.labels)) {
        const next = { ...use, endpoint };
        this.#uses.set(endpoint.id, next);
        changed.push(next);
      }
    }
    return { added, removed, changed, refused };
  }

  #removeAllBut(wanted: ReadonlyMap<string, Endpoint>): SlotAssignment[] {
    const removed: SlotAssignment[] = [];
    for (const use of this.#uses.values()) {
      const next = wanted.get(use.endpoint.id);
      if (next !== undefined && next.address === use.endpoint.address && next.port === use.endpoint.port) continue;
      removed.push(use);
    }
    for (const use of removed) {
      this.#uses.delete(use.endpoint.id);
      this.#free[(this.#freeStart + this.#freeCount) % this.capacity] = use.slot;
      this.#freeCount += 1;
    }
    return removed;
  }

  #add(endpoint: Endpoint): SlotAssignment | undefined {
    if (this.#freeCount === 0) return undefined;
    const slot = this.#free[this.#freeStart]!;
    this.#freeStart = (this.#freeStart + 1) % this.capacity;
    this.#freeCount -= 1;
    const generation = this.#generations[slot] === 0xffff_ffff ? 1 : this.#generations[slot]! + 1;
    this.#generations[slot] = generation;
    const use = { slot, generation, endpoint };
    this.#uses.set(endpoint.id, use);
    return use;
  }
}

function sameLabels(a: Endpoint['labels'], b: Endpoint['labels']): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}
