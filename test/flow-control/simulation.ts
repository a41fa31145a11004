// A pool of endpoints, in front of it the queue machine, and beside it the plain model. One seed makes one history:
// arrivals, cancels, answers that grow and end, dispatches that cannot be used, endpoints that leave and come back,
// shards that die, other settings, and time that passes.

import type {
  BandSettings,
  FairnessSettings,
  FlowControlSettings,
  OrderingSettings,
} from '../../dist/src/contract/queue-settings.js';
import { type DispatchResult, NO_HANDLE, type QueuedRequest } from '../../dist/src/flow-control/queue-contract.js';
import { type QueueBounds, QueueMachine } from '../../dist/src/flow-control/queue-machine.js';
import { type PlainItem, PlainQueues } from './plain-queues.ts';
import { request, settings, slots } from './settings.ts';
import { SimulatedPool } from './simulated-pool.ts';

/** Mulberry32: one 32-bit seed, one history. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface World {
  readonly seed: number;
  readonly events: number;
  readonly fairness: FairnessSettings;
  readonly ordering: OrderingSettings;
  /** Policies that a reload may bring to a band instead. */
  readonly others: readonly Pick<BandSettings, 'fairness' | 'ordering'>[];
  readonly sticky: boolean;
  /** So many endpoints and sets of candidates that classes run out. */
  readonly crowded: boolean;
  /** Break the machine, to see that it is noticed. */
  readonly fault?: (machine: QueueMachine) => void;
}

const NOTHING = {
  dispatched: 0,
  refused: 0,
  expired: 0,
  cancelled: 0,
  requeued: 0,
  nowhere: 0,
  endpointsGone: 0,
  shardsDied: 0,
  reloads: 0,
};

/** How often each thing happened. */
export type Counts = typeof NOTHING;

const HIGHEST = 10;
const CONFIGURED = [HIGHEST, 0, -5];
/** Two of them have no settings of their own. */
const PRIORITIES = [HIGHEST, 3, 0, -5, -9];
const SHARDS = 3;
const BOUNDS: QueueBounds = { requests: 96, flows: 20 };

/** What happens, and how often of a thousand. The rest is time that passes. */
const EVENTS: readonly (readonly [number, (world: Simulation) => void])[] = [
  [420, (world) => world.arrive()],
  [45, (world) => world.giveUp()],
  [60, (world) => world.grow()],
  [35, (world) => world.sendBack()],
  [35, (world) => world.changeLimit()],
  [6, (world) => world.loseEndpoint()],
  [8, (world) => world.gainEndpoint()],
  [1, (world) => world.loseAllEndpoints()],
  [3, (world) => world.killShard()],
  [3, (world) => world.reload()],
  [200, (world) => world.finish()],
];

class Simulation {
  readonly random: () => number;
  readonly world: World;
  readonly machine: QueueMachine;
  readonly plain: PlainQueues;
  readonly pool: SimulatedPool;
  readonly counts: Counts = { ...NOTHING };
  readonly sets: readonly (readonly number[] | undefined)[];
  nowMs = 0;
  event = 0;

  constructor(world: World) {
    this.world = world;
    this.random = randomOf(world.seed);
    this.pool = new SimulatedPool(world.crowded ? 24 : 6);
    this.sets = world.crowded ? this.manySets() : [undefined, undefined, [0, 1], [1, 2, 3], [5], [4, 5]];
    const first = this.settingsWith(CONFIGURED, () => world);
    this.machine = new QueueMachine(first, 0, BOUNDS, world.seed);
    world.fault?.(this.machine);
    this.plain = new PlainQueues(first, BOUNDS);
  }

  manySets(): readonly (readonly number[] | undefined)[] {
    const some = () => this.pool.live().filter(() => this.random() < 0.2);
    return [undefined, ...Array.from({ length: 400 }, some).filter((set) => set.length > 0)];
  }

  settingsWith(priorities: readonly number[], policies: (priority: number) => Omit<BandSettings, 'limits'>) {
    const bandOf = (priority: number): BandSettings => {
      const { fairness, ordering } = policies(priority);
      const limits = { requests: 25 + Math.floor(this.random() * 20), bytes: Infinity, tokens: 4_000 };
      const ttlMs = limits.requests % 2 === 0 ? undefined : 50 * limits.requests;
      return { fairness, ordering, limits, ttlMs };
    };
    return settings({
      limits: { requests: 90, bytes: 20_000, tokens: Infinity },
      ttlMs: 1_500 + Math.floor(this.random() * 1_000),
      noEndpointTtlMs: 3_000,
      bands: priorities.map((priority) => ({ ...bandOf(priority), priority })),
      template: this.random() < 0.5 ? bandOf(Number.NaN) : undefined,
      negativeTemplate: this.random() < 0.5 ? bandOf(Number.NaN) : undefined,
    }) satisfies FlowControlSettings;
  }

