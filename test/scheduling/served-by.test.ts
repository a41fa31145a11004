import { describe, expect, it } from 'vitest';
import { LedgerCharge } from '../../dist/src/scheduling/charges.js';
import { EndpointDirectory } from '../../dist/src/scheduling/endpoint-directory.js';
import { makePool, pickMax, plainRequest } from '../core/pool.ts';
import { singleProfile } from './single-profile.ts';

/** A request charged to the first of three endpoints, which is a list of three picks. */
function charged(subset: readonly number[] = [0]) {
  const pool = makePool([pickMax], [{}, {}, {}]);
  const { decider, table, control } = pool;
  const directory = new EndpointDirectory();
  const assignments = [0, 1, 2].map((slot) => ({
    slot,
    generation: 1,
    endpoint: { id: `e${slot}`, name: `e${slot}`, address: `10.0.0.${slot}`, port: 80, labels: {} },
  }));
  directory.apply(assignments as never, []);
  const { ticket, ticketGeneration: generation } = decider.decide({ ...plainRequest, promptTokens: 100, subset });
  const doubts: number[] = [];
  const charge = new LedgerCharge(
    {
      decider,
      directory,
      settings: singleProfile.settings,
      nowMs: () => 5_000,
      later: () => {},
      ejected: () => {},
      doubted: (slot) => doubts.push(slot),
    },
    { slot: 0, slotGeneration: 1, ticket, generation },
    64,
    0,
  );
  table.watchDoubts();
  const picks = [0, 1, 2].map((slot) => directory.at(slot)!);
  const inflight = () => [0, 1, 2].map((slot) => table.read(slot).inflight);
  const failures = () => [0, 1, 2].map((slot) => table.read(slot).failures);
  const tokens = () => [0, 1, 2].map((slot) => table.read(slot).inflightTokens);
  return { ...pool, charge, picks, doubts, inflight, failures, tokens, check: () => control.call.ledgerCheck() };
}

describe('an answer of another endpoint than the first pick', () => {
  it('an answer of another endpoint than the first pick counts against every pick that was passed over', () => {
    const { charge, picks, doubts, failures } = charged();
    charge.servedBy('10.0.0.2:80', picks, 'answered-itself');
    expect(failures()).toEqual([1, 1, 0]);
    expect(doubts).toEqual([0, 1]);
  });

  it('an answer of another endpoint than the first pick is charged to the one that gave it, until the release', () => {
    const { charge, picks, inflight, tokens, check } = charged();
    expect(inflight()).toEqual([1, 0, 0]);
    charge.servedBy('10.0.0.1:80', picks, 'answered-itself');
    expect([inflight(), tokens(), check()]).toEqual([[0, 1, 0], [0, 100, 0], 0]);
    charge.grow(200);
    charge.release();
    expect([inflight(), tokens(), check()]).toEqual([[0, 0, 0], [0, 0, 0], 0]);
  });

  it('an answer of another endpoint than the first pick is its failure when it is one', () => {
    const { charge, picks, failures } = charged();
    charge.servedBy('10.0.0.1:80', picks, 'failed');
    expect(failures()).toEqual([1, 1, 0]);
  });

  it('an answer of an endpoint of the pool that is in no place of the list counts against the first pick alone', () => {
    const { charge, picks, failures, inflight } = charged();
    charge.servedBy('10.0.0.2:80', picks.slice(0, 2), 'answered-itself');
    expect([failures(), inflight()]).toEqual([
      [1, 0, 0],
      [0, 0, 1],
    ]);
  });

  it('an answer from an address outside the pool counts for no endpoint', () => {
    const { charge, picks, failures, inflight, doubts } = charged();
    charge.servedBy('envoy://internal', picks, 'answered-itself');
    expect([failures(), inflight(), doubts]).toEqual([[0, 0, 0], [1, 0, 0], []]);
  });

  it('an answer of another endpoint ends the probe of the first pick as a failure', () => {
    const { table, decider } = charged([0]);
    for (let i = 0; i < 2; i++) decider.noteOutcome(0, 1, 'failed', 0);
    table.setReachable(0, 1, true, 0);
    const probing = { ...decider.decide({ ...plainRequest, subset: [0], nowMs: 1 }) };
    expect(table.read(0).ejection).toBe(2);
    decider.noteOutcome(0, 1, 'unanswered', 2);
    expect(decider.moveCharge(probing.ticket, probing.ticketGeneration, 1, 1)).toBe(true);
    expect([table.read(0).ejection, table.read(0).inflight, table.read(1).inflight]).toEqual([1, 1, 1]);
    expect(decider.release(probing.ticket, probing.ticketGeneration)).toBe(true);
    expect(table.read(1).inflight).toBe(0);
  });

  it('a charge does not move to a slot that has another endpoint by now, nor after its release', () => {
    const { decider, inflight } = charged();
    const { ticket, ticketGeneration } = decider.decide({ ...plainRequest, subset: [0] });
    expect(decider.moveCharge(ticket, ticketGeneration, 1, 7)).toBe(false);
    expect(inflight()).toEqual([2, 0, 0]);
    decider.release(ticket, ticketGeneration);
    expect(decider.moveCharge(ticket, ticketGeneration, 1, 1)).toBe(false);
  });
});
