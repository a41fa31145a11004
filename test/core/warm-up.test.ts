import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';
import { prompt } from './pool-history.js';

interface State {
  readonly charged: number;
  readonly hitShare: number;
  readonly inflight: number;
  readonly waiting: number;
  /** Blocks of the prompt that it holds. */
  readonly held: number;
}

const BLOCKS = 8;
const warm: State = { charged: 500, hitShare: 0.8, inflight: 8, waiting: 0, held: 0 };
const cold: State = { charged: 3, hitShare: 0, inflight: 0, waiting: 0, held: 0 };

function poolOf(states: readonly State[]) {
  const pool = makePool(
    [scorer('OP_FILTER_WARM_UP', 1, 0.25, 256, 256), pickMax],
    states.map(({ waiting }) => ({ waiting, running: 1, kvUsage: 0 })),
  );
  pool.programs.publish(1, [pickMax], { inserts: true });
  const cell = (column: number, slot: number) => ((pool.core.call.columnAddress(column) >>> 0) >>> 2) + slot;
  for (const [slot, { held, inflight, charged, hitShare }] of states.entries()) {
    if (held > 0) {
      const placed = pool.decider.decide({
        ...plainRequest,
        profile: 1,
        ...prompt(pool.core, 1, held),
        subset: [slot],
      });
      pool.decider.release(placed.ticket, placed.ticketGeneration);
    }
    for (let i = 0; i < inflight; i++) pool.decider.decide({ ...plainRequest, profile: 1, subset: [slot] });
    pool.core.u32[cell(CORE.COLUMN_INFLIGHT_SCRAPED, slot)] = inflight;
    pool.core.u32[cell(CORE.COLUMN_CHARGED, slot)] = charged;
    pool.core.f32[cell(CORE.COLUMN_HIT_SHARE, slot)] = hitShare;
  }
  return { ...pool, cell };
}

function left(states: readonly State[]): number[] {
  const pool = poolOf(states);
  pool.decider.decide({ ...plainRequest, ...prompt(pool.core, 1, BLOCKS), charged: false });
  return states.map((_, slot) => slot).filter((slot) => pool.decider.isCandidate(slot));
}

/** Candidates that the rule of the documents leaves. */
function expected(states: readonly State[]): number[] {
  const all = states.map((_, slot) => slot);
  const others = states.filter(({ charged }) => charged >= 64);
  if (others.length === 0 || states.every(({ charged }) => charged >= 256)) return all;
  const mean = (of: (state: State) => number) => others.reduce((sum, state) => sum + of(state), 0) / others.length;
  const busy = mean(({ inflight }) => inflight);
  const longest = Math.max(...states.map(({ held }) => held));
  const fates = states.map(({ charged, hitShare, inflight, held }) => {
    const share = (hitShare + 0.05) / (mean((other) => other.hitShare) + 0.05);
    if (charged >= 256 || share >= 0.9) return 'keep';
    if (busy >= 1 && inflight < 0.25 * busy && (longest - held) * 64 <= 256) return 'want';
    if (held === longest || mean(({ waiting }) => waiting) >= 1) return 'keep';
    return inflight >= Math.max(1, Math.max(share, 0.25) * busy) ? 'leave' : 'keep';
  });
  if (fates.includes('want')) return all.filter((slot) => fates[slot] === 'want');
  const kept = all.filter((slot) => fates[slot] !== 'leave');
  return kept.length === 0 ? all : kept;
}

