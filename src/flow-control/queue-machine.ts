import type { FlowControlSettings } from '../contract/queue-settings.js';
import { REFUSAL_CAUSES, type RefusalCause } from '../contract/refusing-bound.js';
import { adoptAccounts, type Band, type QueueTables, weightOf } from './band.js';
import { BANDS_MAX, BandDirectory } from './band-directory.js';
import { HELD, OVERFLOW } from './candidate-sets.js';
import { drainMs, expectedWaitMs, tokensAhead } from './expected-wait.js';
import { FlowTable } from './flow-table.js';
import { heldInOrder } from './held-turns.js';
import { Lanes } from './lanes.js';
import {
  type DispatchResult,
  NO_HANDLE,
  type OnEvicted,
  type OnExpired,
  type QueuedRequest,
  type QueuePosition,
  type QueueSnapshot,
  type Queues,
  type Refusal,
  type TryDispatch,
} from './queue-contract.js';
import { type BrokenBound, beyond, brokenBound, brokenDeadline, brokenRate } from './queue-limits.js';
import { QueueOutlook } from './queue-outlook.js';
import { NONE, RequestSlab, RUNNING, WAITING } from './request-slab.js';
import { RunningRequests } from './running-requests.js';
import { bandSnapshot, setSnapshots } from './snapshot.js';
import { TokenBuckets } from './token-buckets.js';
import { WaitingRoom } from './waiting-room.js';

/** Bounds of the machine that no configuration changes. */
export interface QueueBounds {
  /** Bound on the waiting and running requests. Running ones take at most half. */
  readonly requests: number;
  readonly flows: number;
}

const QUEUE_BOUNDS: QueueBounds = { requests: 2 ** 17, flows: 100_000 };

/** Requests of the overflow set that are tried before the set counts as closed (docs/internals/flow-control.md). */
const LOOK_AHEAD = 16;
/** Bound on the idle flows that one arrival drops, and interval between two checks of the bands. */
const COLLECTED_MAX = 8;
const COLLECT_BANDS_MS = 60_000;

/** The queues of one pool. `Queues` is the contract; docs/flow-control.md has the drawing. */
export class QueueMachine implements Queues {
  unfinished = false;
  readonly refusal: Refusal = { outcome: 'RejectedCapacity', retryAfterSeconds: 1, ...beyond('pool-requests', 0) };
  readonly totals = {
    entered: 0,
    refused: Object.fromEntries(REFUSAL_CAUSES.map((cause) => [cause, 0])) as Record<RefusalCause, number>,
    dispatched: 0,
    requeued: 0,
    expired: 0,
    cancelled: 0,
    evicted: 0,
  };
  readonly #tables: QueueTables;
  readonly #bands: BandDirectory;
  readonly #room: WaitingRoom;
  readonly #running: RunningRequests;
  readonly #outlook: QueueOutlook;
  readonly #runningMax: number;
  /** Requests of the overflow set that a dispatch has tried without success and will put back. */
  readonly #aside: number[] = [];
  #settings: FlowControlSettings;
  #buckets: TokenBuckets;
  #sequence = 0;
  /** Whether the last dispatch was stopped for all candidate sets. */
  #stopped = false;
  #bandsCollectedMs: number;

  /** @param seed of the jitter of Retry-After */
  constructor(settings: FlowControlSettings, nowMs: number, bounds: QueueBounds = QUEUE_BOUNDS, seed = 1) {
    const requests = new RequestSlab(bounds.requests);
    this.#tables = { requests, lanes: new Lanes(bounds.requests), flows: new FlowTable(bounds.flows) };
    this.#settings = settings;
    this.#bands = new BandDirectory(settings, this.#tables, nowMs);
    this.#room = new WaitingRoom(this.#tables, this.#bands, settings.noEndpointTtlMs);
    this.#running = new RunningRequests(this.#tables, (priority) => this.#bands.get(priority));
    this.#buckets = new TokenBuckets(settings.tenantLimits);
    this.#outlook = new QueueOutlook(this.#tables, this.#bands, seed);
    this.#runningMax = bounds.requests >> 1;
    this.#bandsCollectedMs = nowMs;
  }

  get waiting(): number {
    return this.#room.requests;
  }

  get held(): number {
    return this.#room.held.size;
  }

