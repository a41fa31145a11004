// A pool of endpoints with a few places each, in front of it the queue machine, and beside it the plain model. One seed makes
// one history: arrivals, cancels, answers that grow and end, grants that cannot be used, and time that passes.
import { expect } from 'vitest';
import { type GrantResult, NO_HANDLE, type QueuedRequest } from '../../../dist/admission/flow/queue-contract.js';
import { QueueMachine } from '../../../dist/admission/flow/queue-machine.js';
import type { FairnessSettings, FlowControlSettings, OrderingSettings } from '../../../dist/admission/flow/settings.js';
import { type PlainItem, PlainQueues } from './plain-queues.js';
import { NO_LIMITS, request, settings, slots } from './settings.js';

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
  readonly sticky: boolean;
}

interface Outcome {
  readonly granted: number;
  readonly expired: number;
  readonly cancelled: number;
  readonly requeued: number;
}

const ENDPOINTS = 6;
const PRIORITIES = [10, 0, -5];
const BOUNDS = { requests: 512, flows: 64 };

class Simulation {
  readonly random: () => number;
  readonly world: World;
  readonly settings: FlowControlSettings;
  readonly machine: QueueMachine;
  readonly plain: PlainQueues;
  readonly load = new Array<number>(ENDPOINTS).fill(0);
  /** Endpoints do not all serve: their limits change. */
  readonly limit = new Array<number>(ENDPOINTS).fill(3);
  readonly placed = new Map<number, number>();
  readonly outputs = new Map<number, number>();
  nowMs = 0;
  empty = false;
  granted = 0;
  expired = 0;
  cancelled = 0;
  requeued = 0;

