import { CORE } from '../core/core-names.js';
import type { Band, QueueTables } from './band.js';
import type { BandDirectory } from './band-directory.js';
import { CandidateSets, HELD } from './candidate-sets.js';
import { NONE, WAITING } from './request-slab.js';
import { TimeHeap } from './time-heap.js';

/**
 * Longest wait in milliseconds for the endpoint that holds a request's prefix (docs/internals/flow-control.md, measured
 * there).
 */
const STICKY_WAIT_MS = 500;

/** All waiting requests: place in a band, candidate set, deadline, and the sums over them. */
export class WaitingRoom {
  readonly sets: CandidateSets;
  /** Held turns, by their records. */
  readonly held = new Set<number>();
  requests = 0;
  bytes = 0;
  tokens = 0;
  readonly #tables: QueueTables;
  readonly #deadlines: TimeHeap;
  readonly #stickyEnds: TimeHeap;
  readonly #onlySlot = new Uint32Array(CORE.ENDPOINTS_MAX / 32);
  readonly #bands: BandDirectory;
  #noEndpointTtlMs: number;
  #poolEmpty = false;
  /** Time of the last change between a pool with and without endpoints. */
  #poolSinceMs = Number.NEGATIVE_INFINITY;

  /** @param noEndpointTtlMs longest wait in milliseconds while the pool has no endpoints; Infinity = no end */
  constructor(tables: QueueTables, bands: BandDirectory, noEndpointTtlMs: number) {
    this.#tables = tables;
    this.#bands = bands;
    this.sets = new CandidateSets((id) => bands.renamedSet(id));
    this.#noEndpointTtlMs = noEndpointTtlMs;
    this.#deadlines = new TimeHeap(tables.requests.capacity);
    this.#stickyEnds = new TimeHeap(tables.requests.capacity);
  }

  get poolEmpty(): boolean {
    return this.#poolEmpty;
  }

  /** Starts the wait of a request, filled in and with a candidate set of its own, among those of `candidateSet`. */
  enter(index: number, band: Band, candidateSet: number, nowMs: number): void {
    const { requests, flows } = this.#tables;
    const flow = requests.flow[index]!;
    flows.hold(flow);
    if (flows.waiting[flow]!++ === 0) {
      band.fairness.wake(flow, candidateSet);
      band.activeWeight += flows.weight[flow]!;
    }
    flows.waitingTokens[flow]! += requests.tokens[index]!;
    if (band.waiting++ === 0) band.drain.begin(nowMs);
    this.requests++;
    this.#sum(index, band, 1);
    this.sets.members[requests.ownSet[index]!]!++;
    this.sets.members[candidateSet]!++;
    requests.state[index] = WAITING;
    band.place(index, candidateSet);
    if (candidateSet === HELD) this.held.add(index);
    this.#deadlines.set(index, this.#deadlineOf(index));
  }

  /** Ends the wait of a request; its record stays with the caller. */
  leave(index: number, band: Band, nowMs: number): void {
    const { requests, lanes, flows } = this.#tables;
    const flow = requests.flow[index]!;
    const candidateSet = lanes.candidateSet[requests.lane[index]!]!;
    band.unplace(index);
    this.held.delete(index);
    this.#deadlines.remove(index);
    this.#stickyEnds.remove(index);
    this.sets.members[requests.ownSet[index]!]!--;
    this.sets.members[candidateSet]!--;
    this.requests--;
    this.#sum(index, band, -1);
    flows.waitingTokens[flow]! -= requests.tokens[index]!;
    if (--flows.waiting[flow]! === 0) {
      flows.waitingTokens[flow] = 0;
      band.activeWeight -= flows.weight[flow]!;
    }
    if (--band.waiting === 0) {
      [band.bytes, band.tokens, band.activeWeight] = [0, 0, 0];
      band.idleSinceMs = nowMs;
      band.drain.stop(nowMs);
    }
    if (this.requests === 0) [this.bytes, this.tokens] = [0, 0];
  }

