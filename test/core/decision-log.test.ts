import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE, DecisionLog, DecisionTrail, type PoolSizes, PrefixIndex } from '../../dist/src/core/index.js';
import { makeGate } from './gate-pool.ts';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.ts';

const NO_MEASURES = {
  outcome: 'completed' as const,
  firstOutputMs: undefined,
  perTokenMs: undefined,
  durationMs: 12,
  outputTokens: undefined,
  promptTokens: undefined,
  cachedTokens: undefined,
};

const REFUSED = { status: 400, priority: 0, waitedMs: 0, bound: undefined };

/** Keeps endpoints whose KV usage is below a half. */
const halfFull = scorer('OP_FILTER_THRESHOLD', 1, CORE.VALUE_KV_USAGE, CORE.COMPARE_LESS, 0.5, 1, 0);
const program = [halfFull, scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 1), pickMax];
const signals = [{ waiting: 4, kvUsage: 0.2 }, { waiting: 0, kvUsage: 0.9 }, { waiting: 2, kvUsage: 0.1 }, {}];

function logged(columnsEvery: number, sizes: Partial<PoolSizes> = {}) {
  const pool = makePool(program, signals, { ...smallSizes, ...sizes });
  return { ...pool, trail: new DecisionTrail(pool.core, columnsEvery), log: new DecisionLog(pool.control) };
}

