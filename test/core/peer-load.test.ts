import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { LoadTable, SLOT_WORDS } from '../../dist/src/core/load-table.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.ts';

type Row = readonly [number, number, number, number, number, number];
const row = fc.tuple(fc.nat(50), fc.nat(9_999), fc.nat(9_999), fc.nat(9_999), fc.nat(99), fc.nat(50));

function tell({ control }: ReturnType<typeof makePool>, slot: number, [n, tokens, prefill, prompt, output]: Row) {
  return control.call.peerLoad(slot, 1, n, tokens, prefill, prompt, output, 0, 0);
}

describe('the load of other replicas', () => {
  it('scorers see it as their own: the endpoint that peers have filled is not picked', () => {
    const pool = makePool([scorer('OP_SCORE_ACTIVE_REQUEST', 1), pickMax], [{}, {}]);
    tell(pool, 0, [3, 0, 0, 0, 0, 3]);
    expect(pool.decider.decide(plainRequest).slots[0]).toBe(1);
    tell(pool, 0, [0, 0, 0, 0, 0, 0]);
    tell(pool, 1, [9, 0, 0, 0, 0, 9]);
    expect(pool.decider.decide(plainRequest).slots[0]).toBe(0);
  });

  it('the columns are the own charges and what was told last, whatever was told before', () => {
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 20 }), (rows) => {
        const pool = makePool([pickMax], [{}]);
        pool.decider.decide({ ...plainRequest, promptTokens: 100 });
        for (const told of rows) tell(pool, 0, told);
        const [n, tokens, prefill, prompt, output] = rows.at(-1)!;
        const read = pool.table.read(0);
        expect([read.inflight, read.inflightTokens, read.outputBlocks]).toEqual([n + 1, tokens + 100, output]);
        const cell = (column: number) => pool.control.u32[(pool.control.call.columnAddress(column) >>> 0) >>> 2];
        expect([cell(CORE.COLUMN_PREFILL_TOKENS), cell(CORE.COLUMN_PROMPT_TOKENS)]).toEqual([
          prefill + 100,
          prompt + 100,
        ]);
        expect(pool.control.call.ledgerCheck()).toBe(0);
      }),
    );
  });

  it('requests since a scrape are at most those in flight, and none are left after the next scrape', () => {
    const pool = makePool([pickMax], [{}]);
    tell(pool, 0, [2, 0, 0, 0, 0, 5]);
    expect(pool.table.read(0).sinceScrape).toBe(2);
    pool.table.publish(0, { waiting: 0, running: 2 }, 5);
    expect(pool.table.read(0).sinceScrape).toBe(0);
    tell(pool, 0, [3, 0, 0, 0, 0, 1]);
    expect(pool.table.read(0).sinceScrape).toBe(1);
  });

  it('what is told of an endpoint that has left its slot is dropped', () => {
    const pool = makePool([pickMax], [{}]);
    tell(pool, 0, [4, 0, 0, 0, 0, 4]);
    pool.table.open(0, 2);
    tell(pool, 0, [4, 0, 0, 0, 0, 4]);
    expect(pool.table.read(0).inflight).toBe(0);
  });

  it('the repair after a dead thread keeps it', () => {
    const pool = makePool([pickMax], [{}]);
    tell(pool, 0, [4, 40, 30, 20, 10, 1]);
    pool.decider.decide({ ...plainRequest, promptTokens: 100 });
    pool.core.call.lockAcquire(CORE.HEADER + CORE.HEADER_COMMIT_LOCK, 1);
    pool.control.call.reclaimThread(1);
    expect(pool.table.read(0)).toMatchObject({ inflight: 4, inflightTokens: 40, outputBlocks: 10, sinceScrape: 4 });
    expect(pool.control.call.ledgerCheck()).toBe(0);
  });
});