  /** Dispatched requests that have not ended, as far as they are followed. */
  get running(): number {
    return this.#running.count;
  }

  /** Known flows, idle ones included. */
  get flowCount(): number {
    return this.#tables.flows.size;
  }

  get buckets(): TokenBuckets {
    return this.#buckets;
  }

  ttlMs(priority: number): number {
    return this.#bands.ttlMs(priority);
  }

  limitsTenant(flow: string): boolean {
    return this.#buckets.limits(flow);
  }

  enqueue(request: QueuedRequest, nowMs: number): number {
    const { requests, flows } = this.#tables;
    this.#collect(nowMs);
    const band = this.#bands.bandFor(request.priority, nowMs);
    if (band === undefined) return this.#refuse(beyond('too-many-bands', BANDS_MAX), undefined);
    let flow = flows.find(band.priority, request.flow);
    const tokens = request.uncachedTokens + this.#running.expectedOutput(flow, request.maxTokens);
    const waitMs = expectedWaitMs(band, flows, flow, request.flow, nowMs);
    const late = brokenDeadline(request, waitMs, nowMs);
    const bound = late ?? brokenBound(this.#room, this.#settings, band, request.bytes, tokens, waitMs);
    if (bound !== undefined) return this.#refuse(bound, waitMs);
    const ahead = tokensAhead(band, flows, flow, request.flow);
    const rate = brokenRate(this.#room, band, ahead, nowMs);
    if (rate !== undefined) return this.#refuse(rate, waitMs);
    const bucketMs = this.#buckets.waitFor(request.flow, tokens, nowMs);
    if (bucketMs > 0) return this.#refuse({ cause: 'tenant-limit', used: bucketMs, limit: 0 }, bucketMs);
    if (requests.live === requests.capacity) return this.#refuse(beyond('too-many-waiting', requests.capacity), waitMs);
    if (flow === NONE) {
      const weight = weightOf(band.settings.fairness, request.flow);
      flow = flows.open(band.priority, request.flow, weight, this.#running.outputMean, nowMs);
      if (flow === NONE) return this.#refuse(beyond('too-many-flows', flows.size), waitMs);
    }
    this.#buckets.take(request.flow, tokens, nowMs);
    const index = requests.take();
    this.#fill(index, request, flow, tokens, nowMs);
    requests.order[index] = this.#orderOf(index, band);
    this.#room.enter(index, band, this.#firstSet(index, request, band), nowMs);
    this.totals.entered++;
    return requests.handleOf(index);
  }

  cancel(handle: number, nowMs: number): boolean {
    const index = this.#tables.requests.find(handle, WAITING);
    if (index === NONE) return false;
    this.#remove(index, nowMs);
    this.totals.cancelled++;
    return true;
  }

  dispatch(tryDispatch: TryDispatch, nowMs: number, dispatchesMax: number): number {
    this.unfinished = false;
    this.#stopped = false;
    let dispatched = 0;
    for (const band of this.#bands.sorted) {
      if (band.waiting === 0) continue;
      band.fairness.at(nowMs);
      dispatched += this.#dispatchBand(band, tryDispatch, nowMs, dispatchesMax - dispatched);
      this.#putBack(band);
      if (this.unfinished || this.#stopped) break;
    }
    return dispatched;
  }

  #dispatchBand(band: Band, tryDispatch: TryDispatch, nowMs: number, dispatchesMax: number): number {
    const { requests, lanes } = this.#tables;
    let dispatched = 0;
    for (;;) {
      const [low, high] = [band.openLow, band.openHigh];
      if ((low | high) === 0) return dispatched;
      if (dispatched === dispatchesMax) {
        this.unfinished = true;
        return dispatched;
      }
      const index = lanes.head[band.fairness.choose(low, high)]!;
      const handle = requests.handleOf(index);
      const result = tryDispatch(handle, requests.reference[index]!, band.priority, requests.stickySlot[index]!);
      if (result === 'dispatched') {
        dispatched++;
        this.#dispatch(index, band, nowMs);
      } else if (!this.#passOver(index, band, result, nowMs)) return dispatched;
    }
  }

  dispatchHeld(tryDispatch: TryDispatch, nowMs: number, triesMax: number): number {
    const { requests } = this.#tables;
    let tries = 0;
    let dispatched = 0;
    for (const band of this.#bands.sorted) {
      if (!band.holds) continue;
      for (const index of heldInOrder(this.#room, band, this.#tables, nowMs)) {
        if (tries++ === triesMax) return dispatched;
        const handle = requests.handleOf(index);
        const result = tryDispatch(handle, requests.reference[index]!, band.priority, NONE);
        if (result === 'dispatched') {
          dispatched++;
          this.#dispatch(index, band, nowMs);
        } else if (result === 'gone') this.cancel(handle, nowMs);
        else if (result === 'stopped' || result === 'later') return dispatched;
      }
    }
    return dispatched;
  }

  #dispatch(index: number, band: Band, nowMs: number): void {
    // Beyond the bound the request runs all the same; its flow's account keeps the estimate.
    const isFollowed = this.#running.count < this.#runningMax;
    if (isFollowed) this.#running.start(index, band);
    const tokens = this.#running.pay(index, band);
    band.drain.dispatched(tokens, nowMs);
    this.#room.leave(index, band, nowMs);
    if (!isFollowed) this.#free(index, nowMs);
    this.totals.dispatched++;
  }

  /** Handles a request that was not dispatched. @returns false when the band is finished */
  #passOver(index: number, band: Band, result: Exclude<DispatchResult, 'dispatched'>, nowMs: number): boolean {
    const { requests, lanes } = this.#tables;
    if (result === 'gone') return this.cancel(requests.handleOf(index), nowMs);
    if (result === 'sticks') {
      this.#room.setAside(index, requests.prefixSlot[index]!, band, nowMs);
      return true;
    }
    if (result === 'held') {
      this.#room.hold(index, band);
      return true;
    }
    if (result !== 'closed') {
      this.#stopped = true;
      return false;
    }
    const candidateSet = lanes.candidateSet[requests.lane[index]!]!;
    if (candidateSet === OVERFLOW && this.#aside.length < LOOK_AHEAD - 1) {
      this.#aside.push(index);
      band.unplace(index);
    } else band.close(candidateSet);
    return true;
  }

  #putBack(band: Band): void {
    if (this.#aside.length === 0) return;
    for (const index of this.#aside) band.place(index, OVERFLOW);
    this.#aside.length = 0;
    if (!this.unfinished && !this.#stopped) band.close(OVERFLOW);
  }

  requeue(handle: number, candidates: Uint32Array | undefined, nowMs: number, held = false): boolean {
    const { requests, flows } = this.#tables;
    const index = requests.find(handle, RUNNING);
    if (index === NONE) return false;
    const flow = requests.flow[index]!;
    const band = this.#bands.bandFor(flows.priority[flow]!, nowMs)!;
    this.#running.takeBack(index, nowMs);
    requests.stickySlot[index] = NONE;
    requests.ownSet[index] = this.#room.sets.find(candidates);
    this.#room.enter(index, band, held ? HELD : requests.ownSet[index]!, nowMs);
    this.totals.requeued++;
    this.totals.dispatched--;
    return true;
  }

  progress(handle: number, outputTokens: number, nowMs: number): void {
    const index = this.#tables.requests.find(handle, RUNNING);
    if (index !== NONE) this.#running.progress(index, outputTokens, nowMs);
  }

  end(handle: number, outputTokens: number, nowMs: number): void {
    const index = this.#tables.requests.find(handle, RUNNING);
    if (index === NONE) return;
    this.#running.end(index, outputTokens, nowMs);
    this.#free(index, nowMs);
  }

  refund(handle: number, nowMs: number): void {
    const index = this.#tables.requests.find(handle, RUNNING);
    if (index === NONE) return;
    this.#running.takeBack(index, nowMs);
    this.#free(index, nowMs);
  }

  opened(slot: number): void {
    this.#stopped = false;
    const { sets } = this.#room;
    for (const band of this.#bands.sorted) band.open(sets.lowOf(slot), sets.highOf(slot));
  }

  openedAll(): void {
    this.#stopped = false;
    for (const band of this.#bands.sorted) band.open(0xffffffff, 0xffffffff);
  }

  closedFor(slot: number): boolean {
    if (this.waiting === 0) return false;
    if (this.#stopped) return true;
    const { sets } = this.#room;
    return this.#bands.sorted.some((band) => band.isClosedAmong(sets.lowOf(slot), sets.highOf(slot)));
  }

  endpointGone(slot: number): void {
    for (const index of this.#room.stuckTo(slot)) this.#room.unstick(index, this.#bandOf(index));
    this.#room.sets.removeSlot(slot);
  }

  poolEmpty(empty: boolean, nowMs: number): void {
    if (this.#room.setPoolEmpty(empty, nowMs)) this.openedAll();
  }

  nextDeadline(): number {
    return this.#room.nextDeadlineMs;
  }

  expire(nowMs: number, onExpired: OnExpired): number {
    const [{ requests }, room] = [this.#tables, this.#room];
    for (let index = room.stickyOver(nowMs); index !== NONE; index = room.stickyOver(nowMs)) {
      room.unstick(index, this.#bandOf(index));
    }
    let expired = 0;
    for (let index = room.overdue(nowMs); index !== NONE; index = room.overdue(nowMs)) {
      const nowhere = room.poolEmpty || room.sets.isEmpty(requests.ownSet[index]!);
      const [handle, reference] = [requests.handleOf(index), requests.reference[index]!];
      const { priority } = this.#bandOf(index);
      const retryAfterSeconds = this.retryAfterSeconds(handle, nowMs);
      this.#remove(index, nowMs);
      this.totals.expired++;
      expired++;
      onExpired(handle, reference, nowhere ? 'EvictedNoEndpoints' : 'EvictedTTL', priority, retryAfterSeconds);
    }
    return expired;
  }

  evictAll(onEvicted: OnEvicted, nowMs: number): number {
    const { requests, lanes } = this.#tables;
    let evicted = 0;
    for (const band of this.#bands.sorted) {
      let tokens = 0;
      while (band.waiting > 0) {
        const index = lanes.head[band.fairness.choose(band.filledLow, band.filledHigh)]!;
        const [handle, reference] = [requests.handleOf(index), requests.reference[index]!];
        tokens += requests.tokens[index]!;
        this.#remove(index, nowMs);
        this.totals.evicted++;
        evicted++;
        // Retry-After grows with the tokens served before, so the clients return in the order of service.
        onEvicted(handle, reference, band.priority, this.#outlook.retrySeconds(drainMs(band, tokens, nowMs)));
      }
    }
    return evicted;
  }

  configure(settings: FlowControlSettings, nowMs: number): boolean {
    if (!this.#bands.fits(settings)) return false;
    const { requests } = this.#tables;
    const replaced = this.#bands.sorted.filter((band) => !this.#bands.keeps(band, settings));
    const moved = this.#room.indices().filter((index) => replaced.includes(this.#bandOf(index)));
    const used = new Set(moved.map((index) => this.#bandOf(index).priority));
    for (const index of moved) this.#room.leave(index, this.#bandOf(index), nowMs);
    this.#settings = settings;
    this.#bands.configure(settings, nowMs, used);
    for (const band of replaced)
      adoptAccounts(this.#tables.flows, band, this.#bands.get(band.priority)?.settings.fairness);
    for (const index of moved) {
      const band = this.#bandOf(index);
      requests.stickySlot[index] = NONE;
      requests.order[index] = this.#orderOf(index, band);
      this.#room.enter(index, band, requests.ownSet[index]!, nowMs);
    }
    this.#room.setLongestWaits(settings.noEndpointTtlMs);
    this.#buckets = new TokenBuckets(settings.tenantLimits);
    this.openedAll();
    return true;
  }

  blocked(visit: (handle: number, priority: number) => boolean): void {
    const { requests, lanes } = this.#tables;
    for (const band of this.#bands.sorted) {
      if (band.waiting === 0) continue;
      for (const candidateSet of band.closedSets()) {
        const index = lanes.head[band.headOf(candidateSet)]!;
        // A request that waits for the endpoint with its prefix goes to another endpoint soon.
        if (requests.stickySlot[index] === NONE && !visit(requests.handleOf(index), band.priority)) return;
      }
    }
  }

  highestWaiting(): number | undefined {
    return this.#bands.sorted.find((band) => band.waiting > 0)?.priority;
  }

  priorities(): readonly number[] {
    return this.#bands.sorted.map((band) => band.priority);
  }

  position(handle: number, nowMs: number): QueuePosition | undefined {
    return this.#outlook.position(handle, nowMs);
  }

  outlook(priority: number, id: string, nowMs: number): QueuePosition | undefined {
    return this.#outlook.ofFlow(priority, id, nowMs);
  }

  retryAfterSeconds(handle: number, nowMs: number): number {
    return this.#outlook.retryAfterSeconds(handle, nowMs);
  }

  drainMs(priority: number, nowMs: number): number | undefined {
    return this.#outlook.drainMs(priority, nowMs);
  }

  snapshot(nowMs: number, flows: number): QueueSnapshot {
    return {
      waiting: this.waiting,
      running: this.running,
      bytes: this.#room.bytes,
      tokens: this.#room.tokens,
      bands: this.#bands.sorted.map((band) => bandSnapshot(band, this.#tables, nowMs, flows)),
      classes: setSnapshots(this.#room.sets),
      totals: { ...this.totals, refused: { ...this.totals.refused } },
    };
  }

  #bandOf(index: number): Band {
    return this.#bands.get(this.#tables.flows.priority[this.#tables.requests.flow[index]!]!)!;
  }

  #refuse(bound: BrokenBound, waitMs: number | undefined): number {
    const outcome = this.#room.poolEmpty ? 'RejectedNoEndpoints' : 'RejectedCapacity';
    Object.assign(this.refusal, bound, { outcome, retryAfterSeconds: this.#outlook.retrySeconds(waitMs) } as const);
    this.totals.refused[bound.cause]++;
    return NO_HANDLE;
  }

  #fill(index: number, request: QueuedRequest, flow: number, tokens: number, nowMs: number): void {
    const { requests } = this.#tables;
    requests.flow[index] = flow;
    requests.reference[index] = request.reference;
    requests.sequence[index] = ++this.#sequence;
    requests.enqueuedMs[index] = nowMs;
    requests.ownDeadlineMs[index] = request.deadlineMs;
    requests.firstTokenDueMs[index] = request.firstTokenDueMs;
    requests.bytes[index] = request.bytes;
    requests.promptTokens[index] = request.promptTokens;
    requests.uncachedTokens[index] = request.uncachedTokens;
    requests.maxTokens[index] = request.maxTokens;
    requests.tokens[index] = tokens;
    requests.stickySlot[index] = NONE;
    requests.prefixSlot[index] = request.prefixSlot ?? NONE;
    requests.ownSet[index] = this.#room.sets.find(request.candidates);
  }

  #orderOf(index: number, band: Band): number {
    const { requests } = this.#tables;
    const enqueuedMs = requests.enqueuedMs[index]!;
    return band.orderOf({
      enqueuedMs,
      dueMs: Math.min(requests.ownDeadlineMs[index]!, enqueuedMs + band.ttlMs),
      firstTokenDueMs: requests.firstTokenDueMs[index]!,
      uncachedTokens: requests.uncachedTokens[index]!,
      sequence: requests.sequence[index]!,
    });
  }

  /** Candidate set in which a request starts to wait: that of the endpoint with its prefix, or its own. */
  #firstSet(index: number, { stickySlot, held }: QueuedRequest, band: Band): number {
    if (held === true) return HELD;
    const own = this.#tables.requests.ownSet[index]!;
    const { sorted } = this.#bands;
    // The highest of several bands would lose more by the wait than the prefix saves (docs/internals/flow-control.md).
    if (stickySlot < 0 || (sorted.length > 1 && sorted[0] === band)) return own;
    const only = this.#room.stick(index, stickySlot, this.#tables.requests.enqueuedMs[index]!);
    return only === NONE ? own : only;
  }

  #remove(index: number, nowMs: number): void {
    this.#room.leave(index, this.#bandOf(index), nowMs);
    this.#free(index, nowMs);
  }

  #free(index: number, nowMs: number): void {
    const { requests, flows } = this.#tables;
    requests.free(index);
    flows.release(requests.flow[index]!, nowMs);
  }

  #collect(nowMs: number): void {
    this.#tables.flows.collect(nowMs - this.#bands.flowIdleMs, COLLECTED_MAX);
    if (nowMs - this.#bandsCollectedMs < COLLECT_BANDS_MS) return;
    this.#bandsCollectedMs = nowMs;
    this.#bands.collect(nowMs);
  }
}
