/** A request of a burst. */
export interface BurstRequest {
  /** Chain hashes of its prompt. Each stands for all blocks up to its own, so equal last hashes mean equal prompts. */
  readonly chain: BigUint64Array;
  /** Weight in the balance. */
  readonly weight: number;
  /** Assigned slot; undefined = none, so that other scorers decide. */
  assigned: number | undefined;
}

/** An endpoint that a burst is spread over. */
export interface BurstEndpoint {
  readonly slot: number;
  /** Requests on it at present. */
  readonly running: number;
}

export interface AssignmentOptions {
  /** Bound on the requests of one prompt on one endpoint; Infinity = no bound. */
  readonly maxPerEndpoint: number;
  /** Leading blocks that different prompts must share to be assigned together; 0 = never. */
  readonly minSharedBlocks: number;
}

/** Requests with one prompt. */
type Group = readonly BurstRequest[];

/**
 * Assigns the requests of a burst together (llm-d-router, burst-prefix-cache-producer). Requests with one prompt go to
 * one endpoint, so that the prompt is computed once. Groups of several requests come first, then single ones that share
 * leading blocks with others, each kind with the longest prompt first. A group prefers the endpoint with the longest
 * shared beginning while that endpoint has less than its fair share of the burst. Otherwise it goes to the endpoint
 * with the least assigned weight, then with the fewest running requests. Requests without a shared beginning or without
 * a prompt are not assigned.
 */
export function assignBurst(
  requests: readonly BurstRequest[],
  endpoints: readonly BurstEndpoint[],
  options: AssignmentOptions,
): void {
  if (endpoints.length === 0) return;
  const groups = groupsOf(requests);
  const shared = sharedBeginnings(groups, options.minSharedBlocks);
  const several = groups.filter((group) => group.length > 1);
  const single = groups.filter((group) => group.length === 1 && sharesBeginning(group, shared, options));
  const longestFirst = (a: Group, b: Group) => b[0]!.chain.length - a[0]!.chain.length;
  const ordered = [...several.sort(longestFirst), ...single.sort(longestFirst)];
  const total = ordered.reduce((sum, group) => sum + weightOf(group), 0);
  const placement = new Placing(endpoints, total / endpoints.length, options);
  for (const group of ordered) placement.place(group);
}

function groupsOf(requests: readonly BurstRequest[]): readonly Group[] {
  const groups = new Map<bigint, BurstRequest[]>();
  for (const request of requests) {
    const last = request.chain.at(-1);
    if (last === undefined) continue;
    const group = groups.get(last);
    if (group === undefined) groups.set(last, [request]);
    else group.push(request);
  }
  return [...groups.values()];
}

function weightOf(group: Group): number {
  return group.reduce((sum, { weight }) => sum + weight, 0);
}

/** Number of requests that begin with each chain of `blocks` blocks. */
function sharedBeginnings(groups: readonly Group[], blocks: number): ReadonlyMap<bigint, number> {
  const counts = new Map<bigint, number>();
  if (blocks === 0) return counts;
  for (const group of groups) {
    const beginning = group[0]!.chain[blocks - 1];
    if (beginning !== undefined) counts.set(beginning, (counts.get(beginning) ?? 0) + group.length);
  }
  return counts;
}

function sharesBeginning(
  group: Group,
  shared: ReadonlyMap<bigint, number>,
  { minSharedBlocks }: AssignmentOptions,
): boolean {
  const beginning = minSharedBlocks === 0 ? undefined : group[0]!.chain[minSharedBlocks - 1];
  return beginning !== undefined && (shared.get(beginning) ?? 0) > 1;
}

/** The state of one assignment. */
class Placing {
  readonly #endpoints: readonly BurstEndpoint[];
  readonly #fairShare: number;
  readonly #options: AssignmentOptions;
  /** Assigned weight by slot. */
  readonly #load = new Map<number, number>();
  /** Slots with an assigned prompt of this chain. */
  readonly #holders = new Map<bigint, Set<number>>();

  constructor(endpoints: readonly BurstEndpoint[], fairShare: number, options: AssignmentOptions) {
    this.#endpoints = endpoints;
    this.#fairShare = fairShare;
    this.#options = options;
  }

  place(group: Group): void {
    const { maxPerEndpoint, minSharedBlocks } = this.#options;
    const placed = new Map<number, number>();
    let target = minSharedBlocks === 0 ? undefined : this.#sharing(group[0]!.chain);
    for (const request of group) {
      if (target === undefined || (placed.get(target) ?? 0) >= maxPerEndpoint) {
        target = this.#leastLoaded((slot) => (placed.get(slot) ?? 0) < maxPerEndpoint);
      }
      request.assigned = target;
      placed.set(target, (placed.get(target) ?? 0) + 1);
      this.#load.set(target, this.#loadOf(target) + request.weight);
    }
    for (const slot of placed.keys()) this.#hold(group[0]!.chain, slot);
  }

  #loadOf(slot: number): number {
    return this.#load.get(slot) ?? 0;
  }

  /** The endpoint below its fair share with the longest assigned beginning of this prompt. */
  #sharing(chain: BigUint64Array): number | undefined {
    for (let blocks = chain.length; blocks >= this.#options.minSharedBlocks && blocks > 0; blocks--) {
      const holders = this.#holders.get(chain[blocks - 1]!);
      const open = this.#endpoints.filter(({ slot }) => holders?.has(slot) && this.#loadOf(slot) < this.#fairShare);
      if (open.length > 0) return this.#least(open);
    }
    return undefined;
  }

  #leastLoaded(hasRoom: (slot: number) => boolean): number {
    const open = this.#endpoints.filter(({ slot }) => hasRoom(slot));
    return this.#least(open.length > 0 ? open : this.#endpoints);
  }

  #least(endpoints: readonly BurstEndpoint[]): number {
    return endpoints.reduce((least, next) => {
      const more = this.#loadOf(next.slot) - this.#loadOf(least.slot) || next.running - least.running;
      return more < 0 ? next : least;
    }).slot;
  }

  #hold(chain: BigUint64Array, slot: number): void {
    if (this.#options.minSharedBlocks === 0) return;
    for (const link of chain) {
      const holders = this.#holders.get(link);
      if (holders === undefined) this.#holders.set(link, new Set([slot]));
      else holders.add(slot);
    }
  }
}