describe('the own part of the load', () => {
  it('own charges are told apart from what peers have told', () => {
    const pool = makePool([pickMax], [{}]);
    const loads = new LoadTable(pool.control);
    pool.decider.decide({ ...plainRequest, promptTokens: 100 });
    const peers = { requests: 3, tokens: 70, prefill: 60, prompt: 50, output: 4, pending: 2, held: 10 };
    expect(loads.setPeers(0, 1, peers)).toBe(true);
    expect(loads.own(0)).toMatchObject({ requests: 1, tokens: 100, prefill: 100, prompt: 100, output: 0 });
    expect(loads.peers(0)).toEqual({ requests: 3, tokens: 70, prefill: 60, prompt: 50, output: 4 });
  });

  it('blocks that running requests of a peer use count for the scorer of active blocks', () => {
    const operations = [scorer('OP_SCORE_ACTIVE_BLOCKS', 1, 1, 0), pickMax];
    const [one, other] = [0, 1].map(() => {
      const pool = makePool(operations, [{}, {}]);
      pool.programs.publish(0, operations, { inserts: true });
      return { ...pool, loads: new LoadTable(pool.control) };
    });
    const blocks = 40;
    const hashes = new BigUint64Array(one!.memory.memory.buffer, one!.core.call.hashesAddress() >>> 0, blocks);
    for (let i = 0; i < blocks; i++) hashes[i] = BigInt(i + 1);
    const request = { ...plainRequest, blocks, promptTokens: 64 * blocks };
    const { slots, ticket, ticketGeneration } = one!.decider.decide(request);
    const slot = slots[0]!;
    const own = one!.loads.own(slot);
    expect(own.output).toBe(blocks);
    expect(other!.loads.setPeers(slot, 1, own)).toBe(true);
    const picks = Array.from({ length: 20 }, () => {
      const pick = other!.decider.decide(plainRequest);
      other!.decider.release(pick.ticket, pick.ticketGeneration);
      return pick.slots[0];
    });
    expect(new Set(picks)).toEqual(new Set([1 - slot]));
    one!.decider.release(ticket, ticketGeneration);
    expect(one!.loads.own(slot).output).toBe(0);
  });

  it('a note says whether the own load, the active blocks or an ejection differ from the note before', () => {
    const pool = makePool([scorer('OP_SCORE_ACTIVE_REQUEST', 1), pickMax], [{}, {}]);
    const loads = new LoadTable(pool.control);
    const noted = new Uint32Array(SLOT_WORDS);
    const note = () => loads.note(0, noted, 0);
    expect([note(), note()]).toEqual([false, false]);
    tell(pool, 1, [9, 0, 0, 0, 0, 0]);
    const { ticket, ticketGeneration } = pool.decider.decide({ ...plainRequest, promptTokens: 100 });
    expect([note(), note()]).toEqual([true, false]);
    // Load of peers is no news of this replica.
    tell(pool, 0, [3, 30, 20, 10, 4, 3]);
    expect(note()).toBe(false);
    pool.decider.release(ticket, ticketGeneration);
    expect([note(), note()]).toEqual([true, false]);
    loads.setEjection(0, 1, true, 5);
    expect([loads.isEjected(0), note()]).toEqual([true, true]);
    expect(note()).toBe(false);
  });
});

describe('an ejection by another replica', () => {
  it('an ejection that a peer tells takes the endpoint out, and its return takes it back', () => {
    const pool = makePool([pickMax], [{}, {}]);
    const loads = new LoadTable(pool.control);
    loads.setEjection(1, 1, true, 0);
    expect([loads.isEjected(1), pool.table.ejected]).toEqual([true, 1]);
    loads.setEjection(1, 1, false, 0);
    expect([pool.table.read(1).ejection, pool.table.ejected]).toEqual([0, 0]);
  });

  it('ejections that peers tell never take out more than half of the pool', () => {
    const pool = makePool([pickMax], [{}, {}, {}]);
    for (const slot of [0, 1, 2]) pool.control.call.peerEjection(slot, 1, 1, 0);
    expect(pool.table.ejected).toBe(1);
  });
});
