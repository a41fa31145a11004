import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import type { SessionRule } from '../../dist/src/core/session-ledger.js';
import { makeGate, type Shard } from './gate-pool.ts';
import { scorer, smallSizes } from './pool.ts';

const BLOCK = 64;
/** Tokens of the cache of each endpoint. */
const CACHE = 100 * BLOCK;
const CONFIGURED = { mode: 'shadow', smallPrompt: 0.02, stretch: 0.1, maxWaitMs: 300_000 } as const;
const IDLE = { waiting: 0, running: 0, kvUsage: 0, blockTokens: BLOCK, blockCount: 100 };

/** Cells that the sessions have of each endpoint, the last ones before the news, and cells of a line of the cache. */
const CELLS = 8;
const CELLS_OF_LINE = 16;

/** A text: each word stands for a block. */
function wordsOf(name: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => name * 1_000 + i);
}

/** A pool with sessions in shadow mode whose requests all pick the endpoint that holds most of them. */
class SessionPool {
  readonly pool;
  readonly #shard: Shard;
  readonly #seed: bigint;
  #now = 1_000;

  /** @param seed of the hashes */
  constructor(endpoints = 2, settings: Partial<SessionRule> = CONFIGURED, seed = 7n) {
    this.#seed = seed;
    const operations = [scorer('OP_SCORE_PREFIX', 1, 0, 8192, 64), scorer('OP_PICK_MAX_SCORE', 1, 1)];
    this.pool = makeGate(
      { mode: 'requests', maxRequests: 1_000, maxTokens: 1 },
      Array.from({ length: endpoints }, () => IDLE),
      operations,
    );
    this.pool.programs.publish(0, operations, { inserts: true });
    expect(this.pool.gate.sessions.configure({ ...CONFIGURED, ...settings })).toBe(true);
    this.#shard = this.pool.shard(1);
  }

  wait(ms: number): this {
    this.#now += ms;
    return this;
  }

  /**
   * A turn with this prompt, of which what is longer than a match is not in `words`. @returns its charge
   */
  begin(words: readonly number[], subset?: readonly number[], promptTokens = words.length * BLOCK) {
    const { core } = this.#shard;
    const at = core.call.hashesAddress() >>> 0;
    let hash = this.#seed;
    for (const [i, word] of words.entries()) {
      hash = BigInt.asUintN(64, (hash ^ BigInt(word)) * 0x9e37_79b9_7f4a_7c15n + 0x1234_5678_9abcn);
      core.view.setBigUint64(at + 8 * i, hash, true);
    }
    const size = { blocks: words.length, promptTokens };
    const { status, slots, ticket, ticketGeneration } = this.#shard.decide({ ...size, nowMs: this.#now++, subset });
    expect(status).toBe('decided');
    return { slot: slots[0]!, ticket, generation: ticketGeneration };
  }

  end({ ticket, generation }: { ticket: number; generation: number }, tokens = 0): void {
    this.#shard.decider.complete(ticket, generation, tokens, this.#now++);
    this.#shard.decider.release(ticket, generation);
  }

  turn(words: readonly number[], subset?: readonly number[]): number {
    const charge = this.begin(words, subset);
    this.end(charge);
    return charge.slot;
  }

  move({ ticket, generation }: { ticket: number; generation: number }, slot: number): void {
    expect(this.pool.control.call.moveCharge(ticket, generation, slot, 1)).toBe(0);
  }

  get counts() {
    return this.pool.gate.sessions.counts();
  }

  used(slot: number): number {
    return this.pool.gate.sessions.usedTokens(slot);
  }

  /** Cells of what sessions and others hold on endpoints: all between the turns and the news. */
  columns(): readonly number[] {
    const { core } = this.#shard;
    const end = (core.call.sessionNewsAddress() >>> 0) >>> 2;
    return [...core.u32.slice(end - smallSizes.endpoints * CELLS, end)];
  }
}

