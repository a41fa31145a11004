import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { type PlacedTurn, SessionNews } from '../../dist/src/core/session-news.js';
import { makeGate } from './gate-pool.ts';
import { scorer } from './pool.ts';

const BLOCK = 64;
/** Tokens of the cache of each endpoint. */
const CACHE = 100 * BLOCK;
const IDLE = { waiting: 0, running: 0, kvUsage: 0, blockTokens: BLOCK, blockCount: 100 };
const RULE = { mode: 'on', smallPrompt: 0.02, stretch: 0, maxWaitMs: 300_000 } as const;

/** A text: each word stands for a block. */
function wordsOf(name: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => name * 1_000 + i);
}

/** One of two replicas over the same endpoints, which have the same slots at both. */
class Replica {
  readonly pool;
  readonly news: SessionNews;
  readonly #shard;
  #now = 1_000;

  constructor(tag: number, { endpoints = 2, share = 1 } = {}) {
    const operations = [scorer('OP_SCORE_PREFIX', 1, 0, 8192, 64), scorer('OP_PICK_MAX_SCORE', 1, 1)];
    const idle = Array.from({ length: endpoints }, () => IDLE);
    this.pool = makeGate({ mode: 'requests', maxRequests: 1_000, maxTokens: 1 }, idle, operations);
    this.pool.programs.publish(0, operations, { inserts: true });
    this.pool.gate.configure({ mode: 'requests', maxRequests: 1_000, maxTokens: 1 }, BLOCK, share, this.#now);
    expect(this.pool.gate.sessions.configure(RULE)).toBe(true);
    this.#shard = this.pool.shard(1);
    this.news = new SessionNews(this.pool.control);
    expect(this.news.begin()).toBe(true);
    this.tag = tag;
  }

  readonly tag: number;

  /** A turn with this prompt on one of the endpoints. */
  begin(words: readonly number[], subset?: readonly number[]) {
    const { core } = this.#shard;
    const at = core.call.hashesAddress() >>> 0;
    let hash = 7n;
    for (const [i, word] of words.entries()) {
      hash = BigInt.asUintN(64, (hash ^ BigInt(word)) * 0x9e37_79b9_7f4a_7c15n + 0x1234_5678_9abcn);
      core.view.setBigUint64(at + 8 * i, hash, true);
    }
    const size = { blocks: words.length, promptTokens: words.length * BLOCK };
    const { slots, ticket, ticketGeneration } = this.#shard.decide({ ...size, nowMs: this.#now++, subset });
    return { slot: slots[0]!, ticket, generation: ticketGeneration };
  }

  end({ ticket, generation }: { ticket: number; generation: number }, tokens = 0): void {
    this.#shard.decider.complete(ticket, generation, tokens, this.#now++);
    this.#shard.decider.release(ticket, generation);
  }

  /** Passes the news to another replica. @returns what it was */
  tell(other: Replica): PlacedTurn[] {
    const told: PlacedTurn[] = [];
    expect(this.news.drain((turn) => told.push(turn))).toBe(0);
    for (const turn of told) expect(other.news.hear(turn, this.tag, this.#now)).toBe(true);
    return told;
  }

  used(slot: number): number {
    return this.pool.gate.sessions.usedTokens(slot);
  }

  /** Pauses that have ended. */
  get pauses(): number {
    return this.pool.gate.sessions.pauses().count;
  }

  get counts() {
    return this.pool.gate.sessions.counts();
  }

  elsewhere(entry: number): boolean {
    return this.pool.control.call.sessionIsElsewhere(entry) !== 0;
  }

  check(): void {
    expect([this.pool.control.call.sessionsCheck(), this.pool.control.call.turnsCheck()]).toEqual([0, 0]);
  }
}

/** Two replicas; a turn of a session that its endpoint has forgotten waits at the first, which has not told it yet. */
function replicasWithAHeldTurn(): readonly [Replica, Replica] {
  const [first, second] = [new Replica(1, { endpoints: 1 }), new Replica(2, { endpoints: 1 })];
  first.end(first.begin(wordsOf(1, 40)));
  first.end(first.begin(wordsOf(2, 60)), 10 * BLOCK);
  first.tell(second);
  expect(first.begin(wordsOf(1, 44)).ticket).toBe(0);
  return [first, second];
}

describe('sessions of replicas', () => {
  it('a turn at a peer counts on its endpoint here, from its begin on and with its answer', () => {
    const [first, second] = [new Replica(1), new Replica(2)];
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
    const [first, second] = [new Replica(1), new Replica(2)];
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
    const [first, second] = [new Replica(1), new Replica(2)];
    expect(first.pool.gate.sessions.configure({ ...RULE, idleLeaseMs: 10_000 })).toBe(true);
    first.end(first.begin(wordsOf(1, 20), [1]));
    first.tell(second);
    expect(second.used(1)).toBe(20 * BLOCK);
    first.pool.gate.sessions.tick(60_000);
    expect(first.tell(second).map(({ begins, tokens }) => [begins, tokens])).toEqual([[false, 0]]);
    expect(second.used(1)).toBe(0);
    second.check();
  });

  it('a turn at a peer is over with the endpoint on which it runs', () => {
    const [first, second] = [new Replica(1), new Replica(2)];
    first.begin(wordsOf(1, 20), [1]);
    first.tell(second);
    second.pool.control.call.sessionsLeave(1);
    expect([second.elsewhere(1), second.used(1)]).toEqual([false, 0]);
    second.check();
  });

  it('a session that returns to another replica is recognised there and goes to its home', () => {
    const [first, second] = [new Replica(1), new Replica(2)];
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
    const [first, second] = [new Replica(1), new Replica(2)];
    first.begin(wordsOf(1, 20), [1]);
    first.tell(second);
    second.begin(wordsOf(1, 24), [1]);
    expect(second.counts.recognised).toMatchObject({ prompt: 0, fork: 1 });
    second.check();
  });

  it('turns of both replicas fill one cache: a turn without room waits', () => {
    const [first, second] = [new Replica(1, { endpoints: 1 }), new Replica(2, { endpoints: 1 })];
    first.end(first.begin(wordsOf(1, 60)));
    expect(second.begin(wordsOf(2, 39)).ticket).not.toBe(0);
    first.tell(second);
    expect(second.used(0)).toBe(99 * BLOCK);
    second.begin(wordsOf(3, 50));
    expect(second.counts.looks.none).toBe(1);
  });

  it('a replica without its peers fills its share of a cache', () => {
    const half = new Replica(1, { endpoints: 1, share: 0.5 });
    half.begin(wordsOf(1, 46));
    half.begin(wordsOf(2, 10));
    expect(half.counts.looks).toMatchObject({ room: 1, none: 1 });
    expect(half.used(0)).toBeLessThan(CACHE / 2);
  });

  it('the turns of a peer that is gone are no longer in flight', () => {
    const [first, second] = [new Replica(1), new Replica(2)];
    first.begin(wordsOf(1, 20), [0]);
    first.begin(wordsOf(2, 20), [1]);
    first.tell(second);
    expect(second.news.peerGone(7)).toBe(true);
    expect([second.elsewhere(1), second.elsewhere(2)]).toEqual([true, true]);
    expect(second.news.peerGone(1)).toBe(true);
    expect([second.elsewhere(1), second.elsewhere(2)]).toEqual([false, false]);
  });

  it('a turn at a peer of which no end is heard for ten minutes counts as ended', () => {
    const [first, second] = [new Replica(1), new Replica(2)];
    first.begin(wordsOf(1, 20), [0]);
    first.tell(second);
    second.pool.gate.sessions.tick(600_000);
    expect(second.elsewhere(1)).toBe(true);
    second.pool.gate.sessions.tick(602_000);
    expect(second.elsewhere(1)).toBe(false);
  });

  it('news that comes twice, or of which the begin was lost, changes nothing but the order of use', () => {
    const [first, second] = [new Replica(1), new Replica(2)];
    first.end(first.begin(wordsOf(1, 20), [1]), 10);
    const told: PlacedTurn[] = [];
    first.news.drain((turn) => told.push(turn));
    for (const turn of [told[1]!, told[1]!]) second.news.hear(turn, 1, 2_000);
    expect(second.used(1)).toBe(20 * BLOCK + 10);
    second.check();
  });

  it('news of an endpoint that has left here is passed over', () => {
    const [first, second] = [new Replica(1), new Replica(2)];
    first.end(first.begin(wordsOf(1, 20), [1]));
    const told: PlacedTurn[] = [];
    first.news.drain((turn) => told.push(turn));
    second.news.hear({ ...told[0]!, generation: told[0]!.generation + 1 }, 1, 2_000);
    expect(second.used(1)).toBe(0);
  });

  it('news that is not read in time is counted as lost', () => {
    const replica = new Replica(1);
    for (let i = 0; i < CORE.SESSION_NEWS; i++) replica.end(replica.begin(wordsOf(1, 20)));
    let read = 0;
    const lost = replica.news.drain(() => read++);
    expect(lost).toBeGreaterThan(0);
    expect(lost + read).toBe(2 * CORE.SESSION_NEWS);
  });
});
