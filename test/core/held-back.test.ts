import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';
import { prompt } from './pool-history.js';

const SECOND = 1_000;
/** Reading of the pool clock at the first decision. */
const START_MS = 1_700_000_000_000;

const never = Number.POSITIVE_INFINITY;
const overload = (waiting: number, usage: number) => scorer('OP_FILTER_OVERLOAD', 1, waiting, usage, 1, 1);
const busy = (waiting: number, kvUsage = 0) => ({ waiting, running: 4, kvUsage });

function poolOf(filter: ReturnType<typeof scorer>, ...signals: Parameters<typeof makePool>[1]) {
  const pool = makePool([filter, pickMax], signals);
  let nowMs = START_MS;
  return {
    ...pool,
    /** Decides a request that comes so many seconds after the one before. */
    decideAfter(seconds: number, request = {}) {
      nowMs += seconds * SECOND;
      return pool.decider.decide({ ...plainRequest, nowMs, ...request });
    },
    veto: (slot: number) => pool.table.heldBack(slot, nowMs).veto,
    warming: (slot: number) => pool.table.heldBack(slot, nowMs).warming,
    heldBackAfter: (slot: number, seconds: number) => pool.table.heldBack(slot, nowMs + seconds * SECOND),
  };
}

describe('the veto of an endpoint', () => {
  it('a veto lasts from the first decision that made it to the last one', () => {
    const pool = poolOf(overload(5, never), busy(0), busy(6));
    expect(pool.veto(1)).toBeUndefined();
    pool.decideAfter(0);
    pool.decideAfter(7);
    pool.decideAfter(5);
    expect(pool.veto(1)).toEqual({ seconds: 12, limit: 'waiting', at: 5 });
    expect(pool.veto(0)).toBeUndefined();
  });

  it('a veto ends with the first decision that keeps the endpoint, and begins anew', () => {
    const pool = poolOf(overload(5, never), busy(0), busy(6));
    pool.decideAfter(0);
    pool.table.publish(1, busy(1), START_MS);
    pool.decideAfter(4);
    expect(pool.veto(1)).toBeUndefined();
    pool.table.publish(1, busy(9), START_MS);
    pool.decideAfter(4);
    expect(pool.veto(1)).toEqual({ seconds: 0, limit: 'waiting', at: 5 });
  });

  it('a veto names the share of the KV cache that the endpoint is over, given or learned', () => {
    const given = poolOf(overload(never, 0.75), busy(0), busy(0, 0.8));
    given.decideAfter(0);
    expect(given.veto(1)).toEqual({ seconds: 0, limit: 'kv-cache', at: 0.75 });
    const cache = { ...busy(0, 0.8), blockTokens: 16, blockCount: 100 };
    const learned = poolOf(overload(never, -1), busy(0), cache);
    learned.decideAfter(0, { promptTokens: 400 });
    expect(learned.veto(1)).toEqual({ seconds: 0, limit: 'kv-cache', at: 0.75 });
  });

  it('a pool that is vetoed as a whole is noted, although all stay candidates', () => {
    const pool = poolOf(overload(1, never), busy(3), busy(4));
    pool.decideAfter(0);
    expect([pool.veto(0)?.limit, pool.veto(1)?.limit]).toEqual(['waiting', 'waiting']);
  });

  it('a decision that is only explained notes no veto', () => {
    const pool = poolOf(overload(1, never), busy(0), busy(4));
    pool.decideAfter(0, { charged: false, explained: true });
    expect(pool.veto(1)).toBeUndefined();
  });

  it('a shadow program notes no veto', () => {
    const pool = makePool([pickMax], [busy(0), busy(4)]);
    pool.programs.publish(0, [pickMax], { inserts: false });
    pool.programs.publishShadow(0, [overload(1, never), pickMax], { inserts: false });
    pool.decider.shadowEvery(1);
    const { shadow } = pool.decider.decide({ ...plainRequest, nowMs: START_MS });
    expect(shadow).toBeDefined();
    expect(pool.table.heldBack(1, START_MS).veto).toBeUndefined();
  });

  it('a veto is forgotten half a minute after the last decision, and with its endpoint', () => {
    const pool = poolOf(overload(1, never), busy(0), busy(4));
    pool.decideAfter(0);
    expect(pool.heldBackAfter(1, 30).veto).toBeDefined();
    expect(pool.heldBackAfter(1, 31).veto).toBeUndefined();
    pool.table.setState(1, 'free');
    pool.table.open(1, 2);
    expect(pool.veto(1)).toBeUndefined();
  });
});

describe('the warm-up of an endpoint', () => {
  const filter = scorer('OP_FILTER_WARM_UP', 1, 0.25, 256, 256);

  /** Of two endpoints, the first one has answered so many requests that its cache is known. */
  function besideWarm() {
    const pool = poolOf(filter, busy(0), busy(0));
    const set = (column: number, slot: number, values: Uint32Array | Float32Array, value: number) => {
      values[((pool.core.call.columnAddress(column) >>> 0) >>> 2) + slot] = value;
    };
    set(CORE.COLUMN_CHARGED, 0, pool.core.u32, 100);
    set(CORE.COLUMN_HIT_SHARE, 0, pool.core.f32, 0.8);
    const charged = (slot: number, count: number) => set(CORE.COLUMN_CHARGED, slot, pool.core.u32, count);
    return {
      ...pool,
      charged,
      hits: (slot: number, share: number) => set(CORE.COLUMN_HIT_SHARE, slot, pool.core.f32, share),
    };
  }

  it('a cold cache is noted with its share from the first decision on', () => {
    const pool = besideWarm();
    pool.decideAfter(0, prompt(pool.core, 1, 4));
    pool.decideAfter(9, prompt(pool.core, 1, 4));
    expect(pool.warming(1)).toEqual({ seconds: 9, share: 0.25 });
    expect(pool.warming(0)).toBeUndefined();
    pool.hits(1, 0.375);
    pool.decideAfter(1, prompt(pool.core, 1, 4));
    expect(pool.warming(1)).toEqual({ seconds: 10, share: 0.5 });
  });

  it.each([
    ['that finds as much as the others', (pool: ReturnType<typeof besideWarm>) => pool.hits(1, 0.8)],
    ['with enough requests', (pool: ReturnType<typeof besideWarm>) => pool.charged(1, 256)],
  ])('a cache %s is warm', (_, warm) => {
    const pool = besideWarm();
    pool.decideAfter(0, prompt(pool.core, 1, 4));
    expect(pool.warming(1)).toBeDefined();
    warm(pool);
    pool.decideAfter(1, prompt(pool.core, 1, 4));
    expect(pool.warming(1)).toBeUndefined();
  });
});
