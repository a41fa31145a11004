import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GateSettings } from '../../dist/src/core/capacity-gate.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { loadCoreModule } from '../../dist/src/core/memory.js';
import { makeGate } from './gate-pool.ts';

/**
 * The release core. Scenes are written into the columns as a whole: no requests make them, so the checks of the debug
 * core would refuse them.
 */
const RELEASE = loadCoreModule('release');

/** One endpoint as the gate sees it, and what asks to go there. */
interface Scene {
  window: number;
  limit: number;
  capacity: number;
  pending: number;
  pendingCount: number;
  /** Without an answer, though their first token is taken to have come. */
  unseen: number;
  inflight: number;
  inflightTokens: number;
  kvNow: number;
  kvMore: number;
  activeBlocks: number;
  prompt: number;
  rank: number;
  bands: number;
  ceiling: number;
  foot: number;
  waiting: number;
  kvUsage: number;
  fresh: boolean;
}

const scene: fc.Arbitrary<Scene> = fc.record({
  window: fc.integer({ min: 1, max: 4000 }),
  limit: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 4, max: 40 })),
  capacity: fc.oneof(fc.constant(0), fc.integer({ min: 100, max: 20_000 })),
  pending: fc.integer({ min: 0, max: 4000 }),
  pendingCount: fc.integer({ min: 0, max: 3 }),
  unseen: fc.integer({ min: 0, max: 5 }),
  inflight: fc.integer({ min: 0, max: 45 }),
  inflightTokens: fc.integer({ min: 0, max: 5000 }),
  kvNow: fc.integer({ min: 0, max: 10_000 }),
  kvMore: fc.integer({ min: 0, max: 5000 }),
  activeBlocks: fc.integer({ min: 0, max: 100 }),
  prompt: fc.integer({ min: 0, max: 4000 }),
  rank: fc.integer({ min: 0, max: 3 }),
  bands: fc.integer({ min: 1, max: 4 }),
  ceiling: fc.constantFrom(0, 0.25, 0.5, 1),
  foot: fc.integer({ min: 0, max: 3000 }),
  waiting: fc.integer({ min: 0, max: 12 }),
  kvUsage: fc.integer({ min: 0, max: 10 }).map((tenths) => tenths / 10),
  fresh: fc.boolean(),
});

const f32 = Math.fround;
const BLOCK = 64;
/** Prior of the mean output (200 tokens), times 0.6. */
const RESERVE = 120;

/** The learned rule in plain words and numbers. */
function learnedOpen(s: Scene): boolean {
  if (s.ceiling === 0) return false;
  const deep = s.bands === 1 ? 1 : s.rank / (s.bands - 1);
  const first = s.pendingCount === 0 || s.pending + s.prompt <= s.window * s.ceiling;
  const second = s.inflight + 1 <= s.limit * (1 + 0.06 * (1 - deep)) * s.ceiling + 2 * (1 - deep);
  const used = s.activeBlocks * BLOCK + s.kvNow + deep * s.kvMore;
  const room = Math.min(
    s.capacity * (0.99 - 0.04 * deep) * s.ceiling,
    s.capacity - (s.rank === 0 ? 0 : 1.2 * deep * s.foot),
  );
  const third = s.capacity === 0 || s.inflight === 0 || used + s.prompt + deep * RESERVE <= room;
  return first && second && third;
}

/** How near the scene is to the edge of some condition: there single precision may say otherwise. */
function onTheEdge(s: Scene): boolean {
  const nudged = (factor: number) =>
    learnedOpen({
      ...s,
      window: s.window * factor,
      limit: s.limit * factor,
      capacity: s.capacity * factor,
    });
  return nudged(1 - 1e-5) !== nudged(1 + 1e-5);
}

const learned: GateSettings = { mode: 'learned' };

/** Puts one endpoint into a scene and asks whether a request may go there. */
function isOpen(settings: GateSettings, s: Scene): boolean {
  const pool = makeGate(settings, [{}], undefined, RELEASE);
  const { control, gate, table } = pool;
  if (s.fresh) table.publish(0, { waiting: s.waiting, running: 1, kvUsage: s.kvUsage }, 1000);
  for (let rank = 0; rank < s.bands; rank++) gate.setCeiling(-rank, s.ceiling);
  const { call, u32, f32: floats } = control;
  const room = (column: number, rank = 0) => (call.room(column + rank, 0) >>> 0) >>> 2;
  const column = (number: number) => (call.columnAddress(number) >>> 0) >>> 2;
  floats[room(CORE.ROOM_WINDOW)] = s.window;
  floats[room(CORE.ROOM_LIMIT)] = s.limit;
  floats[room(CORE.ROOM_CAPACITY)] = s.capacity;
  for (let rank = 0; rank < s.bands; rank++) {
    u32[room(CORE.ROOM_PENDING, rank)] = s.pending;
    u32[room(CORE.ROOM_PENDING_COUNT, rank)] = s.pendingCount;
  }
  u32[room(CORE.ROOM_UNANSWERED)] = s.pendingCount + s.unseen;
  u32[room(CORE.ROOM_KV_NOW)] = s.kvNow;
  u32[room(CORE.ROOM_KV_RESERVED)] = s.kvNow + s.kvMore;
  u32[column(CORE.COLUMN_INFLIGHT)] = s.inflight;
  u32[column(CORE.COLUMN_INFLIGHT_SCRAPED)] = s.inflight;
  u32[column(CORE.COLUMN_INFLIGHT_TOKENS)] = s.inflightTokens;
  u32[column(CORE.COLUMN_ACTIVE_BLOCKS)] = s.activeBlocks;
  floats[((call.gateAddress() >>> 0) + CORE.GATE_FOOT) >>> 2] = s.foot;
  const rank = Math.min(s.rank, s.bands - 1);
  const decision = pool.shard(1).decide({
    charged: false,
    priority: -rank,
    promptTokens: s.prompt,
    nowMs: 1000,
    gate: { waitSlots: -1, held: undefined, blind: false },
  });
  expect(['decided', 'no-wait-slot']).toContain(decision.status);
  return decision.status === 'decided';
}

