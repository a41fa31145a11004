/** Media that one endpoint is believed to have encoded, least recently used first. */
type Held = Set<bigint>;

/** Which endpoint was sent which images, videos and sounds: for every endpoint the last ones, so many of them. */
export class MediaCache {
  readonly #capacity: number;
  /** By endpoint id. */
  readonly #held = new Map<string, Held>();
  /** Endpoint ids by medium: the other way round. */
  readonly #holders = new Map<bigint, Set<string>>();

  /** @param capacity media of one endpoint, 1 or more */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Ids of the endpoints that hold a medium. */
  holders(medium: bigint): ReadonlySet<string> {
    return this.#holders.get(medium) ?? NOBODY;
  }

  /** The endpoint was sent this medium: it is its most recently used one, and the least recently used may have to go. */
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

  /** Forget every endpoint that is not among these. */
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

  /** Pairs of endpoint and medium that are kept. */
  get size(): number {
    let size = 0;
    for (const held of this.#held.values()) size += held.size;
    return size;
  }
}

const NOBODY: ReadonlySet<string> = new Set();