describe('the decision log', () => {
  it('the decision log finds a request by its id with labels, wait and end', () => {
    const { decider, trail, log } = logged(0);
    trail.begin('6a1c-0001', false);
    const before = trail.made;
    const { record } = decider.decide({ ...plainRequest, promptTokens: 70, priority: -3 });
    trail.decided(before, 4711, 25);
    trail.ended(record!, { ...NO_MEASURES, firstOutputMs: 5, outputTokens: 9, promptTokens: 71, cachedTokens: 64 });
    trail.begin('6a1c-0002', false);
    decider.decide(plainRequest);
    expect(log.find('6a1c-0001')).toMatchObject([
      {
        requestId: '6a1c-0001',
        thread: 1,
        number: 0,
        status: 'decided',
        promptTokens: 70,
        priority: -3,
        series: 4711,
        waitedMs: 25,
        end: 'completed',
        firstOutputMs: 5,
        durationMs: 12,
        outputTokens: 9,
        enginePromptTokens: 71,
        cachedTokens: 64,
      },
    ]);
    expect(log.at(1, 1)).toMatchObject({ requestId: '6a1c-0002', end: undefined, firstOutputMs: undefined });
    expect(log.find('6a1c')).toEqual([]);
    expect(log.at(1, 2)).toBeUndefined();
  });

  it('the decision log keeps the bound that refused a request, and its columns although it was to wait', () => {
    const pool = makeGate({ mode: 'requests', maxRequests: 1, maxTokens: 1 }, [{ waiting: 0, kvUsage: 0 }]);
    const { core, decider, waitSlots } = pool.shard(1);
    const [trail, log] = [new DecisionTrail(core, 0), new DecisionLog(pool.control)];
    const gate = { waitSlots: waitSlots.next, held: undefined, blind: false };
    decider.decide({ ...plainRequest, gate });
    trail.begin('waits', false);
    const { status } = decider.decide({ ...plainRequest, gate });
    const bound = { by: 'band-requests', used: 9, limit: 8 } as const;
    trail.refused((trail.made - 1) >>> 0, { status: 429, priority: 0, waitedMs: 0, bound });
    const [record] = log.find('waits');
    expect([status, record]).toMatchObject(['waiting', { end: 'rejected', httpStatus: 429, bound, closed: 1 }]);
    expect(log.columns(record!)!.endpoints).toMatchObject([{ removed: 'gate', inflight: 1, gate: { saturation: 1 } }]);
  });

  it('the decision log says what removed each endpoint of a pool that is full, with a gate behind a filter', () => {
    const idle = Array.from({ length: smallSizes.endpoints }, () => ({ waiting: 0, running: 0, kvUsage: 0 }));
    const slots = [...idle.keys()];
    const operations = [scorer('OP_FILTER_MASK', 1, 3), scorer('OP_SCORE_QUEUE'), pickMax];
    const pool = makeGate({ mode: 'learned' }, idle, operations);
    pool.table.setMask(3, slots.slice(2));
    const shard = pool.shard(1);
    const [trail, log] = [new DecisionTrail(shard.core, 0), new DecisionLog(pool.control)];
    trail.begin('full', true);
    expect(shard.decide().status).toBe('decided');
    const removed = new Map(log.columns(log.find('full')[0]!)!.endpoints.map((row) => [row.slot, row.removed]));
    expect(slots.map((slot) => removed.get(slot))).toEqual(slots.map((slot) => (slot < 2 ? 0 : undefined)));
  });

  it('the decision log tells ids apart that share their first 64 bytes only by their length', () => {
    const { decider, trail, log } = logged(0);
    trail.begin(`${'x'.repeat(64)}-long`, false);
    decider.decide(plainRequest);
    expect(log.find('x'.repeat(64))).toEqual([]);
    expect(log.find(`${'x'.repeat(64)}-long`)).toMatchObject([{ requestId: 'x'.repeat(64) }]);
  });

  it('the decision log keeps the columns of one decision in so many, and of marked ones', () => {
    const { decider, trail, log } = logged(3);
    for (let i = 0; i < 6; i++) decider.decide(plainRequest);
    trail.begin('mark', true);
    decider.decide(plainRequest);
    const kept = log.recent(10).map((record) => log.columns(record) !== undefined);
    expect(kept.reverse()).toEqual([false, false, true, false, false, true, true]);
  });

  it('the decision log shows every endpoint as the decision saw it: filter, signals, scores, pick', () => {
    const { decider, log } = logged(1);
    const { slots } = decider.decide({ ...plainRequest, promptTokens: 100 });
    const [record] = log.recent(1);
    const columns = log.columns(record!)!;
    expect(columns.operations.map(({ code, weight }) => [code, weight])).toEqual([
      ['OP_FILTER_THRESHOLD', 1],
      ['OP_SCORE_QUEUE', 2],
      ['OP_SCORE_KV_USAGE', 1],
      ['OP_PICK_MAX_SCORE', 1],
    ]);
    expect(columns.scorers).toEqual([1, 2]);
    const bySlot = new Map(columns.endpoints.map((endpoint) => [endpoint.slot, endpoint]));
    expect(slots).toEqual([2]);
    expect(bySlot.get(2)).toMatchObject({ rank: 1, removed: undefined, waiting: 2, inflight: 0, inflightTokens: 0 });
    expect(bySlot.get(2)!.scores[1]).toBeCloseTo(0.9, 5);
    expect(bySlot.get(1)).toMatchObject({ rank: undefined, removed: 0, waiting: 0 });
    expect(bySlot.get(3)).toMatchObject({ waiting: undefined, kvUsage: undefined, signalAgeMs: undefined });
  });

  it('the decision log keeps the columns of a decision without a pick, with what removed each endpoint', () => {
    const { decider, table, log } = logged(0);
    table.setState(0, 'draining');
    const { status } = decider.decide({ ...plainRequest, subset: [0, 1] });
    expect(status).toBe('filtered');
    const [record] = log.recent(1);
    const removed = new Map(log.columns(record!)!.endpoints.map((endpoint) => [endpoint.slot, endpoint.removed]));
    expect([removed.get(0), removed.get(1), removed.get(2)]).toEqual(['not-admitted', 0, 'outside-subset']);
  });

  it('the decision log makes a record of a request that was refused before any decision', () => {
    const { trail, log } = logged(0);
    trail.refuse('bad', 5, { ...REFUSED, priority: -7 }, 77);
    expect(log.find('bad')).toMatchObject([
      {
        status: 'undecided',
        end: 'rejected',
        httpStatus: 400,
        priority: -7,
        bound: undefined,
        timeMs: 77,
        series: 5,
        slot: undefined,
      },
    ]);
  });

  it.each([
    ['scored less', [], undefined],
    ['was taken out by a filter', [halfFull], 0],
  ] as const)(
    'the decision log names the endpoint that held more of the prompt than the pick and %s',
    (_, filters, removed) => {
      const held = [
        { waiting: 0, kvUsage: 0 },
        { waiting: 9, kvUsage: 0.9 },
      ];
      const { decider, core, control } = makePool(
        [...filters, scorer('OP_SCORE_QUEUE', 9), scorer('OP_SCORE_PREFIX', 1, 0, 8192, 64), pickMax],
        held,
      );
      new BigUint64Array(core.memory.buffer, core.call.hashesAddress() >>> 0, 4).set([11n, 12n, 13n, 14n]);
      new PrefixIndex(core).insert(1, 3);
      decider.decide({ ...plainRequest, blocks: 4, promptTokens: 256 });
      const [record] = new DecisionLog(control).recent(1);
      expect(record).toMatchObject({ slot: 0, matchedBlocks: 0, best: { slot: 1, matchedBlocks: 3, removed } });
    },
  );

  it('the decision log leaves a record alone that a later one has overwritten, and shows no columns of it', () => {
    const { decider, trail, log } = logged(1, { decisions: 8, decisionColumnBytes: 4096 });
    trail.begin('old', false);
    const old = decider.decide(plainRequest).record!;
    const [before] = log.recent(1);
    trail.begin('new', false);
    for (let i = 0; i < 8; i++) decider.decide(plainRequest);
    trail.ended(old, NO_MEASURES);
    expect(trail.refused(old, REFUSED)).toBe(false);
    expect(log.recent(8).every(({ end, requestId }) => end === undefined && requestId === 'new')).toBe(true);
    expect(log.columns(before!)).toBeUndefined();
    expect(log.find('old')).toEqual([]);
  });

  it('the decision log shows columns only of the decision that made them, however often the ring has gone round', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 512, max: 6000 }), (decisions, bytes) => {
        const { decider, log } = logged(1, { decisions: 64, decisionColumnBytes: bytes });
        for (let i = 0; i < decisions; i++) decider.decide({ ...plainRequest, charged: true, promptTokens: i });
        for (const record of log.recent(64)) {
          const columns = log.columns(record);
          // The requests in flight tell which decision the columns are of: each one is charged for.
          const inflight = columns?.endpoints.reduce((sum, endpoint) => sum + endpoint.inflight, 0);
          if (columns !== undefined) expect(inflight).toBe(record.number);
        }
        const newest = log.recent(1)[0]!;
        if (bytes >= 1024) expect(log.columns(newest)).toBeDefined();
      }),
      { numRuns: 60 },
    );
  });

  it('the decision log finds the newest decisions with columns among so many of each thread', () => {
    const cases = fc.record({
      made: fc.integer({ min: 0, max: 150 }),
      every: fc.integer({ min: 1, max: 9 }),
      bytes: fc.integer({ min: 512, max: 20_000 }),
      limit: fc.integer({ min: 1, max: 20 }),
      looks: fc.integer({ min: 1, max: 80 }),
    });
    fc.assert(
      fc.property(cases, ({ made, every, bytes, limit, looks }) => {
        const { decider, log } = logged(every, { decisions: 64, decisionColumnBytes: bytes });
        for (let i = 0; i < made; i++) decider.decide({ ...plainRequest, nowMs: i });
        const expected = log.recent(looks).filter((record) => log.columns(record) !== undefined);
        expect(log.recentWithColumns(limit, looks)).toEqual(expected.slice(0, limit));
      }),
      { numRuns: 60 },
    );
  });

  it('the decision log changes no pick by keeping columns', () => {
    const picks = (columnsEvery: number) => {
      const { decider } = logged(columnsEvery);
      return Array.from({ length: 200 }, (_, i) => decider.decide({ ...plainRequest, promptTokens: i * 3 }).slots[0]);
    };
    expect(picks(1)).toEqual(picks(0));
  });

  it('the decision log is empty when no records are kept', () => {
    const { decider, trail, log } = logged(1, { decisions: 0 });
    trail.begin('none', true);
    expect(decider.decide(plainRequest)).toMatchObject({ status: 'decided', record: undefined });
    trail.refuse('none', 0, REFUSED, 1);
    expect([log.recent(5), log.find('none'), log.at(1, 0), trail.made]).toEqual([[], [], undefined, 0]);
    expect(log.recentWithColumns(5, 5)).toEqual([]);
  });
});
