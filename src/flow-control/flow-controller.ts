import { plainBound, type RefusedBy, type RefusingBound } from '../contract/refusing-bound.js';
import type { ReplicaPlace } from '../contract/replica-place.js';
import type { WaitingRequest } from '../core/capacity-gate.js';
import { SESSION_TICK_MS } from '../core/session-ledger.js';
import { LOCK_RETRY_MS, LockRetry } from '../runtime/lock-retry.js';
import { BandRound } from './band-round.js';
import type { FlowControllerOptions, RoomSettings } from './controller-options.js';
import { Evictions } from './evictions.js';
import { type FlowEvent, FlowEvents } from './flow-events.js';
import { type FlowTimers, threadTimers } from './flow-timers.js';
import { HeldRounds } from './held-rounds.js';
import { type HeldTurn, longestHeld } from './held-turns.js';
import { Ceilings } from './policies/usage-limits.js';
import type { DispatchResult, QueueOutcome, QueuePosition } from './queue-contract.js';
import { NO_HANDLE } from './queue-contract.js';
import { outcomeNumber } from './queue-outcomes.js';
import type { UsageReport } from './waiting-line.js';

/** Wait slot of a waiting request. */
interface Place {
  readonly thread: number;
  readonly slot: number;
}

/** Bound on the dispatches of one turn of the event loop, so that other work is not delayed. */
const DISPATCHES_PER_TURN_MAX = 256;
/** Interval between two updates of what has filled up, while requests wait (docs/internals/flow-control.md). */
const LOOK_MS = 50;
/** Minimum interval between two tries of held turns, and bound on the tries. */
const HELD_MS = 20;
const HELD_TRIES_MAX = 256;
/** Time without requests after which a band is dropped (as in llm-d-router), and interval between two checks. */
const BAND_IDLE_MS = 600_000;
const FORGET_MS = 60_000;
/** Minimum interval between scans for non-streamed requests whose first token is overdue. */
const UNSEEN_MS = 5;

/**
 * Dispatches waiting requests as soon as an endpoint has room. The queues decide the order; the capacity gate decides
 * about room and charges. Woken by the core's bell, by deadlines, every 50 ms while requests wait, every 500 ms while
 * sessions are counted, and among replicas by its part of a round while turns are held; there is no other timer.
 * Control thread only.
 */
export class FlowController {
  readonly #options: FlowControllerOptions;
  /** Returns of requests that met the lock of a dead thread. */
  readonly #answers = new LockRetry({ pauseMsMax: LOCK_RETRY_MS });
  #ceilings = new Ceilings({ kind: 'static', threshold: 1 });
  /** By the queues' handle. */
  readonly #waiting = new Map<number, Place>();
  /** Handle by wait slot: `thread * PLACES + slot`. */
  readonly #handles = new Map<number, number>();
  /** Thread by handle of a dispatched request that has not ended. */
  readonly #running = new Map<number, number>();
  #standing: readonly number[] = [];
  /** Ceilings as written to the gate. */
  readonly #written = new Map<number, number>();
  readonly #round = new BandRound();
  readonly #dispatch = (handle: number, _reference: number, priority: number, only: number): DispatchResult =>
    this.#round.try(priority, this.#options.gate.rung, () => this.#tryDispatch(handle, only));
  readonly #events = new FlowEvents();
  readonly #evictions: Evictions;
  /** Whether running requests may be evicted for waiting ones of a higher band. */
  #evicts = false;
  readonly #rounds = new HeldRounds();
  readonly #timers: FlowTimers;
  #forgetTimer: () => void = () => undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #lastLookMs = 0;
  #lastTickMs = 0;
  #lastHeldMs = 0;
  #forgotMs = 0;
  /** Time at which first tokens that cannot be seen are due. */
  #unseenMs = Number.POSITIVE_INFINITY;
  #more = false;
  #again = false;
  #closing = false;
  #stopped = false;

