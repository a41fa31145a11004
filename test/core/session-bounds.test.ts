import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, createPoolMemory, loadCoreModule } from '../../dist/src/core/index.js';
import type { PlacedSession } from '../../dist/src/core/session-news.js';
import { makeGate, type Shard } from './gate-pool.ts';
import { pickMax, scorer, smallSizes } from './pool.ts';
import { BLOCK, RULE, SessionReplica, wordsOf } from './session-replica.ts';

/** Tokens of requests without a session that are counted: of one, and between two sessions (assembly/gate). */
const OTHER_MAX = 2 ** 24;
const UNLISTED_MAX = 2 ** 26;

function openCore(chainBlocks = smallSizes.chainBlocks): CoreInstance {
  return attachCore(createPoolMemory({ ...smallSizes, chainBlocks }, { hashSeed: 7n }), 0);
}

function locked<Result>({ call }: CoreInstance, work: () => Result): Result {
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  expect(call.lockAcquire(lock, 100)).toBe(1);
  const result = work();
  expect(call.sessionsCheck()).toBe(0);
  call.lockRelease(lock);
  return result;
}

/** One endpoint on the core that is shipped, with an idle session of 40 blocks. */
class ChatPool {
  readonly pool;
  readonly #shard: Shard;
  #now = 1_000;

  constructor(blockCount: number, smallPrompt: number) {
    const idle = { waiting: 0, running: 0, kvUsage: 0, blockTokens: BLOCK, blockCount };
    const settings = { mode: 'requests', maxRequests: 1_000, maxTokens: 1 } as const;
    this.pool = makeGate(settings, [idle], [scorer('OP_SCORE_QUEUE'), pickMax], loadCoreModule('release'));
    expect(this.pool.gate.sessions.configure({ ...RULE, smallPrompt })).toBe(true);
    this.#shard = this.pool.shard(1);
    this.chat(40 * BLOCK, 40);
  }

  /** A request and its end. */
  chat(promptTokens: number, blocks = 1): void {
    const at = this.#shard.core.call.hashesAddress() >>> 0;
    for (let i = 0; i < blocks; i++)
      this.#shard.core.view.setBigUint64(at + 8 * i, BigInt(this.#now * 1_000 + i), true);
    const { status, ticket, ticketGeneration } = this.#shard.decide({ blocks, promptTokens, nowMs: this.#now++ });
    expect(status).toBe('decided');
    this.#shard.decider.release(ticket, ticketGeneration);
  }

  get used(): number {
    return this.pool.gate.sessions.usedTokens(0);
  }

  get made(): number {
    return this.pool.control.call.sessionsMade();
  }
}

const TOLD: PlacedSession = {
  ...{ begins: false, before: 0n, anchor: 0n, earlyAnchor: 0n, prefix: 0n, within: 0n },
  ...{ tokens: 1, shared: 0, withinTokens: 0, named: false },
  ...{ turns: 3, ageMs: 60_000, waits: false, lapsedAfter: undefined, forgotten: false, peer: 0 },
  ...{ slot: 0, generation: 1 },
};

/** A replica with idle sessions of so many tokens each, none of which is worth its room any more. */
function replicaWith(sessions: number, tokens: number): SessionReplica {
  const replica = new SessionReplica(1, { endpoints: 1, rule: { ...RULE, smallPrompt: 0, idleLeaseMs: 1_000 } });
  replica.wait(100_000);
  for (let i = 1; i <= sessions; i++)
    replica.news.learn({ ...TOLD, anchor: (BigInt(i) << 20n) + BigInt(i), tokens }, 1, replica.now);
  expect(replica.states).toEqual(Array.from({ length: sessions }, () => CORE.SESSION_IDLE));
  return replica;
}

