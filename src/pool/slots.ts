import type { Endpoint, PoolChange, SlotAssignment } from '../contract/endpoint.js';

/** Reasons for an endpoint without a slot. */
export type SlotRefusal = 'pool full' | 'duplicate id';

/** Changes of the slots for a new list of endpoints. Apply `removed` before `added`. */
export interface SlotChanges {
  readonly added: readonly SlotAssignment[];
  readonly removed: readonly SlotAssignment[];
  /** Same slot, same server, other labels or another state (the new endpoint). */
  readonly changed: readonly SlotAssignment[];
  /** Endpoints without a slot, which wait until another one leaves. The caller reports each. */
  readonly refused: readonly { readonly endpoint: Endpoint; readonly reason: SlotRefusal }[];
}

/**
 * Slots of the endpoints (control thread). An endpoint keeps its slot while it lives. A freed slot goes behind all
 * other free ones, so that late readers of its columns have the longest time to notice.
 */
export class SlotTable {
  readonly #uses = new Map<string, SlotAssignment>();
  readonly #generations: Uint32Array;
  /** Ring of free slots: first freed, first used. */
  readonly #freeSlots: Uint32Array;
  #freeStart = 0;
  #freeCount: number;
  /** Endpoints without a slot because the pool is full: first come, first served. */
  readonly #waiting = new Map<string, Endpoint>();

  /** @param capacity slots of the pool, 1 or more */
  constructor(capacity: number) {
    if (!Number.isInteger(capacity) || capacity < 1) throw new RangeError('capacity must be a whole number from 1');
    this.#generations = new Uint32Array(capacity);
    this.#freeSlots = Uint32Array.from({ length: capacity }, (_, slot) => slot);
    this.#freeCount = capacity;
  }

  get capacity(): number {
    return this.#freeSlots.length;
  }

  /** Endpoints that wait for a slot because the pool is full. */
  get waiting(): number {
    return this.#waiting.size;
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
   * Makes the slots hold `endpoints`. @returns the changes Endpoints that had a slot come before new ones, then the
   * order of the list counts. Another address, port or incarnation under the same id is another server: removed and
   * added. A draining endpoint keeps its slot and gets no new one.
   */
  apply(endpoints: readonly Endpoint[]): SlotChanges {
    const wanted = new Map<string, Endpoint>();
    const refused: { endpoint: Endpoint; reason: SlotRefusal }[] = [];
    for (const endpoint of endpoints) {
      if (wanted.has(endpoint.id)) refused.push({ endpoint, reason: 'duplicate id' });
      else wanted.set(endpoint.id, endpoint);
    }
    this.#waiting.clear();
    const gone = [...this.#uses.keys()].filter((id) => !wanted.has(id));
    const changes = this.applyChanges({ set: [...wanted.values()], removed: gone });
    return { ...changes, refused: [...refused, ...changes.refused] };
  }

  /** As `apply`, for what differs from before: the same slots follow at the cost of the changes alone. */
  applyChanges({ set, removed: gone }: Pick<PoolChange, 'set' | 'removed'>): SlotChanges {
    const removed: SlotAssignment[] = [];
    const changed: SlotAssignment[] = [];
    for (const id of gone) {
      this.#waiting.delete(id);
      this.#free(id, removed);
    }
    const homeless = set.filter((endpoint) => {
      const use = this.#uses.get(endpoint.id);
      if (use === undefined || !sameServer(use.endpoint, endpoint)) {
        this.#free(endpoint.id, removed);
        return true;
      }
      if (!sameState(use.endpoint, endpoint)) {
        const next = { ...use, endpoint };
        this.#uses.set(endpoint.id, next);
        changed.push(next);
      }
      return false;
    });
    return { ...this.#place(homeless), removed, changed };
  }

  /** Gives slots to the endpoints that wait, then to these; an endpoint without a slot waits. */
  #place(endpoints: readonly Endpoint[]): Pick<SlotChanges, 'added' | 'refused'> {
    const refused: { endpoint: Endpoint; reason: SlotRefusal }[] = [];
    for (const endpoint of endpoints) {
      if (endpoint.draining === true) this.#waiting.delete(endpoint.id);
      else {
        if (!this.#waiting.has(endpoint.id)) refused.push({ endpoint, reason: 'pool full' });
        this.#waiting.set(endpoint.id, endpoint);
      }
    }
    const added: SlotAssignment[] = [];
    for (const [id, endpoint] of this.#waiting) {
      const use = this.#add(endpoint);
      if (use === undefined) break;
      this.#waiting.delete(id);
      added.push(use);
    }
    return { added, refused: refused.filter(({ endpoint }) => this.#waiting.has(endpoint.id)) };
  }

  #free(id: string, removed: SlotAssignment[]): void {
    const use = this.#uses.get(id);
    if (use === undefined) return;
    removed.push(use);
    this.#uses.delete(id);
    this.#freeSlots[(this.#freeStart + this.#freeCount) % this.capacity] = use.slot;
    this.#freeCount += 1;
  }

  #add(endpoint: Endpoint): SlotAssignment | undefined {
    if (this.#freeCount === 0) return undefined;
    const slot = this.#freeSlots[this.#freeStart]!;
    this.#freeStart = (this.#freeStart + 1) % this.capacity;
    this.#freeCount -= 1;
    const generation = this.#generations[slot] === 0xffff_ffff ? 1 : this.#generations[slot]! + 1;
    this.#generations[slot] = generation;
    const use = { slot, generation, endpoint };
    this.#uses.set(endpoint.id, use);
    return use;
  }
}

function sameServer(a: Endpoint, b: Endpoint): boolean {
  return a.address === b.address && a.port === b.port && a.incarnation === b.incarnation;
}

function sameState(a: Endpoint, b: Endpoint): boolean {
  return (a.draining === true) === (b.draining === true) && sameLabels(a.labels, b.labels);
}

function sameLabels(a: Endpoint['labels'], b: Endpoint['labels']): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}
