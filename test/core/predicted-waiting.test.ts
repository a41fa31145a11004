import { describe, expect, it } from 'vitest';
import { makePool, pickMax, plainRequest, scorer } from './pool.ts';

/** Score 0.5 (1 - waiting / RANGE): the predicted count can be read from it. */
const RANGE = 128;
const readable = [scorer('OP_SCORE_LOAD_AWARE', 1, RANGE), pickMax];

function onePool() {
  const { table, decider } = makePool(readable, [{}]);
  let nowMs = 1;
  return {
    scrape: (waiting: number, running: number, times = 1) => {
      for (let i = 0; i < times; i++) table.publish(0, { waiting, running }, nowMs++);
    },
    send: (count: number) => Array.from({ length: count }, () => ({ ...decider.decide(plainRequest) })),
    end: (tickets: readonly { ticket: number; ticketGeneration: number }[]) => {
      for (const { ticket, ticketGeneration } of tickets) decider.release(ticket, ticketGeneration);
    },
    waiting: () => {
      decider.decide({ ...plainRequest, charged: false, explained: true });
      return Math.round((1 - 2 * decider.scoreOf(0)) * RANGE);
    },
  };
}

describe('the predicted waiting count', () => {
  it('the predicted waiting count is 0 above the largest running count without a queue: a lower bound is no bound', () => {
    const { scrape, send, waiting } = onePool();
    scrape(0, 4);
    scrape(0, 1);
    send(8);
    expect(waiting()).toBe(0);
  });

  it('the predicted waiting count of a full engine loses what has ended since the scrape', () => {
    const { scrape, send, end, waiting } = onePool();
    const running = send(16);
    scrape(3, 16, 3);
    scrape(0, 16);
    send(5);
    expect(waiting()).toBe(5);
    end(running.slice(0, 5));
    expect(waiting()).toBe(0);
  });

  it('the predicted waiting count behind a queue grows by what was sent and falls by what has ended', () => {
    const { scrape, send, end, waiting } = onePool();
    const running = send(4);
    scrape(4, 4);
    send(8);
    expect(waiting()).toBe(12);
    end(running);
    expect(waiting()).toBe(8);
  });

  it('a queue of one scrape teaches no number of slots, one of three scrapes does', () => {
    const { scrape, send, waiting } = onePool();
    scrape(1, 1, 2);
    scrape(0, 1);
    send(4);
    expect(waiting()).toBe(0);
    scrape(4, 4, 3);
    scrape(0, 4);
    send(3);
    expect(waiting()).toBe(3);
  });

  it('a learned number of slots is forgotten when more requests run without a queue', () => {
    const { scrape, send, waiting } = onePool();
    scrape(2, 2, 3);
    scrape(0, 6);
    send(8);
    expect(waiting()).toBe(0);
  });

  it('more requests than an engine is trusted to start between two scrapes count as waiting, in steps', () => {
    const { scrape, send, waiting } = onePool();
    scrape(0, 0);
    send(8);
    expect(waiting()).toBe(0);
    send(1);
    expect(waiting()).toBe(4);
    send(4);
    expect(waiting()).toBe(8);
    scrape(0, 13);
    expect(waiting()).toBe(0);
  });
});

describe('requests that a page leaves out', () => {
  it('requests that a page leaves out count as sent since: the page is that of the last step', () => {
    const { scrape, send, waiting } = onePool();
    scrape(0, 0);
    send(40);
    scrape(0, 0);
    expect(waiting()).toBe(32);
  });

  it('requests that pages leave out for seconds are forgiven: their answers are read slowly', () => {
    const { scrape, send, waiting } = onePool();
    scrape(0, 0);
    send(40);
    scrape(0, 0, 60);
    expect(waiting()).toBe(0);
  });

  it('requests that a page shows again are forgiven no more', () => {
    const { scrape, send, waiting } = onePool();
    scrape(0, 0);
    send(40);
    scrape(0, 0, 60);
    scrape(0, 40);
    scrape(0, 0);
    expect(waiting()).toBe(32);
  });
});

describe('a burst between two scrapes', () => {
  const shipped = [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 2), scorer('OP_SCORE_PREFIX', 3), pickMax];

  it('a burst between two scrapes spreads over endpoints of which each looks a little better than the next', () => {
    const signals = Array.from({ length: 8 }, (_, slot) => ({ waiting: 0, running: 0, kvUsage: slot / 200 }));
    const { decider } = makePool(shipped, signals);
    const counts = new Array<number>(8).fill(0);
    for (let i = 0; i < 200; i++) counts[decider.decide(plainRequest).slots[0]!]!++;
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(5);
  });
});
