import { describe, expect, it } from 'vitest';
import type { GateSettings } from '../../dist/src/core/capacity-gate.js';
import { makeGate } from './gate-pool.ts';

const learned: GateSettings = { mode: 'learned' };

/** One endpoint that reports so many waiting requests, scrape after scrape, every 50 ms. */
function reporting(...waiting: number[]) {
  const pool = makeGate(learned, [{}]);
  let nowMs = 1000;
  const scrape = (count: number) => {
    nowMs += 50;
    pool.table.publish(0, { waiting: count, running: 8, kvUsage: 0 }, nowMs);
  };
  for (const count of waiting) scrape(count);
  const at = (ms: number) => {
    nowMs = ms;
  };
  const shard = pool.shard(1);
  const ask = (request = {}) => shard.ask({ nowMs, ...request });
  return { ...pool, scrape, ask, decider: shard.decider, at };
}

describe('a pool that queues requests which this picker did not send', () => {
  it('a pool that queues requests which this picker did not send gets nothing more when two scrapes in a row show it', () => {
    expect(reporting(10).ask().status).toBe('decided');
    expect(reporting(10, 0, 10).ask().status).toBe('decided');
    expect(reporting(10, 10).ask().status).toBe('waiting');
  });

  it('a pool that queues requests which this picker did not send is left alone below five such requests', () => {
    expect(reporting(4, 4, 4).ask().status).toBe('decided');
    expect(reporting(5, 5).ask().status).toBe('waiting');
  });

  it('a pool that queues requests which this picker did not send is open again as soon as a scrape shows that they are gone', () => {
    const { ask, scrape, gate } = reporting(10, 10);
    const waiting = ask();
    expect(gate.dispatch(1, waiting.waitSlot, -1, 1200)).toBe('closed');
    scrape(0);
    expect(gate.dispatch(1, waiting.waitSlot, -1, 1200)).toBe('done');
  });

  it('a pool that queues requests which this picker did not send is open again when its signals are older than a second', () => {
    const { ask, gate } = reporting(10, 10);
    const waiting = ask();
    gate.updateConditions(1500, 50);
    expect(gate.dispatch(1, waiting.waitSlot, -1, 1500)).toBe('closed');
    gate.updateConditions(2200, 50);
    expect(gate.dispatch(1, waiting.waitSlot, -1, 2200)).toBe('done');
  });

  it('a pool that queues requests which this picker did not send lets two of the highest of several bands past', () => {
    const { ask, gate } = reporting(10, 10);
    gate.setCeiling(10, 1);
    gate.setCeiling(0, 1);
    expect(ask({ priority: 0 }).status).toBe('waiting');
    expect(ask({ priority: 10 }).status).toBe('decided');
    expect(ask({ priority: 10 }).status).toBe('decided');
    expect(ask({ priority: 10 }).status).toBe('waiting');
  });

  it('a pool with requests that this picker did not queue is open while one endpoint has none, for all requests', () => {
    const { table, gate, shard } = makeGate(learned, [{}, {}]);
    const scrape = (nowMs: number, waiting: readonly [number, number]) =>
      waiting.forEach((count, slot) => void table.publish(slot, { waiting: count, running: 8, kvUsage: 0 }, nowMs));
    const one = shard(1);
    const onlyFirst = { subset: [0], nowMs: 1200 };
    for (const nowMs of [1050, 1100]) scrape(nowMs, [10, 0]);
    expect(one.ask(onlyFirst).status).toBe('decided');
    for (const nowMs of [1150, 1200]) scrape(nowMs, [10, 10]);
    expect(one.ask({ nowMs: 1200 }).status).toBe('waiting');
    expect([0, 1].map((slot) => gate.room(slot).foreignQueue)).toEqual([true, true]);
    scrape(1250, [10, 0]);
    expect([0, 1].map((slot) => gate.room(slot).foreignQueue)).toEqual([false, false]);
  });

  it('a pool that queues requests which this picker did not send shows as full', () => {
    const { gate } = reporting(10, 10);
    expect(gate.saturation([0], 1100)).toBeGreaterThanOrEqual(1);
    expect(gate.room(0)).toMatchObject({ foreignQueue: true, limit: Number.POSITIVE_INFINITY });
  });
});

describe('a queue that is our own', () => {
  const small = { promptTokens: 1 };

  it('a queue of own requests closes nothing', () => {
    const { ask, scrape } = reporting();
    for (let i = 0; i < 10; i++) expect(ask(small).status).toBe('decided');
    scrape(10);
    scrape(10);
    expect(ask(small).status).toBe('decided');
  });

  it('a queue that is our own closes nothing when the engine reports it late', () => {
    const { ask, scrape, decider, at } = reporting();
    const sent = Array.from({ length: 10 }, () => ask(small));
    for (const { ticket, ticketGeneration } of sent) decider.release(ticket, ticketGeneration);
    at(8000);
    scrape(10);
    scrape(10);
    expect(ask(small).status).toBe('decided');
  });

  it('a queue that is our own is forgotten after some 20 s', () => {
    const { ask, scrape, decider, at } = reporting(0);
    const sent = Array.from({ length: 10 }, () => ask(small));
    for (const { ticket, ticketGeneration } of sent) decider.release(ticket, ticketGeneration);
    for (const ms of [12_000, 23_000, 34_000]) {
      at(ms);
      scrape(0);
    }
    scrape(10);
    scrape(10);
    expect(ask(small).status).toBe('waiting');
  });
});