  below(bound: number): number {
    return Math.floor(this.random() * bound);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  check(holds: boolean, otherwise: string): void {
    if (!holds) throw new Error(`${otherwise}, at event ${this.event}`);
  }

  run(): Counts {
    for (; this.event < this.world.events; this.event++) {
      this.step();
      this.checkSums();
    }
    if (this.random() < 0.3) this.shutDown();
    this.drain();
    this.forget();
    return this.counts;
  }

  step(): void {
    let dice = this.random() * 1_000;
    const event = EVENTS.find(([share]) => {
      dice -= share;
      return dice < 0;
    });
    if (event !== undefined) event[1](this);
    else this.wait(this.random() < 0.05 ? 1_500 * this.random() : 40 * this.random());
    this.dispatch(this.random() < 0.1 ? 2 : 256);
  }

  // --------------------------------------------------------------------------------------------------- what happens

  arrive(): void {
    const live = this.pick(this.sets)?.filter((slot) => this.pool.isLive(slot));
    const candidates = live === undefined || live.length === 0 ? undefined : live;
    const asked = this.newRequest(candidates);
    const causes = this.plain.refusals(asked, this.nowMs);
    const handle = this.machine.enqueue(asked, this.nowMs);
    const { cause } = this.machine.refusal;
    if (handle !== NO_HANDLE) {
      this.check(causes.length === 0, `a request was taken in spite of ${causes}`);
      this.plain.enqueue(asked, candidates, handle, this.nowMs);
    } else {
      this.counts.refused++;
      this.check(causes.includes(cause), `a request was refused because of ${cause}, but that would be ${causes}`);
    }
  }

  newRequest(candidates: readonly number[] | undefined): QueuedRequest {
    const tokens = 1 + this.below(50);
    const sticks = this.world.sticky && this.random() < 0.3 && !this.pool.empty;
    return request({
      priority: this.pick(PRIORITIES),
      flow: `f${Math.floor(this.random() ** 2 * 8)}`,
      candidates: candidates === undefined ? undefined : slots(...candidates),
      promptTokens: tokens + 5,
      uncachedTokens: tokens,
      maxTokens: this.pick([0, 1, 40, 500]),
      bytes: this.below(400),
      deadlineMs: this.random() < 0.1 ? this.nowMs + 1_000 * this.random() : Infinity,
      firstTokenDueMs: this.random() < 0.5 ? this.nowMs + 500 * this.random() : Infinity,
      stickySlot: sticks ? this.pick(this.pool.live()) : -1,
      reference: this.event * SHARDS + this.below(SHARDS),
    });
  }

  giveUp(): void {
    if (this.plain.waiting.length > 0) this.cancel(this.pick(this.plain.waiting).handle);
  }

  cancel(handle: number): void {
    this.check(this.machine.cancel(handle, this.nowMs), 'a waiting request could not be cancelled');
    this.check(!this.machine.cancel(handle, this.nowMs), 'a request was cancelled twice');
    this.plain.remove(handle, this.nowMs);
    this.counts.cancelled++;
  }

  grow(): void {
    const placed = this.anyPlaced();
    if (placed === undefined) return;
    placed.output += this.below(200);
    this.machine.progress(placed.handle, placed.output, this.nowMs);
    this.plain.progress(placed.handle, placed.output, this.nowMs);
  }

  finish(): void {
    const placed = this.anyPlaced();
    if (placed !== undefined) this.end(placed.handle, placed.output + this.below(3));
  }

  end(handle: number, output: number): void {
    this.machine.end(handle, output, this.nowMs);
    this.plain.end(handle, output, this.nowMs);
    this.vacate(handle);
  }

  sendBack(): void {
    const placed = this.anyPlaced();
    if (placed === undefined || placed.output > 0) return;
    const running = this.plain.running.get(placed.handle);
    const live = running?.item.slots?.filter((slot) => this.pool.isLive(slot));
    if (live?.length === 0) return;
    const candidates = live === undefined ? undefined : slots(...live);
    const back = this.machine.requeue(placed.handle, candidates, this.nowMs);
    this.check(back === (running !== undefined), 'only a request that runs can be put back');
    if (!back) return;
    running!.item.slots = live;
    this.plain.requeue(placed.handle, this.nowMs);
    this.vacate(placed.handle);
    this.counts.requeued++;
  }

  anyPlaced() {
    return this.pool.placed.size === 0 ? undefined : this.pick([...this.pool.placed.values()]);
  }

  vacate(handle: number): void {
    const slot = this.pool.vacate(handle);
    if (slot !== undefined) this.machine.opened(slot);
  }

  changeLimit(): void {
    const slot = this.below(this.pool.size);
    this.pool.setLimit(slot, this.below(5));
    this.machine.opened(slot);
  }

  loseEndpoint(): void {
    if (this.pool.empty) return;
    const slot = this.pick(this.pool.live());
    this.pool.remove(slot);
    this.machine.endpointGone(slot);
    this.plain.endpointGone(slot);
    this.counts.endpointsGone++;
    if (this.random() < 0.5) this.machine.openedAll();
    this.tellEmpty();
  }

  loseAllEndpoints(): void {
    while (!this.pool.empty) this.loseEndpoint();
  }

  gainEndpoint(): void {
    const gone = Array.from({ length: this.pool.size }, (_, slot) => slot).filter((slot) => !this.pool.isLive(slot));
    if (gone.length === 0) return;
    const slot = this.pick(gone);
    this.pool.restore(slot);
    this.tellEmpty();
    this.machine.opened(slot);
  }

  tellEmpty(): void {
    this.machine.poolEmpty(this.pool.empty, this.nowMs);
    this.plain.setEmpty(this.pool.empty, this.nowMs);
  }

  /** A shard dies: what it has waiting and running ends at once. */
  killShard(): void {
    const shard = this.below(SHARDS);
    const waiting = this.plain.waiting.filter((item) => item.request.reference % SHARDS === shard);
    for (const { handle } of waiting) this.cancel(handle);
    const running = [...this.pool.placed.values()].filter((placed) => placed.shard === shard);
    for (const { handle } of running) this.end(handle, 0);
    this.counts.shardsDied++;
  }

  reload(): void {
    const bands = CONFIGURED.filter((priority) => priority === 0 || this.random() < 0.8);
    const next = this.settingsWith(bands, () => (this.random() < 0.5 ? this.world : this.pick(this.world.others)));
    this.check(this.machine.configure(next, this.nowMs), 'settings were refused');
    this.plain.configure(next, this.nowMs);
    this.counts.reloads++;
  }

  wait(ms: number): void {
    this.nowMs += ms;
    this.plain.fade(ms);
    const late = new Set(this.plain.waiting.filter((item) => this.plain.deadlineOf(item) <= this.nowMs));
    const next = this.machine.nextDeadline();
    this.check(late.size === 0 || next <= this.nowMs, `a wait was over, but the next deadline ${next} is to come`);
    this.machine.expire(this.nowMs, (handle, reference, outcome, priority) => {
      const item = this.plain.find(handle);
      const nowhere = this.plain.isNowhere(item) ? 'EvictedNoEndpoints' : 'EvictedTTL';
      this.check(late.delete(item), 'a wait was ended that was not over');
      const told = [reference, outcome, priority].join();
      this.check(told === [item.request.reference, nowhere, item.request.priority].join(), `it was told ${told}`);
      this.plain.remove(handle, this.nowMs);
      this.counts.expired++;
    });
    this.check(late.size === 0, `${late.size} waits went on that were over`);
    this.plain.endSticky(this.nowMs);
  }

  // -------------------------------------------------------------------------------------------------- who goes on

  roomFor(item: PlainItem): number {
    const slots = item.only >= 0 ? [item.only] : (item.slots ?? this.pool.live());
    return slots.find((slot) => this.pool.hasRoom(slot, item.request.priority === HIGHEST)) ?? -1;
  }

  /** Requests that could go now; those of the overflow class are looked at 16 deep only, so nothing is said of them. */
  open(): readonly PlainItem[] {
    return this.plain.waiting.filter((item) => !item.at.overflow && this.roomFor(item) >= 0);
  }

  tryDispatch(handle: number, reference: number, priority: number, onlySlot: number): DispatchResult {
    const item = this.plain.find(handle);
    const told = [reference, priority, onlySlot].join();
    this.check(told === [item.request.reference, item.request.priority, item.only].join(), `it was called ${told}`);
    // Its owner has given it up, or none of its endpoints is left: the machine takes it out.
    if (this.random() < 0.005 || item.slots?.length === 0) {
      this.plain.remove(handle, this.nowMs);
      this.counts[item.slots?.length === 0 ? 'nowhere' : 'cancelled']++;
      return 'gone';
    }
    const slot = this.roomFor(item);
    if (slot < 0) return 'closed';
    const open = this.open();
    const others = item.at.overflow ? open.filter((other) => other.request.priority > priority) : open;
    const first = item.at.overflow ? others.length === 0 : this.plain.mayGo(item, others, this.nowMs);
    this.check(first, 'another request should have gone first');
    this.pool.take(handle, slot, item.request.reference % SHARDS);
    this.plain.dispatched(item, this.nowMs);
    this.counts.dispatched++;
    return 'dispatched';
  }

  dispatch(limit: number): void {
    let asked = 0;
    let stopped = false;
    const count = this.machine.dispatch(
      (...call) => {
        stopped ||= ++asked > 3 && this.random() < 0.02;
        return stopped ? 'later' : this.tryDispatch(...call);
      },
      this.nowMs,
      limit,
    );
    this.check(count <= limit, `${count} were dispatched in a turn of ${limit}`);
    if (stopped || this.machine.unfinished) return;
    this.check(this.open().length === 0, 'a request waits beside an endpoint that would take it');
  }

  checkSums(): void {
    const { machine, plain } = this;
    this.check(machine.waiting === plain.waiting.length, `${machine.waiting} wait, not ${plain.waiting.length}`);
    this.check(machine.running === plain.running.size, `${machine.running} run, not ${plain.running.size}`);
    this.check(machine.flowCount === plain.flowCount, `there are ${machine.flowCount} flows, not ${plain.flowCount}`);
    this.check(machine.waiting + machine.running <= BOUNDS.requests, 'there are more requests than there may be');
    const { entered, dispatched, expired, cancelled, evicted } = machine.totals;
    const left = dispatched + expired + cancelled + evicted;
    this.check(entered === left + machine.waiting, `${entered} came, ${left} left, ${machine.waiting} wait`);
    const timed = machine.nextDeadline() < Infinity;
    this.check(timed === machine.waiting > 0, timed ? 'there is a timer for nobody' : 'nobody ends the waits');
  }

  // --------------------------------------------------------------------------------------------------- how it ends

  /** Everything that waits is told so, band by band. */
  shutDown(): void {
    let before = Infinity;
    this.machine.evictAll((handle, reference, priority) => {
      const { request } = this.plain.remove(handle, this.nowMs);
      this.check(request.reference === reference && request.priority === priority, 'somebody else was told');
      this.check(priority <= before, `priority ${priority} was told after ${before}`);
      before = priority;
    }, this.nowMs);
    this.checkSums();
  }

  /** Everything that still waits is served or turned away, everything that runs ends, and nothing is left. */
  drain(): void {
    for (let slot = 0; slot < this.pool.size; slot++) {
      this.pool.restore(slot);
      this.pool.setLimit(slot, 1_000);
    }
    this.tellEmpty();
    this.machine.openedAll();
    this.wait(600);
    for (let turn = 0; this.machine.waiting > 0; turn++) {
      this.check(turn < 1_000, `${this.machine.waiting} requests cannot be served`);
      this.dispatch(256);
    }
    while (this.pool.placed.size > 0) this.finish();
    const { waiting, running, bytes, tokens, classes } = this.machine.snapshot(this.nowMs, 10);
    const left = JSON.stringify([waiting, running, bytes, tokens, classes]);
    this.check(left === '[0,0,0,0,[]]', `after everything had ended there was ${left}`);
    this.check(this.machine.nextDeadline() === Infinity, 'after everything had ended there was a timer');
  }

  /** Longer after the last request than any policy remembers, no flow is known but the one that asks. */
  forget(): void {
    this.nowMs += 400_001;
    for (let i = 0; i < 8; i++) {
      const handle = this.machine.enqueue(request({ flow: 'last' }), this.nowMs);
      this.machine.cancel(handle, this.nowMs);
    }
    this.check(this.machine.flowCount === 1, `${this.machine.flowCount} flows are remembered`);
  }
}

/** Plays one history. Throws with the seed at the first difference between the machine and the plain model. */
export function simulate(world: World): Counts {
  try {
    return new Simulation(world).run();
  } catch (error) {
    const again = `POINTSMAN_REPLAY=${world.seed} plays it again`;
    throw new Error(`seed ${world.seed} (${again}): ${(error as Error).message}`, { cause: error });
  }
}
