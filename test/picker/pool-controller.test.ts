import { describe, expect, it } from 'vitest';
import type { Endpoint } from '../../dist/src/contract/endpoint.js';
import type { EngineFigures } from '../../dist/src/contract/engine-figures.js';
import { CORE } from '../../dist/src/core/core-names.js';
import {
  attachCore,
  createPoolMemory,
  defaultPoolSizes,
  EndpointTable,
  PrefixIndex,
} from '../../dist/src/core/index.js';
import { PoolController } from '../../dist/src/picker/control/pool-controller.js';
import type { ToPool } from '../../dist/src/picker/messages.js';
import { SlotTable } from '../../dist/src/pool/slots.js';
import type { PrefixSettings } from '../../dist/src/scheduling/program.js';
import { endpointOf } from '../pool/endpoints.ts';

const RULES = { objectives: new Map<string, number>(), rewrites: [] };
const STATE_NAMES = ['free', 'live', 'draining'] as const;

/** A pool without shards: a version counts as applied when the test says so. */
function makePool(capacity = 64, prefix?: PrefixSettings) {
  const core = attachCore(createPoolMemory({ ...defaultPoolSizes, endpoints: 64 }), 0);
  const table = new EndpointTable(core);
  const messages: Extract<ToPool, { kind: 'endpoints' }>[] = [];
  const freed: number[] = [];
  let applied = 0;
  const restarts: unknown[] = [];
  const refusing: unknown[] = [];
  const heldBack: unknown[] = [];
  const pool = new PoolController({
    table,
    slots: new SlotTable(capacity),
    settings: { masks: [], firstMask: 0, prefix },
    labels: [],
    broadcast: (message) => {
      if (message.kind === 'endpoints') messages.push(message);
    },
    applied: (version) => version <= applied,
    changed: ({ removed }) => freed.push(...removed.map(({ slot }) => slot)),
    report: () => {},
    restarted: (slot, generation, sign) => restarts.push([slot, generation, sign]),
    refusing: ({ id }, perSecond) => refusing.push([id, perSecond]),
    heldBack: ({ id }, report) => heldBack.push([id, report]),
  });
  return {
    core,
    pool,
    messages,
    freed,
    restarts,
    refusing,
    heldBack,
    /** A decision of this second finds the endpoint vetoed since another one; 0 = it does not. */
    veto: (slot: number, since: number, last: number) => {
      const cell = (column: number) => ((core.call.columnAddress(column) >>> 0) >>> 2) + slot;
      core.u32[cell(CORE.COLUMN_VETO_SINCE)] = since;
      core.u32[cell(CORE.COLUMN_VETO_LAST)] = last;
      core.f32[cell(CORE.COLUMN_VETO_LIMIT)] = 8;
    },
    waiting: (slot: number) => table.read(slot).waiting,
    refused: (slot: number) => core.u32[((core.call.columnAddress(CORE.COLUMN_REFUSED) >>> 0) >>> 2) + slot],
    prefixCapacity: (slot: number) =>
      core.u32[((core.call.columnAddress(CORE.COLUMN_PREFIX_CAPACITY) >>> 0) >>> 2) + slot],
    set: (...endpoints: readonly Endpoint[]) => pool.apply({ ...RULES, endpoints }),
    /** All shards have applied what was sent so far. */
    acknowledge: () => {
      applied = pool.version;
      pool.acknowledged();
    },
    /** Ports of the endpoints that can be picked. */
    live: () =>
      pool.known.filter(({ slot }) => STATE_NAMES[table.read(slot).state] === 'live').map((one) => one.endpoint.port),
    state: (slot: number) => STATE_NAMES[table.read(slot).state],
  };
}

const pod = (name: string, port: number, draining = false): Endpoint => ({
  ...endpointOf(name, '10.0.0.1', port),
  draining,
});