  constructor(options: FlowControllerOptions) {
    this.#options = options;
    this.#timers = options.timers ?? threadTimers;
    const placeOf = (handle: number) => this.#waiting.get(handle)!;
    this.#evictions = new Evictions({
      ...options.evictions,
      gate: options.gate,
      queues: options.queues,
      placeOf,
    });
  }

  /** Number of waiting requests. */
  get waiting(): number {
    return this.#options.queues.waiting;
  }

  /** Outcomes of the last requests that waited, newest first. */
  get events(): readonly FlowEvent[] {
    return this.#events.newest;
  }

  /** Held turns, those that have waited longest first. */
  get heldTurns(): readonly HeldTurn[] {
    const { gate, queues, nowMs } = this.#options;
    if (queues.held === 0) return [];
    const turns = [...this.#waiting.values()].map(({ thread, slot }) => gate.read(thread, slot));
    return longestHeld(turns, (thread, slot) => gate.needOf(thread, slot), nowMs());
  }

  /** Share of every endpoint that a band may fill, by priority. */
  get ceilings(): ReadonlyMap<number, number> {
    return this.#written;
  }

  /** Schedules a dispatch. Called by the bell and after any change of the endpoints. */
  wake(): void {
    if (this.#stopped) return;
    for (const thread of this.#options.shards) this.#collect(thread);
    this.#serve();
  }

  /** Changes the rules of the capacity gate. @returns false when the core could not be written: call again */
  configure({ gate: settings, ceilings, share, standing, sessions }: RoomSettings): boolean {
    const { gate, blockTokens, nowMs } = this.#options;
    this.#ceilings = ceilings;
    this.#standing = standing;
    this.#written.clear();
    if (!gate.configure(settings, blockTokens, share, nowMs()) || !gate.keepBands(standing, nowMs())) return false;
    if (!gate.sessions.configure(sessions)) return false;
    this.#sleep(nowMs());
    return true;
  }

  /** Takes the place of this replica among those that share the pool. */
  setPlace(place: ReplicaPlace): void {
    if (this.#rounds.take(place)) this.wake();
  }

  /** Allows or forbids evictions for waiting requests of a higher band. */
  set evicts(on: boolean) {
    this.#evicts = on;
  }

  /** Removes endpoints that have left the pool. */
  endpointsGone(slots: readonly number[]): void {
    for (const slot of slots) this.#options.queues.endpointGone(slot);
    this.wake();
  }

  /** Drops the waiting and running requests of a dead shard. The core has been repaired already. */
  shardDied(thread: number): void {
    const { queues, nowMs } = this.#options;
    const now = nowMs();
    for (const [handle, place] of this.#waiting) {
      if (place.thread !== thread) continue;
      queues.cancel(handle, now);
      this.#leave(handle, place);
    }
    for (const [handle, owner] of this.#running) {
      if (owner !== thread) continue;
      queues.end(handle, 0, now);
      this.#running.delete(handle);
    }
    this.wake();
  }

  /** Records token usage and end of dispatched requests. */
  report({ ended, progressed, refunded }: UsageReport): void {
    const { queues, nowMs } = this.#options;
    const now = nowMs();
    for (let i = 0; i < progressed.length; i += 2) {
      if (this.#running.has(progressed[i]!)) queues.progress(progressed[i]!, progressed[i + 1]!, now);
    }
    for (let i = 0; i < ended.length; i += 2) {
      if (this.#running.delete(ended[i]!)) queues.end(ended[i]!, ended[i + 1]!, now);
    }
    for (const handle of refunded) if (this.#running.delete(handle)) queues.refund(handle, now);
  }

  /** Ends the queues for a shutdown: all waiting and all later requests are answered. */
  close(): void {
    const { queues, nowMs } = this.#options;
    if (this.#closing) return;
    this.#closing = true;
    this.wake();
    queues.evictAll(
      (handle, _reference, _priority, seconds) => this.#turnAway(handle, 'EvictedOther', seconds),
      nowMs(),
    );
  }

  /** Stops all timers. */
  stop(): void {
    this.#stopped = true;
    this.#forgetTimer();
  }

  // Messages from the shards.

  #collect(thread: number): void {
    this.#options.gate.takeEnqueued(
      thread,
      (slot) => this.#enqueued(thread, slot),
      (slot) => this.#cancelled(thread, slot),
    );
  }

  #enqueued(thread: number, slot: number): void {
    const { gate, queues, counts, nowMs } = this.#options;
    const now = nowMs();
    const request = gate.read(thread, slot);
    const handle = this.#closing ? NO_HANDLE : this.#enqueue(request, now);
    if (handle === NO_HANDLE) {
      this.#refuse({ thread, slot }, request, now);
      return;
    }
    if (!request.again) counts.arrived(request.flow, request.priority, undefined, (now - request.sinceMs) / 1_000);
    this.#waiting.set(handle, { thread, slot });
    this.#handles.set(placeNumber(thread, slot), handle);
    gate.setHandle(thread, slot, handle);
    if (request.wantsPosition) this.#tell({ thread, slot }, queues.position(handle, now));
  }

  #tell({ thread, slot }: Place, position: QueuePosition | undefined): void {
    if (position !== undefined) this.#options.gate.setPosition(thread, slot, position.ahead, position.expectedWaitMs);
  }

  #refuse(place: Place, { flow, priority, sinceMs, wantsPosition }: WaitingRequest, now: number): void {
    const { gate, queues, counts } = this.#options;
    if (this.#closing) {
      this.#reject(place, 'EvictedOther', 1, plainBound('shutting-down'));
      return;
    }
    const { cause, used, limit, retryAfterSeconds } = queues.refusal;
    const outcome = gate.live === 0 ? 'RejectedNoEndpoints' : queues.refusal.outcome;
    counts.arrived(flow, priority, outcome, (now - sinceMs) / 1_000);
    counts.refused(cause, priority);
    if (wantsPosition) this.#tell(place, queues.outlook(priority, flow, now));
    this.#reject(place, outcome, retryAfterSeconds, { by: cause, used, limit });
  }

  /** @returns the handle, or NO_HANDLE */
  #enqueue(request: WaitingRequest, now: number): number {
    const { queues } = this.#options;
    // Returned from a dispatch without use of the endpoint: the request goes to the head of its flow.
    const candidates = this.#candidatesOf(request);
    if (request.again && queues.requeue(request.handle, candidates, now, request.held)) {
      this.#running.delete(request.handle);
      return request.handle;
    }
    return queues.enqueue(
      {
        priority: request.priority,
        flow: request.flow,
        candidates,
        held: request.held,
        promptTokens: request.promptTokens,
        uncachedTokens: request.uncachedTokens,
        maxTokens: request.maxOutputTokens,
        bytes: request.bodyBytes,
        deadlineMs: Number.isNaN(request.ttlMs) ? Number.POSITIVE_INFINITY : request.sinceMs + request.ttlMs,
        firstTokenDueMs: Number.isNaN(request.firstTokenDueMs) ? Number.POSITIVE_INFINITY : request.firstTokenDueMs,
        stickySlot: request.aside ? request.prefixSlot : -1,
        prefixSlot: request.prefixSlot,
        reference: placeNumber(request.thread, request.slot),
      },
      now,
    );
  }

  /** The turn of a protected session waits beside others for its home; the core looks at all candidates each time. */
  #candidatesOf({ home, candidates }: WaitingRequest): Uint32Array | undefined {
    if (home < 0) return candidates;
    const only = new Uint32Array((home >> 5) + 1);
    only[home >> 5] = 1 << (home & 31);
    return only;
  }

  #cancelled(thread: number, slot: number): void {
    const { gate, queues, nowMs } = this.#options;
    const handle = this.#handles.get(placeNumber(thread, slot));
    if (handle !== undefined) {
      queues.cancel(handle, nowMs());
      this.#leave(handle, { thread, slot });
    }
    gate.forgotten(thread, slot);
  }

  #leave(handle: number, { thread, slot }: Place): void {
    this.#waiting.delete(handle);
    this.#handles.delete(placeNumber(thread, slot));
  }

  // Answers to the shards.

  #serve(): void {
    const { gate, queues, nowMs, counts } = this.#options;
    const startedAt = nowMs();
    queues.poolEmpty(gate.live === 0, startedAt);
    this.#forgetBands(startedAt);
    queues.expire(startedAt, (handle, _reference, outcome, _priority, seconds) =>
      this.#turnAway(handle, outcome, seconds),
    );
    this.#raiseCeilings();
    this.#evictions.settle(startedAt);
    if (queues.waiting > 0) {
      queues.openedAll();
      this.#round.begin();
      queues.dispatch(this.#dispatch, startedAt, DISPATCHES_PER_TURN_MAX);
      counts.dispatched((nowMs() - startedAt) / 1_000);
      if (queues.unfinished) this.#serveMore();
      else {
        if (queues.held > 0) this.#serveHeld(startedAt);
        if (this.#evicts) this.#evictions.demand(nowMs());
      }
    }
    this.#sleep(nowMs());
  }

  /** Tries held turns in this replica's part of a round; without a wake-up the next look or the next part does. */
  #serveHeld(now: number): void {
    if (now < this.#lastHeldMs + HELD_MS || !this.#rounds.mayLook(this.#options.wallMs())) return;
    this.#lastHeldMs = now;
    this.#options.queues.dispatchHeld(this.#dispatch, now, HELD_TRIES_MAX);
  }

  /** Continues in the next turn, after messages and timers. */
  #serveMore(): void {
    if (this.#more) return;
    this.#more = true;
    this.#timers.soon(() => {
      this.#more = false;
      this.wake();
    });
  }

  #tryDispatch(handle: number, only: number): DispatchResult {
    const { gate, nowMs } = this.#options;
    const place = this.#waiting.get(handle)!;
    const answer = gate.dispatch(place.thread, place.slot, only, nowMs());
    switch (answer) {
      case 'done':
        this.#note(place, 'Dispatched');
        this.#leave(handle, place);
        this.#running.set(handle, place.thread);
        return 'dispatched';
      case 'gone':
        this.#leave(handle, place);
        return 'gone';
      case 'busy':
        this.#retry();
        return 'later';
      case 'nowhere':
        return this.#nowhere(handle, place, only);
      case 'closed':
      case 'sticks':
      case 'held':
        return answer;
    }
  }

  /** None of the request's endpoints is left while the pool has others, so waiting would not help. */
  #nowhere(handle: number, place: Place, only: number): DispatchResult {
    const { gate, queues, nowMs } = this.#options;
    if (only >= 0 || gate.live === 0 || gate.read(place.thread, place.slot).candidates === undefined) return 'closed';
    const seconds = queues.retryAfterSeconds(handle, nowMs());
    this.#leave(handle, place);
    this.#reject(place, 'RejectedNoEndpoints', seconds, plainBound('no-endpoints'));
    return 'gone';
  }

  #turnAway(handle: number, outcome: QueueOutcome, retryAfterSeconds: number): void {
    const place = this.#waiting.get(handle);
    if (place === undefined) return;
    this.#leave(handle, place);
    this.#reject(place, outcome, retryAfterSeconds, this.#boundOfEnd(place, outcome));
  }

  /** The bound that has ended a wait. */
  #boundOfEnd({ thread, slot }: Place, outcome: QueueOutcome): RefusingBound {
    if (outcome === 'EvictedNoEndpoints') return plainBound('no-endpoints');
    if (outcome !== 'EvictedTTL') return plainBound('shutting-down');
    const { gate, queues, nowMs } = this.#options;
    const { priority, sinceMs, ttlMs } = gate.read(thread, slot);
    const longestMs = queues.ttlMs(priority);
    const limit = Number.isNaN(ttlMs) ? longestMs : Math.min(ttlMs, longestMs);
    return { by: 'queue-deadline', used: nowMs() - sinceMs, limit };
  }

  #reject(place: Place, outcome: QueueOutcome, retryAfterSeconds: number, bound: RefusingBound): void {
    this.#note(place, outcome, bound.by);
    this.#answer(place, outcome, retryAfterSeconds, bound);
  }

  #answer({ thread, slot }: Place, outcome: QueueOutcome, retryAfterSeconds: number, bound: RefusingBound): void {
    const { gate } = this.#options;
    const reject = () => gate.reject(thread, slot, { outcome: outcomeNumber(outcome), retryAfterSeconds, bound });
    this.#answers.run(() => reject() !== 'busy');
  }

  #note({ thread, slot }: Place, outcome: QueueOutcome, cause?: RefusedBy): void {
    const { gate, counts, nowMs } = this.#options;
    const { priority, flow, sinceMs, held } = gate.read(thread, slot);
    const timeMs = nowMs();
    const waitedMs = timeMs - sinceMs;
    if (held) counts.held(waitedMs / 1_000);
    this.#events.note({ timeMs, outcome, priority, flow, waitedMs, held, cause });
  }

  #retry(): void {
    if (this.#again) return;
    this.#again = true;
    this.#timers.after(() => {
      this.#again = false;
      this.wake();
    }, LOCK_RETRY_MS);
  }

  /** Writes the ceilings of the bands to the gate. Unchanged ones are skipped. */
  #raiseCeilings(): void {
    const { gate, saturation } = this.#options;
    const bands = gate.waiting();
    const ceilings = this.#ceilings.at(
      bands.map(({ priority }) => priority),
      saturation() ?? 1,
    );
    for (const [rank, { priority }] of bands.entries()) {
      const ceiling = ceilings[rank]!;
      if (this.#written.get(priority) === ceiling) continue;
      if (gate.setCeiling(priority, ceiling)) this.#written.set(priority, ceiling);
    }
  }

  /** Drops unused bands, whose ranks go to the lower bands. Standing bands stay. */
  #forgetBands(now: number): void {
    if (now < this.#forgotMs + FORGET_MS || !this.#options.gate.keepBands(this.#standing, now)) return;
    this.#forgotMs = now;
    // A band that returns later gets the ceiling of its neighbour first.
    if (this.#options.gate.forgetBands(BAND_IDLE_MS, now) > 0) this.#written.clear();
  }

  /** Writes the drain times, which a shard uses when it has no wait slot for a request. */
  #tellDrains(now: number): void {
    const { gate, queues } = this.#options;
    for (const { priority } of gate.waiting()) gate.setDrain(priority, (queues.drainMs(priority, now) ?? 0) / 1_000);
  }

  /** Sets one timer for the next deadline or the next update. */
  #sleep(now: number): void {
    const { queues, wallMs } = this.#options;
    const soon = Math.max(Math.min(this.#lastLookMs + LOOK_MS, this.#unseenMs), now);
    const look = queues.waiting > 0 ? soon : Number.POSITIVE_INFINITY;
    const tick = this.#options.gate.sessions.isOn ? this.#lastTickMs + SESSION_TICK_MS : Number.POSITIVE_INFINITY;
    const part = queues.held > 0 ? now + this.#rounds.untilNext(wallMs()) : Number.POSITIVE_INFINITY;
    const at = Math.min(queues.nextDeadline(), look, this.#evictions.nextMs, tick, part);
    if (at === this.#timerAt) return;
    this.#forgetTimer();
    this.#timerAt = at;
    if (at === Number.POSITIVE_INFINITY) return;
    this.#forgetTimer = this.#timers.after(() => this.#due(), Math.ceil(Math.max(0, at - now)));
  }

  #due(): void {
    const { gate, queues, nowMs } = this.#options;
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = nowMs();
    if (gate.sessions.isOn && now >= this.#lastTickMs + SESSION_TICK_MS) {
      gate.sessions.tick(now);
      this.#lastTickMs = now;
    }
    if (queues.waiting > 0 && now >= this.#lastLookMs + LOOK_MS) {
      gate.updateConditions(now, Math.min(now - this.#lastLookMs, 1_000));
      this.#lastLookMs = now;
      this.#tellDrains(now);
      this.#unseenMs = gate.nextUnseenMs;
    } else if (queues.waiting > 0 && now >= this.#unseenMs) {
      this.#unseenMs = Math.max(gate.releaseUnseen(now), now + UNSEEN_MS);
    }
    this.wake();
  }
}

function placeNumber(thread: number, slot: number): number {
  return thread * 65_536 + slot;
}