describe('warm-up-filter', () => {
  it('a new endpoint below its least share gets a request that loses little by it', () => {
    expect(left([warm, warm, cold])).toEqual([2]);
    expect(left([{ ...warm, held: 4 }, warm, cold])).toEqual([2]);
  });

  it('a request stays where more of it is cached than may be lost', () => {
    expect(left([{ ...warm, held: 5 }, warm, cold])).toEqual([0, 1, 2]);
  });

  it('a new endpoint with its share in flight is left out of what others hold more of', () => {
    expect(left([{ ...warm, held: 1 }, warm, { ...cold, inflight: 2 }])).toEqual([0, 1]);
  });

  it('a new endpoint is not left out of a prompt that nobody holds: it loses nothing there', () => {
    expect(left([warm, warm, { ...cold, inflight: 9 }])).toEqual([0, 1, 2]);
  });

  it('the share of a new endpoint rises with its hit share', () => {
    const holder = { ...warm, held: 1 };
    const half = { ...cold, hitShare: 0.4, inflight: 4 };
    expect(left([holder, warm, half])).toEqual([0, 1, 2]);
    expect(left([holder, warm, { ...half, inflight: 5 }])).toEqual([0, 1]);
    expect(left([holder, warm, { ...half, hitShare: 0.75, inflight: 9 }])).toEqual([0, 1, 2]);
  });

  it('a new endpoint stays a candidate for what it holds more of than the others, and while the others queue', () => {
    const full = { ...cold, inflight: 3 };
    expect(left([warm, warm, { ...full, held: 2 }])).toEqual([0, 1, 2]);
    expect(left([{ ...warm, held: 1 }, warm, full])).toEqual([0, 1]);
    expect(left([{ ...warm, held: 1, waiting: 3 }, warm, full])).toEqual([0, 1, 2]);
  });

  it('an endpoint is warm after enough requests, whatever its hit share', () => {
    expect(left([warm, warm, { ...cold, charged: 256, inflight: 9 }])).toEqual([0, 1, 2]);
  });

  it('a picker that knows no endpoint yet keeps all', () => {
    expect(left([cold, { ...cold, inflight: 5 }])).toEqual([0, 1]);
  });

  it('random states leave the candidates that the formula leaves', () => {
    const state = fc.record({
      charged: fc.constantFrom(0, 63, 64, 255, 256),
      hitShare: fc.constantFrom(0, 0.23, 0.51, 0.97),
      inflight: fc.integer({ min: 0, max: 6 }),
      waiting: fc.constantFrom(0, 0, 2),
      held: fc.integer({ min: 0, max: BLOCKS }),
    });
    fc.assert(
      fc.property(fc.array(state, { minLength: 1, maxLength: 7 }), (states) => {
        expect(left(states)).toEqual(expected(states));
      }),
      { numRuns: 300 },
    );
  });
});

describe('the warmth of a cache', () => {
  type Pool = ReturnType<typeof poolOf>;
  const read = (pool: Pool, slot = 0) => ({
    charged: pool.core.u32[pool.cell(CORE.COLUMN_CHARGED, slot)],
    hitShare: pool.core.f32[pool.cell(CORE.COLUMN_HIT_SHARE, slot)],
  });
  const coldPair = () =>
    poolOf([
      { ...cold, charged: 0 },
      { ...cold, charged: 0 },
    ]);
  /** Sends the first blocks of a prompt to an endpoint, which holds them from then on, in a profile with the filter. */
  const send = (pool: Pool, blocks = BLOCKS, to = 0) => {
    const filters = [scorer('OP_FILTER_WARM_UP', 1, 0.25, 256, 256), scorer('OP_FILTER_MASK', 1, to + 3)];
    pool.programs.publish(2, [...filters, pickMax], { inserts: true });
    pool.table.setMask(to + 3, [to]);
    const request = { ...plainRequest, profile: 2, ...prompt(pool.core, 1, blocks) };
    const { ticket, ticketGeneration, slots } = pool.decider.decide(request);
    expect([...slots]).toEqual([to]);
    pool.decider.release(ticket, ticketGeneration);
  };

  it('a prompt that nobody holds says nothing of a cache', () => {
    const pool = coldPair();
    send(pool);
    expect(read(pool)).toEqual({ charged: 1, hitShare: 0 });
  });

  it('a cache begins with four requests without a hit, and its mean goes back over 32 requests', () => {
    const pool = coldPair();
    send(pool);
    let mean = 0;
    for (let hits = 1; hits <= 40; hits++) {
      send(pool);
      mean += (1 - mean) / Math.min(hits + 4, 32);
      expect(read(pool).hitShare).toBeCloseTo(mean, 5);
    }
  });

  it('a hit is measured against what the endpoint with most of the prompt has of it', () => {
    const pool = coldPair();
    send(pool, BLOCKS);
    send(pool, BLOCKS / 2, 1);
    // It missed half of the prompt, all that the first one had of that.
    expect(read(pool, 1)).toEqual({ charged: 1, hitShare: 0 });
    send(pool, BLOCKS, 1);
    expect(read(pool, 1).hitShare).toBeCloseTo(0.5 / 6, 5);
  });

  it('a request without a prompt, and a profile without the filter, say nothing of a cache', () => {
    const pool = coldPair();
    pool.decider.decide({ ...plainRequest, subset: [0] });
    pool.decider.decide({ ...plainRequest, profile: 1, ...prompt(pool.core, 1, BLOCKS), subset: [0] });
    expect(read(pool)).toEqual({ charged: 0, hitShare: 0 });
  });

  it.each([
    ['whose engine has restarted', (pool: ReturnType<typeof poolOf>) => pool.table.clearPrefix(0, 'engine-restarted')],
    ['in a slot that is opened again', (pool: ReturnType<typeof poolOf>) => pool.table.forget(0, 'endpoint-gone')],
  ])('a cache %s begins cold', (_, empty) => {
    const pool = poolOf([{ ...warm, inflight: 0 }]);
    empty(pool);
    expect(read(pool)).toEqual({ charged: 0, hitShare: 0 });
  });
});