describe('an update that replaces every live endpoint', () => {
  it('an update that replaces every live endpoint leaves the old ones live until the new ones are', () => {
    const { set, acknowledge, live, freed } = makePool();
    set(pod('a', 1), pod('b', 2));
    acknowledge();
    set(pod('a', 11), pod('b', 12));
    expect([live(), freed]).toEqual([[1, 2], []]);
    acknowledge();
    expect(live()).toEqual([11, 12]);
  });

  it('an update that replaces every live endpoint frees the old slots once the new endpoints are live, and tells the shards', () => {
    const { set, acknowledge, messages, freed, state } = makePool();
    set(pod('a', 1));
    acknowledge();
    set(pod('a', 11));
    expect(messages.at(-1)).toMatchObject({ version: 2, added: [{ slot: 1 }], removed: [] });
    acknowledge();
    expect(messages.at(-1)).toMatchObject({ version: 3, added: [], removed: [0] });
    expect([freed, state(0)]).toEqual([[0], 'free']);
  });

  it('an update that replaces every live endpoint has the new endpoints in the pool at once, and the old ones only for shards', () => {
    const { set, acknowledge, pool } = makePool();
    set(pod('a', 1));
    acknowledge();
    set(pod('a', 11));
    const ports = (assignments: typeof pool.known) => assignments.map(({ endpoint }) => endpoint.port);
    expect([ports(pool.assignments), ports(pool.known)]).toEqual([[11], [1, 11]]);
  });

  it('an update that replaces every live endpoint waits for the newest ones when those are replaced in turn', () => {
    const { set, acknowledge, live, freed } = makePool();
    set(pod('a', 1));
    acknowledge();
    set(pod('a', 11));
    set(pod('a', 21));
    expect([live(), freed]).toEqual([[1], [1]]);
    acknowledge();
    expect([live(), freed]).toEqual([[21], [1, 0]]);
  });

  it('an update that replaces every live endpoint frees the old ones at once when the new ones leave before they were live', () => {
    const { set, acknowledge, live } = makePool();
    set(pod('a', 1));
    acknowledge();
    set(pod('a', 11));
    set();
    expect(live()).toEqual([]);
  });

  it('an update that replaces every live endpoint frees the old ones when the new ones drain before they were live', () => {
    const { set, acknowledge, live } = makePool();
    set(pod('a', 1));
    acknowledge();
    set(pod('a', 11));
    set(pod('a', 11, true));
    expect(live()).toEqual([]);
    acknowledge();
    expect(live()).toEqual([]);
  });

  it('an update that replaces every live endpoint gives a slot of a full table away at once', () => {
    const { set, acknowledge, live, state } = makePool(2);
    set(pod('a', 1), pod('b', 2));
    acknowledge();
    set(pod('c', 3), pod('d', 4));
    expect(live()).toEqual([]);
    acknowledge();
    expect([live(), state(0), state(1)]).toEqual([[3, 4], 'live', 'live']);
  });

  it('an update that replaces every live endpoint gives the slot of an old endpoint to the next one when no other is free', () => {
    const { set, acknowledge, live } = makePool(3);
    set(pod('a', 1));
    acknowledge();
    set(pod('a', 11));
    set(pod('a', 11), pod('b', 12), pod('c', 13));
    expect(live()).toEqual([]);
    acknowledge();
    expect(live().sort()).toEqual([11, 12, 13]);
  });
});

describe('an update that leaves a live endpoint', () => {
  it('an update that leaves a live endpoint takes the removed ones out at once', () => {
    const { set, acknowledge, live, freed } = makePool();
    set(pod('a', 1), pod('b', 2));
    acknowledge();
    set(pod('a', 11), pod('b', 2));
    expect([live(), freed]).toEqual([[2], [0]]);
  });

  it('an update that leaves a live endpoint takes the last ones out at once when none comes', () => {
    const { set, acknowledge, live, freed } = makePool();
    set(pod('a', 1));
    acknowledge();
    set();
    expect([live(), freed]).toEqual([[], [0]]);
  });

  it('an update that leaves a live endpoint takes a draining endpoint out at once, also when it is the last one', () => {
    const { set, acknowledge, freed, state } = makePool();
    set(pod('a', 1));
    acknowledge();
    set(pod('a', 1, true));
    set(pod('b', 2));
    expect([freed, state(0)]).toEqual([[0], 'free']);
  });
});