  #sum(index: number, band: Band, sign: 1 | -1): void {
    const { requests } = this.#tables;
    const bytes = sign * requests.bytes[index]!;
    const tokens = sign * requests.tokens[index]!;
    this.bytes += bytes;
    this.tokens += tokens;
    band.bytes += bytes;
    band.tokens += tokens;
  }

  /** The candidate set of one endpoint alone, in which the request waits first. NONE when no set is free. */
  stick(index: number, slot: number, nowMs: number): number {
    if (slot >= CORE.ENDPOINTS_MAX) return NONE;
    const { requests } = this.#tables;
    const { members } = this.sets;
    const ownSet = requests.ownSet[index]!;
    this.#onlySlot[slot >> 5] = 1 << (slot & 31);
    // The request is no member of its own set yet. Without this count its number could be taken away.
    members[ownSet]!++;
    const only = this.sets.findExact(this.#onlySlot);
    members[ownSet]!--;
    this.#onlySlot[slot >> 5] = 0;
    if (only === NONE || only === ownSet) return NONE;
    requests.stickySlot[index] = slot;
    this.#stickyEnds.set(index, nowMs + STICKY_WAIT_MS);
    return only;
  }

  /** Makes a request of its own set wait for one endpoint alone, if a set is free. */
  setAside(index: number, slot: number, band: Band, nowMs: number): void {
    const only = this.stick(index, slot, nowMs);
    if (only === NONE) return;
    this.sets.members[this.#tables.requests.ownSet[index]!]!--;
    this.sets.members[only]!++;
    band.unplace(index);
    band.place(index, only);
  }

  /** Makes a request a held one: no endpoint has room for its session. */
  hold(index: number, band: Band): void {
    const { requests, lanes } = this.#tables;
    this.#stickyEnds.remove(index);
    requests.stickySlot[index] = NONE;
    this.sets.members[lanes.candidateSet[requests.lane[index]!]!]!--;
    this.sets.members[HELD]!++;
    band.unplace(index);
    band.place(index, HELD);
    this.held.add(index);
  }

  /** Ends the wait for one endpoint: the request joins those of its own set. */
  unstick(index: number, band: Band): void {
    const { requests, lanes } = this.#tables;
    const ownSet = requests.ownSet[index]!;
    this.#stickyEnds.remove(index);
    this.sets.members[lanes.candidateSet[requests.lane[index]!]!]!--;
    this.sets.members[ownSet]!++;
    requests.stickySlot[index] = NONE;
    band.unplace(index);
    band.place(index, ownSet);
  }

  /** Requests that wait for this one endpoint. */
  stuckTo(slot: number): readonly number[] {
    if (this.#stickyEnds.size === 0) return [];
    return this.indices().filter((index) => this.#tables.requests.stickySlot[index] === slot);
  }

  /** All waiting requests in the order of arrival. O(n log n), for rare events. */
  indices(): readonly number[] {
    const { state, sequence, used } = this.#tables.requests;
    const found: number[] = [];
    for (let index = 0; index < used; index++) if (state[index] === WAITING) found.push(index);
    return found.sort((a, b) => sequence[a]! - sequence[b]!);
  }

  /** Applies other longest waits, that of a pool without endpoints and those of the bands. */
  setLongestWaits(noEndpointTtlMs: number): void {
    this.#noEndpointTtlMs = noEndpointTtlMs;
    this.#renewDeadlines();
  }

  /** @returns whether the state has changed; every wait has started anew then */
  setPoolEmpty(empty: boolean, nowMs: number): boolean {
    if (empty === this.#poolEmpty) return false;
    this.#poolEmpty = empty;
    this.#poolSinceMs = nowMs;
    this.#renewDeadlines();
    return true;
  }

  get nextDeadlineMs(): number {
    return Math.min(this.#deadlines.earliestMs, this.#stickyEnds.earliestMs);
  }

  /** A request whose wait for one endpoint is over, or NONE. */
  stickyOver(nowMs: number): number {
    return this.#stickyEnds.earliestMs <= nowMs ? this.#stickyEnds.first : NONE;
  }

  /** A request whose wait is over, or NONE. */
  overdue(nowMs: number): number {
    return this.#deadlines.earliestMs <= nowMs ? this.#deadlines.first : NONE;
  }

  #renewDeadlines(): void {
    for (const index of this.indices()) this.#deadlines.set(index, this.#deadlineOf(index));
  }

  #deadlineOf(index: number): number {
    const { requests, flows } = this.#tables;
    const priority = flows.priority[requests.flow[index]!]!;
    const budget = this.#poolEmpty ? this.#noEndpointTtlMs : this.#bands.ttlMs(priority);
    const since = Math.max(requests.enqueuedMs[index]!, this.#poolSinceMs);
    return Math.min(requests.ownDeadlineMs[index]!, since + budget);
  }
}