describe('turns of sessions', () => {
  it('a prompt that goes on from the last one is the next turn of its session', () => {
    const pool = new SessionPool();
    pool.turn(wordsOf(1, 20));
    pool.turn([...wordsOf(1, 20), ...wordsOf(2, 5)]);
    expect(pool.counts.recognised).toMatchObject({ new: 1, prompt: 1, fork: 0 });
  });

  it('two sessions that begin alike are two', () => {
    const pool = new SessionPool();
    const beginning = wordsOf(1, 20);
    pool.turn([...beginning, ...wordsOf(2, 10)]);
    pool.turn([...beginning, ...wordsOf(3, 10)]);
    pool.turn([...beginning, ...wordsOf(2, 10), ...wordsOf(4, 5)]);
    pool.turn([...beginning, ...wordsOf(3, 10), ...wordsOf(5, 5)]);
    expect(pool.counts.recognised).toMatchObject({ new: 2, prompt: 2 });
  });

  it('a prompt that goes on from a session with a turn in flight is a fork of it', () => {
    const pool = new SessionPool();
    const parent = pool.begin(wordsOf(1, 30));
    const child = pool.begin([...wordsOf(1, 30), ...wordsOf(2, 5)]);
    expect(pool.counts.recognised).toMatchObject({ new: 1, fork: 1 });
    expect(pool.used(parent.slot)).toBe(35 * BLOCK);
    pool.end(parent);
    pool.end(child);
    expect(pool.used(parent.slot)).toBe(35 * BLOCK);
  });

  it('a fork that goes elsewhere shares there what it has of its parent with the next ones', () => {
    const pool = new SessionPool();
    const parent = pool.begin(wordsOf(1, 30), [0]);
    for (const name of [2, 3]) pool.begin([...wordsOf(1, 30), ...wordsOf(name, 5)], [1]);
    expect(pool.used(1)).toBe((30 + 5 + 5) * BLOCK);
    pool.end(parent);
    expect(pool.counts.recognised).toMatchObject({ new: 1, fork: 2 });
  });

  it('two equal prompts in flight are one known session and a new one when they go on', () => {
    const pool = new SessionPool();
    const charges = [pool.begin(wordsOf(1, 20)), pool.begin(wordsOf(1, 20))];
    for (const charge of charges) pool.end(charge);
    for (const name of [2, 3]) pool.turn([...wordsOf(1, 20), ...wordsOf(name, 5)]);
    // A prompt that is shared as a whole is no session's anchor: what comes next may be anyone's.
    expect(pool.counts.recognised).toMatchObject({ new: 2, fork: 1, prompt: 1 });
  });

  it('an equal prompt after a turn is its session, and who goes on second begins a new one', () => {
    const pool = new SessionPool();
    for (let i = 0; i < 2; i++) pool.turn(wordsOf(1, 20));
    for (const name of [2, 3]) pool.turn([...wordsOf(1, 20), ...wordsOf(name, 5)]);
    expect(pool.counts.recognised).toMatchObject({ new: 2, fork: 0, prompt: 2 });
  });

  it('a history that is written anew begins a session, and the old one stays until it lapses', () => {
    const pool = new SessionPool(1);
    pool.turn(wordsOf(1, 30));
    pool.turn([...wordsOf(1, 10), ...wordsOf(2, 15)]);
    expect(pool.counts.recognised).toMatchObject({ new: 2, prompt: 0 });
    // The beginning of the old one is not counted as shared until its own next turn.
    expect(pool.used(0)).toBe((30 + 10 + 15) * BLOCK);
    pool.turn([...wordsOf(1, 10), ...wordsOf(2, 20)]);
    expect(pool.counts.recognised).toMatchObject({ new: 2, prompt: 1 });
  });

  it('a prompt longer than what is matched has its session by what is, and its tokens are all counted', () => {
    const pool = new SessionPool(1);
    for (const blocks of [85, 88, 92]) pool.end(pool.begin(wordsOf(1, 80), undefined, blocks * BLOCK));
    expect(pool.counts.recognised).toMatchObject({ new: 1, prompt: 2 });
    expect(pool.used(0)).toBe(92 * BLOCK);
  });

  it('sessions are recognised alike whatever the hashes begin with', () => {
    const play = (seed: bigint) => {
      const pool = new SessionPool(2, CONFIGURED, seed);
      const text = Array.from({ length: 12 }, (_, i) => [...wordsOf(9, 6), ...wordsOf(i + 1, 3)]);
      for (let i = 0; i < 120; i++) {
        const at = (i * 7) % 12;
        text[at] = [...text[at]!, ...wordsOf(100 + i, i % 3)];
        pool.turn(text[at]!, [at % 2]);
      }
      return [pool.counts, pool.used(0), pool.used(1)];
    };
    const [first, ...others] = [7n, 0n, 0xffff_ffff_ffff_ffffn, 0x1234_0000_0000_0000n].map(play);
    for (const other of others) expect(other).toEqual(first);
  });

  it('what is in use is the prompts of the sessions, and what they share is counted once', () => {
    const pool = new SessionPool(1);
    const beginning = wordsOf(1, 20);
    for (const name of [2, 3, 4]) pool.turn([...beginning, ...wordsOf(name, 10)]);
    // The first session did not share its beginning yet; it does from its next turn on.
    expect(pool.used(0)).toBe((30 + 20 + 10 + 10) * BLOCK);
    pool.turn([...beginning, ...wordsOf(2, 12)]);
    expect(pool.used(0)).toBe((20 + 12 + 10 + 10) * BLOCK);
  });

  it('a beginning that a burst of sub-agents shares is counted once, and so is the one of all agents in it', () => {
    const pool = new SessionPool(1);
    const tools = wordsOf(1, 10);
    const history = [...tools, ...wordsOf(2, 22)];
    for (const words of [history.slice(0, 30), [...tools, ...wordsOf(3, 10)], history]) pool.turn(words);
    expect(pool.used(0)).toBe((10 + 22 + 10) * BLOCK);
    for (const name of [4, 5, 6]) pool.begin([...history, ...wordsOf(name, 3)]);
    expect(pool.counts.recognised).toMatchObject({ fork: 2 });
    // Of the first one's own prompt the last tenth may be shared too: that is known from its next turn on.
    expect(pool.used(0)).toBe((10 + 22 + 10 + 3 * 3 + 1) * BLOCK);
  });

  it('a session whose beginning others came to share counts it as theirs from its next turn on', () => {
    const pool = new SessionPool(1);
    const tools = wordsOf(1, 10);
    const history = [...tools, ...wordsOf(2, 20)];
    for (const words of [[...tools, ...wordsOf(3, 10)], history]) pool.turn(words);
    expect(pool.used(0)).toBe((20 + 10 + 20) * BLOCK);
    // Behind so long a task of its own, its anchors are in no other prompt: what others share is what stands there.
    const first = [...history, ...wordsOf(4, 10)];
    pool.turn(first);
    pool.turn([...history, ...wordsOf(5, 4)]);
    expect(pool.counts.recognised).toMatchObject({ new: 3, prompt: 1, fork: 0 });
    expect(pool.used(0)).toBe((20 + 10 + 20 + 10 + 20 + 4) * BLOCK);
    pool.turn([...first, ...wordsOf(6, 2)]);
    expect(pool.used(0)).toBe((20 + 10 + 20 + 10 + 2 + 4) * BLOCK);
  });

  it('a turn takes the tokens of its answer along', () => {
    const pool = new SessionPool();
    const charge = pool.begin(wordsOf(1, 20));
    pool.end(charge, 300);
    expect(pool.used(charge.slot)).toBe(20 * BLOCK + 300);
  });

  it('a session that moves to another endpoint is in use there, and not where it was', () => {
    const pool = new SessionPool();
    pool.turn(wordsOf(1, 20), [0]);
    pool.turn(wordsOf(1, 25), [1]);
    expect([pool.used(0), pool.used(1)]).toEqual([0, 25 * BLOCK]);
    expect(pool.counts.recomputed.moved).toBe(20 * BLOCK);
  });

  it('a charge that another endpoint has answered takes its turn there', () => {
    const pool = new SessionPool();
    const charge = pool.begin(wordsOf(1, 20), [0]);
    pool.move(charge, 1);
    expect([pool.used(0), pool.used(1)]).toEqual([0, 20 * BLOCK]);
    pool.end(charge);
    expect([pool.used(0), pool.used(1)]).toEqual([0, 20 * BLOCK]);
  });

  it('a prompt below the small share of the cache is no turn', () => {
    const pool = new SessionPool(1, { mode: 'shadow', smallPrompt: 0.1 });
    const charge = pool.begin(wordsOf(1, 9));
    expect(pool.used(0)).toBe(9 * BLOCK);
    pool.end(charge);
    expect(pool.used(0)).toBe(0);
    expect(pool.counts.recognised).toMatchObject({ new: 0 });
    expect(pool.counts.looks.small).toBe(1);
  });

  it('an engine forgets the session used longest ago when others need more than its cache holds', () => {
    const pool = new SessionPool(1);
    for (const name of [1, 2, 3]) pool.turn(wordsOf(name, 40));
    expect(pool.used(0)).toBeLessThanOrEqual(CACHE);
    expect(pool.counts.lapsed.forgotten).toBe(1);
    pool.turn([...wordsOf(1, 40), ...wordsOf(4, 2)]);
    expect(pool.counts.looks).toMatchObject({ protected: 0 });
  });

  it('the turn of a protected session is looked at as one that has its place', () => {
    const pool = new SessionPool();
    pool.turn(wordsOf(1, 20));
    pool.turn(wordsOf(1, 25));
    expect(pool.counts.looks).toMatchObject({ room: 1, protected: 1, none: 0 });
    expect(pool.counts.found).toBe(20 * BLOCK);
  });

  it('a turn without room is counted, and decided all the same', () => {
    const pool = new SessionPool(1);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    pool.turn(wordsOf(3, 40));
    expect(pool.counts.looks).toMatchObject({ room: 2, none: 1 });
  });

  it('an idle session that hardly comes back any more gives its room to a turn that needs it', () => {
    const pool = new SessionPool(1);
    pool.turn(wordsOf(1, 45));
    pool.pool.gate.sessions.tick(3_000_000);
    pool.wait(3_000_000).turn(wordsOf(2, 46));
    pool.turn(wordsOf(3, 40));
    expect(pool.counts.lapsed).toMatchObject({ 'given-up': 1 });
    expect(pool.counts.looks).toMatchObject({ room: 3, none: 0 });
  });

  it('the sessions of an endpoint that has left hold nothing of the next one in its slot', () => {
    const pool = new SessionPool(1);
    pool.turn(wordsOf(1, 20));
    const running = pool.begin(wordsOf(2, 20));
    expect(pool.pool.table.open(0, 2)).toBe(true);
    expect(pool.used(0)).toBe(0);
    pool.end(running);
    expect(pool.used(0)).toBe(0);
  });

  it('nothing is counted while sessions are off, and what ran then is not ended', () => {
    const pool = new SessionPool(1, { mode: 'off' });
    const charge = pool.begin(wordsOf(1, 20));
    pool.pool.gate.sessions.configure(CONFIGURED);
    pool.end(charge);
    expect(pool.used(0)).toBe(0);
    expect(pool.counts.recognised).toMatchObject({ new: 0 });
  });

  it('sessions that are turned off and on begin with none', () => {
    const pool = new SessionPool(1);
    const charge = pool.begin(wordsOf(1, 20));
    pool.pool.gate.sessions.configure({ ...CONFIGURED, mode: 'off' });
    pool.pool.gate.sessions.configure(CONFIGURED);
    expect(pool.used(0)).toBe(0);
    pool.end(charge);
    expect(pool.used(0)).toBe(0);
    expect(pool.counts.recognised).toMatchObject({ new: 0 });
  });

  it('two equal streams of requests are decided alike with sessions in shadow mode and off', () => {
    const play = (mode: 'off' | 'shadow') => {
      const pool = new SessionPool(2, { mode });
      return Array.from({ length: 200 }, (_, i) => pool.turn(wordsOf(i % 9, 5 + (i % 50))));
    };
    expect(play('shadow')).toEqual(play('off'));
  });

  it('a repair ends the turns that a dead thread left without their charge', () => {
    const pool = new SessionPool(1);
    pool.begin(wordsOf(1, 20));
    pool.begin(wordsOf(2, 20));
    expect(pool.pool.control.call.reclaimThread(1)).toBe(2);
    const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
    pool.pool.control.call.lockAcquire(lock, 100);
    expect([pool.pool.control.call.sessionsCheck(), pool.pool.control.call.turnsCheck()]).toEqual([0, 0]);
    pool.pool.control.call.lockRelease(lock);
    expect(pool.used(0)).toBe(40 * BLOCK);
  });

  it('the end of a request behind a protected session changes one line of the cache of what endpoints hold', () => {
    const pool = new SessionPool(1);
    pool.turn(wordsOf(1, 20));
    const other = pool.begin(wordsOf(2, 1));
    const before = pool.columns();
    pool.end(other);
    const after = pool.columns();
    const changed = after.flatMap((cell, i) => (cell === before[i] ? [] : [Math.floor(i / CELLS_OF_LINE)]));
    expect(changed).toHaveLength(2);
    expect(new Set(changed).size).toBe(1);
  });
});