describe('an engine that sleeps', () => {
  it('an engine that sleeps is no candidate until its page says that it is awake, and has nothing in the index', () => {
    const prefix = { blockTokens: 16, maxBlocks: 64, capacityBlocks: 500, autoTune: false };
    const { core, pool, set, acknowledge, live } = makePool(64, prefix);
    set(pod('a', 1), pod('b', 2));
    acknowledge();
    const index = new PrefixIndex(core);
    index.writeHashes(BigUint64Array.of(11n, 22n));
    index.insert(0, 2);
    pool.publish(0, 1, { asleep: true }, 1);
    expect([live(), pool.isAsleep(0), index.held(0)]).toEqual([[2], true, 0]);
    pool.publish(0, 1, {}, 2);
    expect(live()).toEqual([1, 2]);
  });

  it('an engine that sleeps is live no earlier than all shards know it', () => {
    const { pool, set, acknowledge, live } = makePool();
    set(pod('a', 1));
    pool.publish(0, 1, { asleep: true }, 1);
    pool.publish(0, 1, { asleep: false }, 2);
    expect(live()).toEqual([]);
    acknowledge();
    expect(live()).toEqual([1]);
  });

  it('an engine that sleeps stays out when its endpoint drains, and leaves its state to no later endpoint of the slot', () => {
    const { pool, set, acknowledge, live } = makePool();
    set(pod('a', 1));
    acknowledge();
    pool.publish(0, 1, { asleep: true }, 1);
    set(pod('a', 1, true));
    pool.publish(0, 1, { asleep: false }, 2);
    expect(live()).toEqual([]);
    pool.publish(0, 1, { asleep: true }, 3);
    set(pod('b', 2));
    acknowledge();
    expect(live()).toEqual([2]);
  });
});

describe('the size of a cache', () => {
  it.each([
    // Of an index with blocks of 64 tokens. The units of the engine are those in which its hits end.
    [16, 2_048, 512],
    [32, 375, 187],
    [1_056, 40, 660],
  ])(
    'an engine with units of %i tokens and %i of them bounds its part of the index',
    (blockTokens, blockCount, held) => {
      const { pool, set, prefixCapacity } = makePool(64, {
        ...{ blockTokens: 64, maxBlocks: 64, capacityBlocks: 500, autoTune: true },
      });
      set(pod('a', 1));
      expect(prefixCapacity(0)).toBe(500);
      pool.publish(0, 1, { blockTokens, blockCount }, 50);
      expect(prefixCapacity(0)).toBe(held);
    },
  );
});

describe('an endpoint that a filter vetoes', () => {
  it('a veto of half a minute is reported once, and its end', () => {
    const { pool, set, veto, heldBack } = makePool();
    set(pod('a', 1));
    const at = (second: number) => pool.publish(0, 1, {}, second * 1_000);
    veto(0, 100, 129);
    at(129);
    expect(heldBack).toEqual([]);
    veto(0, 100, 131);
    at(131);
    at(132);
    const details = { seconds: 31, limit: 'waiting', at: 8 };
    expect(heldBack).toEqual([['default/a', { by: 'overload-filter', details }]]);
    veto(0, 0, 131);
    at(133);
    at(134);
    expect(heldBack.slice(1)).toEqual([['default/a', { by: 'overload-filter', details: undefined }]]);
  });
});

