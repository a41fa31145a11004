import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import type { PlacedTurn } from '../../dist/src/core/session-news.js';
import { BLOCK, CACHE, RULE, SessionReplica, wordsOf } from './session-replica.ts';

/** Two replicas; a turn of a session that its endpoint has forgotten waits at the first, which has not told it yet. */
function replicasWithAHeldTurn(): readonly [SessionReplica, SessionReplica] {
  const [first, second] = [new SessionReplica(1, { endpoints: 1 }), new SessionReplica(2, { endpoints: 1 })];
  first.end(first.begin(wordsOf(1, 40)));
  first.end(first.begin(wordsOf(2, 60)), 10 * BLOCK);
  first.tell(second);
  expect(first.begin(wordsOf(1, 44)).ticket).toBe(0);
  return [first, second];
}

describe('sessions of replicas', () => {
  it('a turn at a peer counts on its endpoint here, from its begin on and with its answer', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    const charge = first.begin(wordsOf(1, 20), [1]);
    expect(first.tell(second).map(({ begins, slot, tokens }) => [begins, slot, tokens])).toEqual([
      [true, 1, 20 * BLOCK],
    ]);
    expect([second.used(0), second.used(1)]).toEqual([0, 20 * BLOCK]);
    expect(second.elsewhere(1)).toBe(true);
    first.end(charge, 100);
    first.tell(second);
    expect(second.used(1)).toBe(20 * BLOCK + 100);
    expect(second.elsewhere(1)).toBe(false);
    second.check();
  });

  it('a turn at a peer is not forgotten, however full the cache is', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    first.begin(wordsOf(1, 60), [0]);
    first.begin(wordsOf(2, 60), [0]);
    first.tell(second);
    expect([first.used(0), second.used(0)]).toEqual([120 * BLOCK, 120 * BLOCK]);
    expect([second.elsewhere(1), second.elsewhere(2)]).toEqual([true, true]);
    second.check();
  });

  it('a session whose turn waits at a peer has come back here, once', () => {
    const [first, second] = replicasWithAHeldTurn();
    const told = first.tell(second);
    expect(told.map(({ begins, tokens }) => [begins, tokens])).toEqual([[true, 0]]);
    expect(second.pauses).toBe(1);
    // It goes on.
    second.news.hear({ ...told[0]!, tokens: 44 * BLOCK }, 1, 3_000);
    expect(second.pauses).toBe(1);
    expect(second.elsewhere(1)).toBe(true);
    second.check();
  });

  it('a session whose turn waits at a peer that is gone comes back once more', () => {
    const [first, second] = replicasWithAHeldTurn();
    const [wait] = first.tell(second);
    second.news.peerGone(1);
    second.news.hear({ ...wait!, tokens: 44 * BLOCK }, 3, 3_000);
    expect(second.pauses).toBe(2);
  });

  it('a session whose turn was given up at a peer comes back once more', () => {
    const [first, second] = replicasWithAHeldTurn();
    const [wait] = first.tell(second);
    second.news.hear({ ...wait!, begins: false }, 1, 3_000);
    second.news.hear(wait!, 1, 4_000);
    expect(second.pauses).toBe(2);
    second.check();
  });

  it('a session that lapses at a peer is protected here no longer', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    expect(first.pool.gate.sessions.configure({ ...RULE, idleLeaseMs: 10_000 })).toBe(true);
    first.end(first.begin(wordsOf(1, 20), [1]));
    first.tell(second);
    expect(second.used(1)).toBe(20 * BLOCK);
    first.pool.gate.sessions.tick(60_000);
    expect(first.tell(second).map(({ begins, tokens }) => [begins, tokens])).toEqual([[false, 0]]);
    expect(second.used(1)).toBe(0);
    second.check();
  });

  it('a session that its client has ended at a peer takes no room here', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    first.end(first.begin(wordsOf(1, 20), [1]));
    first.tell(second);
    first.end(first.begin(wordsOf(1, 24), [1], { sessionEnds: true }));
    first.tell(second);
    expect([first.used(1), second.used(1)]).toEqual([0, 0]);
    first.check();
    second.check();
  });

  it('a turn at a peer is over with the endpoint on which it runs', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    first.begin(wordsOf(1, 20), [1]);
    first.tell(second);
    second.pool.control.call.sessionsLeave(1);
    expect([second.elsewhere(1), second.used(1)]).toEqual([false, 0]);
    second.check();
  });

  it('a session that returns to another replica is recognised there and goes to its home', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    // Others need more than the caches: in a pool with room to spare the profile alone decides.
    first.begin(wordsOf(2, 250), [0]);
    first.end(first.begin(wordsOf(3, 70), [1]));
    first.end(first.begin(wordsOf(1, 20), [1]));
    first.tell(second);
    const charge = second.begin(wordsOf(1, 24));
    expect(charge.slot).toBe(1);
    expect(second.counts.recognised).toMatchObject({ prompt: 1, new: 0 });
    second.tell(first);
    expect(first.used(1)).toBe(94 * BLOCK);
    second.end(charge);
    second.tell(first);
    first.end(first.begin(wordsOf(1, 30)));
    expect(first.counts.recognised).toMatchObject({ prompt: 1, new: 3 });
    first.check();
    second.check();
  });

  it('a further prompt of a session with a turn in flight at a peer is a fork', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    first.begin(wordsOf(1, 20), [1]);
    first.tell(second);
    second.begin(wordsOf(1, 24), [1]);
    expect(second.counts.recognised).toMatchObject({ prompt: 0, fork: 1 });
    second.check();
  });

  it('a burst of sub-agents uses as much at a peer as where it runs, while it runs and behind it', () => {
    const [first, second] = [new SessionReplica(1, { endpoints: 1 }), new SessionReplica(2, { endpoints: 1 })];
    const tools = (name: number, count: number) => [...wordsOf(9, 8), ...wordsOf(name, count - 8)];
    const both = () => {
      first.tell(second);
      second.tell(first);
      expect(second.used(0)).toBe(first.used(0));
      for (const each of [first, second]) each.check();
      return first.used(0);
    };
    for (const name of [1, 2, 3]) first.end(first.begin(tools(name, 12)));
    both();
    const burst = [first.begin(tools(1, 30)), first.begin([...tools(1, 30), 2])];
    both();
    burst.push(first.begin([...tools(1, 30), 3]));
    // The history with its tools, a block for each sub-agent, and what the other two agents have of their own.
    expect(both()).toBe((30 + 2 + 2 * 4) * BLOCK);
    for (const each of burst) first.end(each);
    expect(both()).toBe((30 + 2 + 2 * 4) * BLOCK);
  });

  it('a sub-agent at a peer lets the agent that runs here share its history', () => {
    const [first, second] = [new SessionReplica(1, { endpoints: 1 }), new SessionReplica(2, { endpoints: 1 })];
    second.end(second.begin(wordsOf(1, 20)));
    second.tell(first);
    first.begin(wordsOf(1, 20));
    first.tell(second);
    second.begin([...wordsOf(1, 20), 2]);
    expect(second.used(0)).toBe(21 * BLOCK);
    second.tell(first);
    expect(first.used(0)).toBe(21 * BLOCK);
    first.check();
  });

  it('turns of both replicas fill one cache: a turn without room waits', () => {
    const [first, second] = [new SessionReplica(1, { endpoints: 1 }), new SessionReplica(2, { endpoints: 1 })];
    first.end(first.begin(wordsOf(1, 60)));
    expect(second.begin(wordsOf(2, 39)).ticket).not.toBe(0);
    first.tell(second);
    expect(second.used(0)).toBe(99 * BLOCK);
    second.begin(wordsOf(3, 50));
    expect(second.counts.looks.none).toBe(1);
  });

  it('a turn at a peer makes its endpoint one that hosts sessions, whatever it was picked for here', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    const hosts = () => second.pool.control.call.sessionsHosted(1);
    second.begin(wordsOf(9, 1), [1], { further: true });
    first.begin(wordsOf(1, 20), [1]);
    expect(hosts()).toBe(0);
    first.tell(second);
    expect(hosts()).toBe(1);
  });

  it('a replica without its peers fills its share of a cache', () => {
    const half = new SessionReplica(1, { endpoints: 1, share: 0.5 });
    half.begin(wordsOf(1, 46));
    half.begin(wordsOf(2, 10));
    expect(half.counts.looks).toMatchObject({ room: 1, none: 1 });
    expect(half.used(0)).toBeLessThan(CACHE / 2);
  });

  it('the turns of a peer that is gone are no longer in flight', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    first.begin(wordsOf(1, 20), [0]);
    first.begin(wordsOf(2, 20), [1]);
    first.tell(second);
    expect(second.news.peerGone(7)).toBe(true);
    expect([second.elsewhere(1), second.elsewhere(2)]).toEqual([true, true]);
    expect(second.news.peerGone(1)).toBe(true);
    expect([second.elsewhere(1), second.elsewhere(2)]).toEqual([false, false]);
  });

  it('a turn at a peer of which no end is heard for ten minutes counts as ended', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    first.begin(wordsOf(1, 20), [0]);
    first.tell(second);
    second.pool.gate.sessions.tick(600_000);
    expect(second.elsewhere(1)).toBe(true);
    second.pool.gate.sessions.tick(602_000);
    expect(second.elsewhere(1)).toBe(false);
  });

  it('news that comes twice, or of which the begin was lost, changes nothing but the order of use', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    first.end(first.begin(wordsOf(1, 20), [1]), 10);
    const told: PlacedTurn[] = [];
    first.news.drain((turn) => told.push(turn));
    for (const turn of [told[1]!, told[1]!]) second.news.hear(turn, 1, 2_000);
    expect(second.used(1)).toBe(20 * BLOCK + 10);
    second.check();
  });

  it('news of an endpoint that has left here is passed over', () => {
    const [first, second] = [new SessionReplica(1), new SessionReplica(2)];
    first.end(first.begin(wordsOf(1, 20), [1]));
    const told: PlacedTurn[] = [];
    first.news.drain((turn) => told.push(turn));
    second.news.hear({ ...told[0]!, generation: told[0]!.generation + 1 }, 1, 2_000);
    expect(second.used(1)).toBe(0);
  });

  it('news that is not read in time is counted as lost', () => {
    const replica = new SessionReplica(1);
    for (let i = 0; i < CORE.SESSION_NEWS; i++) replica.end(replica.begin(wordsOf(1, 20)));
    let read = 0;
    const lost = replica.news.drain(() => read++);
    expect(lost).toBeGreaterThan(0);
    expect(lost + read).toBe(2 * CORE.SESSION_NEWS);
  });
});
