import { describe, expect, it } from 'vitest';
import { DecisionLog, PrefixIndex } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.ts';

/** A pool of two endpoints whose profiles 0 and 1 prefer who holds the prompt, and the prompt's hashes in place. */
function prefixPool() {
  const operations = [scorer('OP_SCORE_PREFIX', 1, 0, 8192, 64), pickMax];
  const each = makePool(operations, [{}, {}]);
  for (const profile of [0, 1]) each.programs.publish(profile, operations, { inserts: true });
  new PrefixIndex(each.core).writeHashes(BigUint64Array.of(11n, 22n, 33n));
  return { ...each, request: { ...plainRequest, blocks: 3, promptTokens: 192 } };
}

describe('a decision that stores nothing yet', () => {
  it('a decision that stores nothing yet charges its pick, and the prefix index does not know the prompt yet', () => {
    const { decider, table, request } = prefixPool();
    const { slots, ticket, ticketGeneration } = decider.decide({ ...request, unstored: true });
    const slot = slots[0]!;
    expect(table.read(slot)).toMatchObject({ inflight: 1, prefixBlocks: 0, activeBlocks: 0 });
    decider.storePick(0, slot, ticket, ticketGeneration);
    expect(table.read(slot)).toMatchObject({ inflight: 1, prefixBlocks: 3, activeBlocks: 3 });
    decider.release(ticket, ticketGeneration);
    expect(table.read(slot)).toMatchObject({ inflight: 0, prefixBlocks: 3, activeBlocks: 0 });
  });

  it('a decision that stores nothing yet stores without a charge when its charge is gone already', () => {
    const { decider, table, core, request } = prefixPool();
    const { slots, ticket, ticketGeneration } = decider.decide({ ...request, unstored: true });
    const slot = slots[0]!;
    decider.release(ticket, ticketGeneration);
    decider.storePick(0, slot, ticket, ticketGeneration);
    expect(table.read(slot)).toMatchObject({ prefixBlocks: 3, activeBlocks: 0 });
    expect(core.call.activeCheck()).toBe(0);
  });

  it.each([
    ['a profile without a program', 7, 0],
    ['a slot out of range', 0, 64],
  ])('a decision that stores nothing yet ignores %s', (_what, profile, slot) => {
    const { decider, request, core } = prefixPool();
    const { ticket, ticketGeneration } = decider.decide({ ...request, unstored: true });
    decider.storePick(profile, slot, ticket, ticketGeneration);
    expect(core.call.prefixCheck()).toBe(0);
  });
});

describe('an endpoint whose engine tells nothing of its blocks', () => {
  it('an endpoint whose engine tells nothing holds what is sent there, in a profile that waits for engines to tell', () => {
    const { decider, programs, table, request } = prefixPool();
    programs.publish(0, [scorer('OP_SCORE_PREFIX', 1, 0, 8192, 64), pickMax], { inserts: false });
    const first = decider.decide(request).slots[0]!;
    expect(table.read(first).prefixBlocks).toBe(0);
    table.setUntold(first, true);
    table.setUntold(1 - first, true);
    const second = decider.decide(request).slots[0]!;
    expect(table.read(second).prefixBlocks).toBe(3);
    table.setUntold(second, false);
    expect(table.clearPrefix(second, 'unconfirmed')).toBe(true);
    const third = decider.decide({ ...request, unstored: true });
    decider.storePick(0, second, third.ticket, third.ticketGeneration);
    expect(table.read(second).prefixBlocks).toBe(0);
  });

  it("an endpoint whose engine tells nothing is known for it no longer once its slot is another one's", () => {
    const { decider, programs, table, request } = prefixPool();
    programs.publish(0, [scorer('OP_SCORE_PREFIX', 1, 0, 8192, 64), pickMax], { inserts: false });
    for (const slot of [0, 1]) {
      table.setUntold(slot, true);
      table.setState(slot, 'free');
      table.open(slot, 2);
      table.setState(slot, 'live');
    }
    const { slots } = decider.decide(request);
    expect(table.read(slots[0]!).prefixBlocks).toBe(0);
  });
});

describe('a further profile of the same request', () => {
  it('a further profile of the same request sees the prompt matched as the first one did', () => {
    const { decider, request } = prefixPool();
    decider.decide(request);
    // Stored at once: a new look would find the whole prompt there.
    expect(decider.decide({ ...request, profile: 1, further: true }).matchedBlocks).toBe(0);
    expect(decider.decide({ ...request, profile: 1 }).matchedBlocks).toBe(3);
  });

  it('a further profile of the same request is matched anew when the first profile had no need of matches', () => {
    const { decider, programs, request } = prefixPool();
    programs.publish(0, [pickMax], { inserts: false });
    const { slots, ticket, ticketGeneration } = decider.decide({ ...request, profile: 1 });
    const holder = slots[0]!;
    decider.release(ticket, ticketGeneration);
    decider.decide(request);
    expect(decider.decide({ ...request, profile: 1, further: true })).toMatchObject({
      slots: [holder],
      matchedBlocks: 3,
    });
  });

  it('a further profile of the same request is marked in the decision log', () => {
    const { decider, control, request } = prefixPool();
    decider.decide({ ...request, nowMs: 1 });
    decider.decide({ ...request, nowMs: 2, profile: 1, further: true });
    expect(new DecisionLog(control).recent(2)).toMatchObject([
      { profile: 1, further: true },
      { profile: 0, further: false },
    ]);
  });
});