describe('an engine that refuses requests', () => {
  const figures = (refused: number | undefined): EngineFigures => ({
    ...{ deferred: undefined, refused, externalQueries: undefined, externalHits: undefined, cachedBySource: [] },
  });

  it('what an engine has refused of late counts as waiting, and fades', () => {
    const { pool, set, waiting } = makePool();
    set(pod('a', 1));
    const tell = (refused: number, atMs: number) => {
      pool.publish(0, 1, { waiting: 3, figures: figures(refused) }, atMs);
      return waiting(0);
    };
    // What was refused before the first page is not known to be new.
    expect(tell(40, 0)).toBe(3);
    expect(tell(50, 50)).toBe(13);
    expect(pool.refusals.perSecond(0)).toBe(5);
    expect(tell(50, 2_050)).toBe(7);
    expect(tell(50, 20_000)).toBe(3);
    expect(pool.refusals.perSecond(0)).toBe(0);
  });

  it('what an engine has refused of late is told apart from what waits there', () => {
    const { pool, set, refused } = makePool();
    set(pod('a', 1));
    pool.publish(0, 1, { waiting: 3, figures: figures(40) }, 0);
    expect(refused(0)).toBe(0);
    pool.publish(0, 1, { waiting: 3, figures: figures(50) }, 50);
    expect(refused(0)).toBe(10);
    pool.publish(0, 1, { waiting: 3, figures: figures(50) }, 20_000);
    expect(refused(0)).toBe(0);
  });

  it('a counter that falls is that of another process, and an unknown queue stays unknown', () => {
    const { pool, set, waiting } = makePool();
    set(pod('a', 1));
    pool.publish(0, 1, { waiting: 0, figures: figures(9) }, 0);
    pool.publish(0, 1, { waiting: 0, figures: figures(2) }, 50);
    expect(waiting(0)).toBe(0);
    pool.publish(0, 1, { figures: figures(5) }, 100);
    expect(waiting(0)).toBeUndefined();
  });

  it('refusals are reported once a minute, and not of a later endpoint of the slot', () => {
    const { pool, set, acknowledge, refusing } = makePool();
    set(pod('a', 1));
    acknowledge();
    for (const [refused, atMs] of [
      [0, 0],
      [2, 50],
      [4, 100],
      [6, 61_000],
    ] as const) {
      pool.publish(0, 1, { waiting: 0, figures: figures(refused) }, atMs);
    }
    expect(refusing).toEqual([
      ['default/a', 1],
      ['default/a', 1],
    ]);
    set();
    acknowledge();
    set(pod('b', 2));
    expect(pool.refusals.perSecond(0)).toBe(0);
  });
});

describe('the start time of an engine', () => {
  const known = (knownBy: PrefixSettings['knownBy']): PrefixSettings => ({
    blockTokens: 16,
    maxBlocks: 64,
    capacityBlocks: 500,
    autoTune: false,
    knownBy,
  });

  /** An endpoint that holds two blocks, and its blocks after a page with each of the start times. */
  function held(startTimes: readonly (number | undefined)[], knownBy: PrefixSettings['knownBy'] = 'decisions') {
    const { core, pool, set, acknowledge, restarts: told } = makePool(64, known(knownBy));
    set(pod('a', 1));
    acknowledge();
    const index = new PrefixIndex(core);
    index.writeHashes(BigUint64Array.of(11n, 22n));
    index.insert(0, 2);
    const after = startTimes.map((startSeconds, i) => {
      pool.publish(0, 1, { waiting: 0, startSeconds }, i);
      return index.held(0);
    });
    return { after, restarts: pool.restarts, told };
  }

  it('a later start time of an engine empties its endpoint in the prefix index', () => {
    expect(held([1000, 1000, 1060, 1060])).toEqual({ after: [2, 2, 0, 0], restarts: 1, told: [] });
  });

  it('a start time that a clock correction has moved leaves the blocks', () => {
    expect(held([1000, 1001.5, undefined, 999, 1000])).toEqual({ after: [2, 2, 2, 2, 2], restarts: 0, told: [] });
  });

  it('a later start time of an engine that reports its blocks is counted, and told to what follows its reports', () => {
    expect(held([1000, 1060], 'events')).toEqual({ after: [2, 2], restarts: 1, told: [[0, 1, 'started']] });
  });
});