describe('the learned rule', () => {
  it('the learned rule opens an endpoint exactly when window, limit and cache have room', () => {
    fc.assert(
      fc.property(scene, (drawn) => {
        const s = { ...drawn, rank: Math.min(drawn.rank, drawn.bands - 1) };
        fc.pre(!onTheEdge(s));
        expect(isOpen(learned, s)).toBe(learnedOpen(s));
      }),
      { numRuns: 150 },
    );
  });

  it('the learned rule lets one request of any size onto an endpoint where nothing is pending', () => {
    const s: Scene = { ...quiet, prompt: 1_000_000, capacity: 1000 };
    expect(isOpen(learned, s)).toBe(true);
  });
});

const quiet: Scene = {
  window: 100,
  limit: Number.POSITIVE_INFINITY,
  capacity: 0,
  pending: 0,
  pendingCount: 0,
  unseen: 0,
  inflight: 0,
  inflightTokens: 0,
  kvNow: 0,
  kvMore: 0,
  activeBlocks: 0,
  prompt: 10,
  rank: 0,
  bands: 1,
  ceiling: 1,
  foot: 0,
  waiting: 0,
  kvUsage: 0,
  fresh: true,
};

describe('the detectors', () => {
  const concurrency = (mode: 'requests' | 'tokens' | 'hybrid'): GateSettings => ({
    mode,
    maxRequests: 20,
    maxTokens: 3000,
  });

  it('concurrency: in flight below capacity times ceiling, by requests, by tokens, or by the larger ratio', () => {
    fc.assert(
      fc.property(scene, fc.constantFrom('requests', 'tokens', 'hybrid'), (s, mode) => {
        const byRequests = f32(s.inflight / 20);
        const byTokens = f32(s.inflightTokens / 3000);
        const ratio = mode === 'requests' ? byRequests : mode === 'tokens' ? byTokens : Math.max(byRequests, byTokens);
        expect(isOpen(concurrency(mode), s)).toBe(ratio < s.ceiling);
      }),
      { numRuns: 100 },
    );
  });

  it('utilization: the worse of waiting and cache; without fresh signals every unanswered request counts as waiting', () => {
    const settings: GateSettings = { mode: 'utilization', queueThreshold: 5, usageThreshold: 0.8, stalenessMs: 200 };
    fc.assert(
      fc.property(scene, (s) => {
        const waiting = s.fresh ? s.waiting : s.pendingCount + s.unseen;
        const usage = s.fresh ? f32(f32(s.kvUsage) / f32(0.8)) : 0;
        expect(isOpen(settings, s)).toBe(Math.max(f32(waiting / 5), usage) < s.ceiling);
      }),
      { numRuns: 100 },
    );
  });

  it('utilization counts a request that answers in one piece until it has answered, while signals are unknown', () => {
    const settings: GateSettings = { mode: 'utilization', queueThreshold: 2, usageThreshold: 0.8, stalenessMs: 200 };
    const { gate, control, shard } = makeGate(settings, [{}], undefined, RELEASE);
    gate.setCeiling(0, 1);
    const one = shard(1);
    const blind = { waitSlots: -1, held: undefined, blind: true };
    const held = [1, 2].map(() => ({ ...one.decide({ gate: blind }) }));
    expect(held.map(({ status }) => status)).toEqual(['decided', 'decided']);
    // Long after their prefill must be over nothing was heard of them.
    control.call.gateUnseen(1_000_000);
    expect(one.decide({ nowMs: 1_000_000, gate: blind }).status).toBe('no-wait-slot');
    expect(control.call.gateCheck()).toBe(0);
    one.decider.release(held[0]!.ticket, held[0]!.ticketGeneration);
    expect(one.decide({ nowMs: 1_000_000, gate: blind }).status).toBe('decided');
    expect(control.call.gateCheck()).toBe(0);
  });

  it('the detectors treat n of n as full for every n: no rounding lets one more in', () => {
    for (let n = 1; n <= 300; n++) {
      const settings: GateSettings = { mode: 'requests', maxRequests: n, maxTokens: 1 };
      const { gate, control, shard } = makeGate(settings, [{}], undefined, RELEASE);
      gate.setCeiling(0, 1);
      const { call, u32 } = control;
      const inflight = (call.columnAddress(CORE.COLUMN_INFLIGHT) >>> 0) >>> 2;
      const one = shard(1);
      u32[inflight] = n;
      expect(one.decide({ charged: false, gate: { waitSlots: -1, held: undefined, blind: false } }).status).toBe(
        'no-wait-slot',
      );
      u32[inflight] = n - 1;
      expect(one.decide({ charged: false, gate: { waitSlots: -1, held: undefined, blind: false } }).status).toBe(
        'decided',
      );
    }
  });
});