describe('bounds of sessions', () => {
  it('a hundred thousand chats take no entry, and push out the session that was used before them', () => {
    const pool = new ChatPool(1_000, 0.02);
    expect([pool.made, pool.used]).toEqual([1, 40 * BLOCK]);
    for (let i = 0; i < 100; i++) pool.chat(BLOCK);
    expect(pool.used).toBe(140 * BLOCK);
    for (let i = 100; i < 100_000; i++) pool.chat(BLOCK);
    expect([pool.made, pool.used]).toEqual([1, 0]);
    expect(pool.pool.gate.sessions.counts().lapsed.forgotten).toBe(1);
  });

  it('one request without a session counts 2^24 tokens at most, and those behind a session 2^26', () => {
    const pool = new ChatPool(20_000_000, 0);
    pool.chat(2 ** 25);
    expect(pool.used).toBe(40 * BLOCK + OTHER_MAX);
    for (let i = 0; i < 9; i++) pool.chat(2 ** 25);
    expect(pool.used).toBe(40 * BLOCK + UNLISTED_MAX);
  });

  it('a shared beginning beyond 3,072 others counts for each session that has it', () => {
    const core = openCore();
    const begin = (prefix: number) => {
      const entry = core.call.sessionTake();
      core.call.sessionBegin(entry, 0, 150, 50, BigInt(prefix) << 20n, 1, 1);
    };
    const used = (prefix: number) =>
      locked(core, () => {
        begin(prefix);
        begin(prefix);
        return core.call.sessionsUsed(0);
      });
    locked(core, () => {
      for (let prefix = 1; prefix < 3_072; prefix++) begin(prefix);
    });
    const before = core.call.sessionsUsed(0);
    expect(used(3_072)).toBe(before + 250);
    expect(used(3_073)).toBe(before + 250 + 300);
  });

  it('a ninth length of shared beginnings takes the place of the first: what a prompt has by chance counts as shared', () => {
    const shared = wordsOf(1, 16);
    const tokensBehind = (lengths: number) => {
      const rule = { ...RULE, smallPrompt: 0 };
      const replica = new SessionReplica(1, { endpoints: 1, rule, blockCount: 10_000 });
      const begin = (words: readonly number[], name: number) => {
        const before = replica.used(0);
        replica.end(replica.begin([...words, ...wordsOf(name, 14)]));
        return replica.used(0) - before;
      };
      for (let name = 2; name <= 4; name++) begin(shared, name);
      for (let i = 0; i < lengths; i++) for (const name of [100, 200]) begin(wordsOf(10 + i, 60 - i), name + i);
      return begin([...shared, ...wordsOf(2, 4)], 5);
    };
    expect(tokensBehind(7)).toBe(18 * BLOCK);
    expect(tokensBehind(8)).toBe(34 * BLOCK);
  });

  it('a ninth anchor in a bucket takes the place of one other', () => {
    const core = openCore();
    // A bucket is chosen by the lowest 15 bits.
    const hashOf = (i: number) => (BigInt(i) << 40n) + (BigInt(i % 3) << 16n) + 5n;
    const found = (i: number) => {
      const at = core.call.hashesAddress() >>> 0;
      core.view.setBigUint64(at, hashOf(i), true);
      return core.call.sessionOf(at, 1, 1) !== 0;
    };
    const anchor = (i: number) =>
      locked(core, () => {
        const entry = core.call.sessionTake();
        core.call.sessionBegin(entry, 0, 10, 0, 0n, 1, 1);
        core.call.setAnchors(entry, hashOf(i), 0n);
        return entry;
      });
    const eight = [1, 2, 3, 4, 5, 6, 7, 8];
    const [first] = eight.map(anchor);
    expect(eight.map(found)).toEqual(eight.map(() => true));
    anchor(9);
    expect(found(9)).toBe(true);
    expect(eight.map(found).filter((isFound) => !isFound)).toHaveLength(1);
    // One that is taken back takes none of the others along.
    const rest = eight.filter((i) => i !== 1 && found(i));
    locked(core, () => core.call.setAnchors(first!, 0n, 0n));
    expect([found(1), ...rest.map(found)]).toEqual([false, ...rest.map(() => true)]);
  });

  it('the session of a prompt is looked for at the 8,192 last blocks', () => {
    const core = openCore(8_300);
    const at = core.call.hashesAddress() >>> 0;
    for (let i = 0; i < 8_300; i++) core.view.setBigUint64(at + 8 * i, BigInt(i + 1) << 20n, true);
    const entry = locked(core, () => {
      const taken = core.call.sessionTake();
      core.call.sessionBegin(taken, 0, 100, 0, 0n, 1, 1);
      core.call.setAnchors(taken, 100n << 20n, 0n);
      return taken;
    });
    expect(core.call.sessionOf(at, 100 + 8_191, 1)).toBe(entry);
    expect(core.call.sessionOf(at, 100 + 8_192, 1)).toBe(0);
  });

  it('a look for room gives up 256 sessions of an endpoint at most', () => {
    const held = (sessions: number) => {
      const replica = replicaWith(sessions, 6_000 / sessions);
      replica.begin(wordsOf(9, 90));
      return replica.counts.looks.none === 1;
    };
    // 5,360 of 6,000 tokens have to go: nine tenths of the sessions.
    expect([held(250), held(300)]).toEqual([false, true]);
  });

  it('a tick tells peers 256 of the sessions that it lets lapse', () => {
    const replica = replicaWith(300, 1);
    replica.pool.gate.sessions.tick(replica.now);
    expect(replica.states).toEqual(Array.from({ length: 300 }, () => CORE.SESSION_LAPSED));
    let told = 0;
    expect(replica.news.drain(() => told++)).toBe(0);
    expect(told).toBe(256);
  });

  it('a request of an endpoint that has left takes nothing from the next one in its slot', () => {
    const replica = new SessionReplica(1, { endpoints: 1 });
    replica.end(replica.begin(wordsOf(1, 20)));
    const chat = replica.begin(wordsOf(2, 1));
    expect(replica.pool.table.open(0, 2)).toBe(true);
    expect(replica.pool.table.setState(0, 'live')).toBe(true);
    replica.end(replica.begin(wordsOf(3, 30)));
    const before = replica.used(0);
    replica.end(chat);
    expect(replica.used(0)).toBe(before);
    replica.check();
  });
});
