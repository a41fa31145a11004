/** Media that one endpoint has probably encoded, least recently used first. */
type Held = Set<bigint>;

/** Media sent to each endpoint: images, videos and sounds, the most recent `capacity` of them. */
export class MediaCache {
  readonly #capacity: number;
  /** By endpoint id. */
  readonly #held = new Map<string, Held>();
  /** Endpoint ids by medium, the inverse. */
  readonly #holders = new Map<bigint, Set<string>>();

  /** @param capacity bound on the media of one endpoint, 1 or more */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Ids of the endpoints that hold a medium. */
  holders(medium: bigint): ReadonlySet<string> {
    return this.#holders.get(medium) ?? NO_HOLDERS;
  }

  /** Records that the endpoint was sent this medium. At the bound the least recently used one is dropped. */
  note(endpoint: string, medium: bigint): void {
    let held = this.#held.get(endpoint);
    if (held === undefined) {
      held = new Set();
      this.#held.set(endpoint, held);
    }
    // A set keeps the order of insertion.
    held.delete(medium);
    held.add(medium);
    const holders = this.#holders.get(medium);
    if (holders === undefined) this.#holders.set(medium, new Set([endpoint]));
    else holders.add(endpoint);
    if (held.size > this.#capacity) this.#drop(endpoint, held, held.values().next().value!);
  }

  /** Drops every endpoint that is not in the set. */
  keep(endpoints: ReadonlySet<string>): void {
    for (const [endpoint, held] of this.#held) {
      if (endpoints.has(endpoint)) continue;
      for (const medium of held) this.#drop(endpoint, held, medium);
      this.#held.delete(endpoint);
    }
  }

  #drop(endpoint: string, held: Held, medium: bigint): void {
    held.delete(medium);
    const holders = this.#holders.get(medium)!;
    holders.delete(endpoint);
    if (holders.size === 0) this.#holders.delete(medium);
  }

  /** Stored pairs of endpoint and medium. */
  get size(): number {
    let size = 0;
    for (const held of this.#held.values()) size += held.size;
    return size;
  }
}

const NO_HOLDERS: ReadonlySet<string> = new Set();