  constructor(world: World) {
    this.world = world;
    this.random = randomOf(world.seed);
    const { fairness, ordering } = world;
    const band = { limits: { ...NO_LIMITS, requests: 40 }, fairness, ordering };
    this.settings = settings({
      limits: { requests: 90, bytes: 20_000, tokens: Infinity },
      ttlMs: 2_000,
      noEndpointTtlMs: 3_000,
      bands: PRIORITIES.map((priority) => ({ ...band, priority })),
    });
    this.machine = new QueueMachine(this.settings, 0, BOUNDS, world.seed);
    this.plain = new PlainQueues(this.settings);
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.random() * list.length)]!;
  }

  run(): Outcome {
    for (let i = 0; i < this.world.events; i++) {
      this.step();
      this.checkSums();
    }
    this.drain();
    const { granted, expired, cancelled, requeued } = this;
    return { granted, expired, cancelled, requeued };
  }

  step(): void {
    const dice = this.random();
    if (dice < 0.42) this.arrive();
    else if (dice < 0.47) this.giveUp();
    else if (dice < 0.52) this.grow();
    else if (dice < 0.56) this.sendBack();
    else if (dice < 0.6) this.changeLimit();
    else if (dice < 0.605) this.flipPool();
    else if (dice < 0.8) this.finish();
    else this.wait(this.random() < 0.05 ? 1_500 * this.random() : 40 * this.random());
    this.dispatch(this.random() < 0.1 ? 2 : 256);
  }

  arrive(): void {
    const sets = [undefined, undefined, slots(0, 1), slots(1, 2, 3), slots(5), slots(4, 5)];
    const tokens = 1 + Math.floor(this.random() * 50);
    const asked: QueuedRequest = request({
      priority: this.pick(PRIORITIES),
      flow: `f${Math.floor(this.random() ** 2 * 8)}`,
      candidates: this.pick(sets),
      promptTokens: tokens + 5,
      uncachedTokens: tokens,
      bytes: Math.floor(this.random() * 400),
      deadlineMs: this.random() < 0.1 ? this.nowMs + 1_000 * this.random() : Infinity,
      firstTokenDueMs: this.random() < 0.5 ? this.nowMs + 500 * this.random() : Infinity,
      stickySlot: this.world.sticky && this.random() < 0.3 ? Math.floor(this.random() * ENDPOINTS) : -1,
    });
    const handle = this.machine.enqueue(asked, this.nowMs);
    const { waiting } = this.plain;
    const own = waiting.filter((item) => item.request.priority === asked.priority);
    const bytes = waiting.reduce((sum, item) => sum + item.request.bytes, 0);
    const full = bytes + asked.bytes > 20_000 || waiting.length + 1 > 90 || own.length + 1 > 40;
    expect(handle === NO_HANDLE).toBe(full);
    if (full) return;
    const sticks = asked.stickySlot >= 0 && asked.priority !== 10;
    const only = sticks && !(asked.candidates?.length === 1 && asked.candidates[0] === 1 << asked.stickySlot);
    this.plain.enqueue(asked, handle, this.nowMs, only);
  }

  giveUp(): void {
    if (this.plain.waiting.length === 0) return;
    const { handle } = this.pick(this.plain.waiting);
    expect(this.machine.cancel(handle, this.nowMs)).toBe(true);
    expect(this.machine.cancel(handle, this.nowMs)).toBe(false);
    this.plain.remove(handle);
    this.cancelled++;
  }

  grow(): void {
    const handle = this.anyRunning();
    if (handle === undefined) return;
    const output = this.outputs.get(handle)! + Math.floor(this.random() * 200);
    this.outputs.set(handle, output);
    this.machine.progress(handle, output, this.nowMs);
    this.plain.progress(handle, output);
  }

  finish(): void {
    const handle = this.anyRunning();
    if (handle === undefined) return;
    this.machine.end(handle, this.outputs.get(handle)!, this.nowMs);
    this.plain.end(handle, this.outputs.get(handle)!);
    this.vacate(handle);
  }

  sendBack(): void {
    const handle = this.anyRunning();
    if (handle === undefined || this.outputs.get(handle)! > 1) return;
    const { item } = this.plain.running.get(handle)!;
    expect(this.machine.requeue(handle, item.request.candidates, this.nowMs)).toBe(true);
    this.plain.requeue(handle);
    this.vacate(handle);
    this.requeued++;
  }

  anyRunning(): number | undefined {
    return this.placed.size === 0 ? undefined : this.pick([...this.placed.keys()]);
  }

  vacate(handle: number): void {
    const slot = this.placed.get(handle)!;
    this.placed.delete(handle);
    this.outputs.delete(handle);
    this.load[slot]!--;
    this.machine.opened(slot);
  }

  changeLimit(): void {
    const slot = Math.floor(this.random() * ENDPOINTS);
    this.limit[slot] = Math.floor(this.random() * 5);
    this.machine.opened(slot);
  }

  flipPool(): void {
    this.empty = !this.empty;
    this.machine.poolEmpty(this.empty, this.nowMs);
    this.plain.setEmpty(this.empty, this.nowMs);
  }

  wait(ms: number): void {
    this.nowMs += ms;
    if (this.world.fairness.kind === 'program-aware') this.plain.fade(ms, this.world.fairness.halfLifeMs);
    const late = new Set(this.plain.waiting.filter((item) => this.plain.deadlineOf(item) <= this.nowMs));
    const expected = this.empty ? 'EvictedNoEndpoints' : 'EvictedTTL';
    expect(this.machine.nextDeadline() <= this.nowMs || late.size === 0).toBe(true);
    this.machine.expire(this.nowMs, (handle, reference, outcome, priority) => {
      const item = this.plain.remove(handle);
      expect(late.delete(item)).toBe(true);
      expect([reference, outcome, priority]).toEqual([item.request.reference, expected, item.request.priority]);
      this.expired++;
    });
    expect(late.size).toBe(0);
    this.plain.endSticky(this.nowMs);
  }

  /** Lower bands leave one place free for the highest. */
  hasRoom(slot: number, priority: number): boolean {
    return !this.empty && this.load[slot]! < this.limit[slot]! - (priority === 10 ? 0 : 1);
  }

  roomFor(item: PlainItem): number {
    const all = Array.from({ length: ENDPOINTS }, (_, slot) => slot);
    const { candidates } = item.request;
    const may = candidates === undefined ? all : all.filter((slot) => (candidates[slot >> 5]! >>> slot) & 1);
    const use = item.only >= 0 ? [item.only] : may;
    return use.find((slot) => this.hasRoom(slot, item.request.priority)) ?? -1;
  }

  dispatch(most: number): void {
    let asked = 0;
    const tryGrant = (handle: number, reference: number, priority: number, onlySlot: number): GrantResult => {
      const item = this.plain.waiting.find((each) => each.handle === handle)!;
      expect([item.request.reference, item.request.priority, item.only]).toEqual([reference, priority, onlySlot]);
      if (++asked > 3 && this.random() < 0.02) return 'later';
      const slot = this.roomFor(item);
      if (slot < 0) return 'closed';
      const open = this.plain.waiting.filter((each) => this.roomFor(each) >= 0);
      if (!this.plain.mayGo(item, open, this.nowMs)) throw new Error('another request should have gone first');
      this.load[slot]!++;
      this.placed.set(handle, slot);
      this.outputs.set(handle, 1);
      this.plain.granted(item);
      this.granted++;
      return 'granted';
    };
    let stopped = false;
    const count = this.machine.dispatch(
      (...call) => {
        const result = tryGrant(...call);
        stopped ||= result === 'later';
        return result;
      },
      this.nowMs,
      most,
    );
    expect(count).toBeLessThanOrEqual(most);
    if (stopped || this.machine.unfinished) return;
    // Nothing waits beside an endpoint that would take it.
    expect(this.plain.waiting.filter((each) => this.roomFor(each) >= 0)).toEqual([]);
  }

  checkSums(): void {
    const { machine, plain } = this;
    expect(machine.waiting).toBe(plain.waiting.length);
    expect(machine.running).toBe(plain.running.size);
    const { entered, dispatched, expired, cancelled, evicted } = machine.totals;
    expect(entered).toBe(dispatched + expired + cancelled + evicted + machine.waiting);
    expect(machine.nextDeadline() < Infinity).toBe(machine.waiting > 0);
  }

  drain(): void {
    this.empty = false;
    this.machine.poolEmpty(false, this.nowMs);
    this.plain.setEmpty(false, this.nowMs);
    this.limit.fill(1_000);
    this.machine.openedAll();
    while (this.machine.waiting > 0) this.dispatch(256);
    while (this.placed.size > 0) this.finish();
    const { waiting, running, bytes, tokens, classes } = this.machine.snapshot(this.nowMs, 10);
    expect({ waiting, running, bytes, tokens, classes }).toEqual({
      waiting: 0,
      running: 0,
      bytes: 0,
      tokens: 0,
      classes: [],
    });
    expect(this.machine.nextDeadline()).toBe(Infinity);
    this.forget();
  }

  /** Long after the last request no flow is known but the one that asks. */
  forget(): void {
    this.nowMs += 300_001;
    for (let i = 0; i < 8; i++) {
      const handle = this.machine.enqueue(request({ flow: 'last' }), this.nowMs);
      this.machine.cancel(handle, this.nowMs);
    }
    expect(this.machine.flowCount).toBe(1);
  }
}

/** Play one history. Throws with the seed at the first difference between the machine and the plain model. */
export function simulate(world: World): Outcome {
  const simulation = new Simulation(world);
  try {
    return simulation.run();
  } catch (error) {
    throw new Error(`seed ${world.seed}: POINTSMAN_REPLAY=${world.seed} plays it again: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
