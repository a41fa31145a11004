// Which waiting requests stand together because they have the same candidates, said plainly: a list of classes,
// searched from end to end.
import { HELD } from '../../dist/src/flow-control/candidate-sets.js';

/** Requests with the same candidates. */
export class PlainClass {
  /** Endpoint slots, ascending; undefined = the whole pool. Those that leave the pool are taken out. */
  slots: readonly number[] | undefined;
  readonly overflow: boolean;
  /** When it got the slots that it has. */
  since: number;
  members = 0;

  constructor(slots: readonly number[] | undefined, overflow: boolean, since: number) {
    this.slots = slots;
    this.overflow = overflow;
    this.since = since;
  }

  get empty(): boolean {
    return this.slots?.length === 0;
  }
}

/** All classes. A class without members stays known until its place is needed. */
export class PlainClasses {
  readonly #pool = new PlainClass(undefined, false, 0);
  readonly #places: (PlainClass | undefined)[] = new Array(HELD - 1).fill(undefined);
  #overflow = new PlainClass([], true, 0);
  #changes = 0;

  /** The class for these candidates. */
  find(slots: readonly number[] | undefined): PlainClass {
    if (slots === undefined) return this.#pool;
    return this.findExact(slots) ?? this.#addToOverflow(slots);
  }

  /** The class with exactly these candidates, which may be a new one; undefined when there is no place for it. */
  findExact(slots: readonly number[]): PlainClass | undefined {
    const same = this.#places.filter((each) => each?.slots?.join() === slots.join() && !each.empty);
    const oldest = same.sort((a, b) => a!.since - b!.since)[0];
    if (oldest !== undefined) return oldest;
    let place = this.#places.indexOf(undefined);
    if (place < 0) place = this.#places.findIndex((each) => each?.members === 0);
    if (place < 0) return undefined;
    const made = new PlainClass(slots, false, ++this.#changes);
    this.#places[place] = made;
    return made;
  }

  #addToOverflow(slots: readonly number[]): PlainClass {
    if (this.#overflow.members === 0) this.#overflow = new PlainClass([], true, 0);
    this.#overflow.slots = [...new Set([...this.#overflow.slots!, ...slots])].sort((a, b) => a - b);
    return this.#overflow;
  }

  /** Whether a class is known, so that what it has reached counts. */
  knows(each: PlainClass): boolean {
    return each === this.#pool || each === this.#overflow || this.#places.includes(each);
  }

  endpointGone(slot: number): void {
    for (const each of [...this.#places, this.#overflow]) {
      if (!each?.slots?.includes(slot)) continue;
      each.slots = each.slots.filter((other) => other !== slot);
      each.since = ++this.#changes;
    }
  }
}
