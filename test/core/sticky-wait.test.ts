import { describe, expect, it } from 'vitest';
import { PrefixIndex } from '../../dist/src/core/prefix-index.js';
import { makeGate } from './gate-pool.ts';
import { pickMax, plainRequest, scorer } from './pool.ts';

const BLOCK = 64;
const ROOM = { mode: 'requests', maxRequests: 1, maxTokens: 1 } as const;

/** Endpoints with one place each; slot 0 holds `held` blocks of the prompt that `ask` sends, slot 1 holds `others`. */
function scene(held: number, { endpoints = 3, others = 0, priorities = [0] } = {}) {
  const operations = [scorer('OP_SCORE_PREFIX', 1, 0, 8192, BLOCK), pickMax];
  const pool = makeGate(
    ROOM,
    Array.from({ length: endpoints }, () => ({ waiting: 0 })),
    operations,
  );
  for (const priority of priorities) pool.control.call.gateBand(priority, 0);
  const index = new PrefixIndex(pool.control);
  const hashes = BigUint64Array.from({ length: 20 }, (_, i) => BigInt(1_000 + i));
  index.writeHashes(hashes);
  if (held > 0) index.insert(0, held);
  if (others > 0) index.insert(1, others);
  const shard = pool.shard(1);
  const written = new PrefixIndex(shard.core);
  return {
    ...pool,
    shard1: shard,
    /** A request of 20 blocks. */
    ask(priority = 0) {
      written.writeHashes(hashes);
      return shard.ask({ blocks: 20, promptTokens: 20 * BLOCK, blockTokens: BLOCK, priority, nowMs: 5 });
    },
    /** Takes the place of an endpoint. */
    take: (slot: number) => shard.decide({ subset: [slot] }),
    read: (waitSlot: number) => pool.gate.read(1, waitSlot),
  };
}

describe('a request whose prefix an endpoint holds', () => {
  it('a request whose prefix an endpoint holds goes there while it is open', () => {
    expect(scene(10).ask()).toMatchObject({ status: 'decided', slots: [0] });
  });

  it('a request whose prefix an endpoint holds waits for it when it is closed and others are not, from 256 saved tokens on', () => {
    const pool = scene(4);
    pool.take(0);
    const { status, waitSlot } = pool.ask();
    expect(status).toBe('waiting');
    expect(pool.read(waitSlot)).toMatchObject({ prefixSlot: 0, aside: true });
    const less = scene(3);
    less.take(0);
    expect(less.ask()).toMatchObject({ status: 'decided' });
  });

  it('a request whose prefix an endpoint holds does not where an open one holds nearly as much', () => {
    const pool = scene(10, { others: 7 });
    pool.take(0);
    expect(pool.ask()).toMatchObject({ status: 'decided', slots: [1] });
  });

  it('a request whose prefix an endpoint holds does not in the highest of several bands', () => {
    const pool = scene(10, { priorities: [0, 5] });
    pool.take(0);
    expect(pool.ask(5)).toMatchObject({ status: 'decided' });
    expect(pool.ask(0)).toMatchObject({ status: 'waiting' });
  });

  it('a request whose prefix an endpoint holds may go anywhere after that wait, and to the holder when it is open', () => {
    const pool = scene(10);
    const taken = pool.take(0);
    const { waitSlot } = pool.ask();
    expect(pool.gate.dispatch(1, waitSlot, 0, 6)).toBe('closed');
    pool.shard1.decider.release(taken.ticket, taken.ticketGeneration);
    expect(pool.gate.dispatch(1, waitSlot, -1, 7)).toBe('done');
    expect(pool.shard1.returns()[0]).toMatchObject({ result: { kind: 'dispatched', endpoint: 0 } });
  });
});

describe('a request that finds every endpoint closed', () => {
  /** It waits, and then the endpoints `open` have room. */
  function waiting(open: readonly number[]) {
    const pool = scene(10);
    const taken = [0, 1, 2].map(pool.take);
    const { waitSlot } = pool.ask();
    for (const slot of open) pool.shard1.decider.release(taken[slot]!.ticket, taken[slot]!.ticketGeneration);
    return { ...pool, waitSlot };
  }

  it('a request that finds every endpoint closed waits among the others first', () => {
    const { waitSlot, read } = waiting([]);
    expect(read(waitSlot)).toMatchObject({ prefixSlot: 0, aside: false });
  });

  it('a request that finds every endpoint closed sticks to the one with its prefix once, then goes anywhere', () => {
    const { waitSlot, gate, shard1 } = waiting([2]);
    expect(gate.dispatch(1, waitSlot, -1, 6)).toBe('sticks');
    expect(gate.dispatch(1, waitSlot, 0, 6)).toBe('closed');
    expect(gate.dispatch(1, waitSlot, -1, 7)).toBe('done');
    expect(shard1.returns()[0]).toMatchObject({ result: { kind: 'dispatched', endpoint: 2 } });
  });

  it('a request that finds every endpoint closed goes there when it opens, whatever else has opened', () => {
    const { waitSlot, gate, shard1 } = waiting([0, 1, 2]);
    expect(gate.dispatch(1, waitSlot, -1, 6)).toBe('done');
    expect(shard1.returns()[0]).toMatchObject({ result: { kind: 'dispatched', endpoint: 0 } });
  });

  it('a request that finds every endpoint closed does not stick to an endpoint that has left the pool', () => {
    const { waitSlot, gate, table } = waiting([2]);
    table.setState(0, 'free');
    expect(gate.dispatch(1, waitSlot, -1, 6)).toBe('done');
  });

  it('a request that finds every endpoint closed does not wait a second time when it could not use its dispatch', () => {
    const pool = waiting([0]);
    expect(pool.gate.dispatch(1, pool.waitSlot, -1, 6)).toBe('done');
    const { result } = pool.shard1.returns()[0]!;
    if (result.kind !== 'dispatched') throw new Error(result.kind);
    const again = pool.shard1.decide({ ...plainRequest, subset: [1], promptTokens: 20 * BLOCK }, result);
    expect(again.status).toBe('waiting');
    const slot = pool.shard1.waitSlots.enqueue({
      flow: 'f',
      sinceMs: 0,
      ttlMs: undefined,
      firstTokenDueMs: undefined,
      maxOutputTokens: undefined,
      bodyBytes: 0,
      handle: 1,
      wantsPosition: false,
    });
    expect(pool.read(slot)).toMatchObject({ prefixSlot: -1, aside: false });
  });
});
