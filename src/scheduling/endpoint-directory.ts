import { endpointAddress, type SlotAssignment } from '../contract/endpoint.js';
import type { PickedEndpoint } from './decision.js';

type Picks = ReadonlyMap<string, readonly PickedEndpoint[]>;

interface Entry extends PickedEndpoint {
  readonly generation: number;
}

/** An endpoint as all that a request has picked, which most have: the same objects for all of them. */
interface SolePick {
  readonly endpoints: readonly PickedEndpoint[];
  /** Picks of the request so far, by profile. */
  readonly picks: Map<string, Picks>;
}

/**
 * A shard's copy of the assignment of endpoints to slots. The control thread lets an endpoint be picked only after
 * every shard has applied its assignment, so a picked slot is always known here.
 */
export class EndpointDirectory {
  readonly #bySlot: (Entry | undefined)[] = [];
  readonly #soleBySlot: (SolePick | undefined)[] = [];
  readonly #byAddress = new Map<string, number>();
  readonly #byHost = new Map<string, number[]>();
  readonly #byId = new Map<string, number>();
  #slots: readonly number[] | undefined;

  apply(added: readonly SlotAssignment[], removed: readonly number[]): void {
    this.#slots = undefined;
    for (const slot of removed) this.#drop(slot);
    for (const { slot, generation, endpoint } of added) {
      this.#drop(slot);
      const address = endpointAddress(endpoint);
      const entry = { slot, generation, endpoint, address };
      this.#bySlot[slot] = entry;
      this.#soleBySlot[slot] = { endpoints: [entry], picks: new Map() };
      // The IP of an ending pod may belong to another one: the address means the endpoint that takes requests.
      const other = this.#bySlot[this.#byAddress.get(address) ?? -1];
      if (endpoint.draining !== true || other === undefined || other.endpoint.draining === true) {
        this.#byAddress.set(address, slot);
      }
      this.#byId.set(endpoint.id, slot);
      const host = this.#byHost.get(endpoint.address);
      if (host === undefined) this.#byHost.set(endpoint.address, [slot]);
      else host.push(slot);
    }
  }

  #drop(slot: number): void {
    const entry = this.#bySlot[slot];
    if (entry === undefined) return;
    this.#bySlot[slot] = undefined;
    this.#soleBySlot[slot] = undefined;
    if (this.#byAddress.get(entry.address) === slot) this.#byAddress.delete(entry.address);
    if (this.#byId.get(entry.endpoint.id) === slot) this.#byId.delete(entry.endpoint.id);
    const host = this.#byHost.get(entry.endpoint.address)?.filter((other) => other !== slot) ?? [];
    if (host.length === 0) this.#byHost.delete(entry.endpoint.address);
    else this.#byHost.set(entry.endpoint.address, host);
  }

  at(slot: number): (PickedEndpoint & { readonly generation: number }) | undefined {
    return this.#bySlot[slot];
  }

  /** Endpoint with an address (`ip:port`); of several, the one that takes requests. */
  byAddress(address: string): (PickedEndpoint & { readonly generation: number }) | undefined {
    return this.#bySlot[this.#byAddress.get(address) ?? -1];
  }

  /** The endpoint of a slot as the only one of a pick. */
  alone(slot: number): readonly PickedEndpoint[] | undefined {
    return this.#soleBySlot[slot]?.endpoints;
  }

  /** Picks of a request whose only profile has picked the endpoint of a slot alone. */
  solePicks(slot: number, profile: string): Picks | undefined {
    const sole = this.#soleBySlot[slot];
    if (sole === undefined) return undefined;
    let picks = sole.picks.get(profile);
    if (picks === undefined) {
      picks = new Map([[profile, sole.endpoints]]);
      sole.picks.set(profile, picks);
    }
    return picks;
  }

  /** Slot of the endpoint `namespace/name`. */
  slotOf(id: string): number | undefined {
    return this.#byId.get(id);
  }

  /** Slots with an endpoint, in rising order; the same array until the next change. */
  slots(): readonly number[] {
    this.#slots ??= this.entries().map(({ slot }) => slot);
    return this.#slots;
  }

  entries(): PickedEndpoint[] {
    return this.#bySlot.filter((entry) => entry !== undefined);
  }

  /**
   * Slots of a subset hint: `ip:port` matches exactly (IPv6 in brackets), a bare IP (IPv6 with or without brackets)
   * matches every port. Unknown addresses are left out.
   */
  resolve(subset: readonly string[]): number[] {
    const slots: number[] = [];
    for (const address of subset) {
      const exact = this.#byAddress.get(address);
      if (exact !== undefined) {
        slots.push(exact);
        continue;
      }
      const host = address.startsWith('[') && address.endsWith(']') ? address.slice(1, -1) : address;
      slots.push(...(this.#byHost.get(host) ?? []));
    }
    return slots;
  }
}
