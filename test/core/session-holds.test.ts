import { describe, expect, it } from 'vitest';
import type { GateSettings } from '../../dist/src/core/capacity-gate.js';
import { CORE } from '../../dist/src/core/core-names.js';
import type { SessionRule } from '../../dist/src/core/session-ledger.js';
import { describedRequest, makeGate, type Shard } from './gate-pool.ts';
import { scorer, smallSizes } from './pool.ts';

const BLOCK = 64;
const CONFIGURED: SessionRule = { mode: 'on', smallPrompt: 0.02, stretch: 0, maxWaitMs: Number.POSITIVE_INFINITY };
/** An endpoint whose cache has 100 blocks. */
const IDLE = { waiting: 0, running: 0, kvUsage: 0, blockTokens: BLOCK, blockCount: 100 };

/** Cells that the sessions have of each endpoint, the last ones before the news, and the one of what they share. */
const CELLS = 8;
const PREFIX_TOKENS = 4;

interface Charge {
  readonly slot: number;
  readonly ticket: number;
  readonly ticketGeneration: number;
}

interface Asked {
  readonly words: readonly number[];
  readonly priority?: number;
  readonly subset?: readonly number[];
}

/** A gate that lets an endpoint have so many requests. */
function requests(maxRequests: number): GateSettings {
  return { mode: 'requests', maxRequests, maxTokens: 1 };
}

/** A text: each word stands for a block. */
function wordsOf(name: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => name * 1_000 + i);
}

/** A pool that holds turns; a request without a session to follow goes to the endpoint with the fewest requests. */
class HoldingPool {
  readonly pool;
  readonly #shard: Shard;
  now = 1_000;

  constructor(endpoints = 2, settings: Partial<SessionRule> = {}, gate: GateSettings = requests(1_000)) {
    const operations = [scorer('OP_SCORE_ACTIVE_REQUEST', 1), scorer('OP_PICK_MAX_SCORE', 1, 1)];
    this.pool = makeGate(
      gate,
      Array.from({ length: endpoints }, () => IDLE),
      operations,
    );
    this.pool.programs.publish(0, [scorer('OP_SCORE_PREFIX', 0.01, 0, 8192, 64), ...operations], { inserts: true });
    expect(this.pool.gate.sessions.configure({ ...CONFIGURED, ...settings })).toBe(true);
    this.#shard = this.pool.shard(1);
  }

  #decide({ words, priority = 0, subset }: Asked, held?: Charge) {
    const { core } = this.#shard;
    const at = core.call.hashesAddress() >>> 0;
    let hash = 7n;
    for (const [i, word] of words.entries()) {
      hash = BigInt.asUintN(64, (hash ^ BigInt(word)) * 0x9e37_79b9_7f4a_7c15n + 0x1234_5678_9abcn);
      core.view.setBigUint64(at + 8 * i, hash, true);
    }
    const size = { blocks: words.length, promptTokens: words.length * BLOCK };
    return this.#shard.decide({ ...size, nowMs: this.now++, priority, subset }, held);
  }

  /** Asks for an endpoint. @returns its charge, or the wait slot of a turn that waits */
  ask(asked: Asked): { readonly charge: Charge } | { readonly waits: number } {
    const { status, slots, ticket, ticketGeneration } = this.#decide(asked);
    if (status === 'decided') return { charge: { slot: slots[0]!, ticket, ticketGeneration } };
    expect(status).toBe('waiting');
    const waits = this.#shard.waitSlots.enqueue({ ...describedRequest, sinceMs: this.now });
    this.pool.gate.takeEnqueued(
      1,
      () => undefined,
      () => undefined,
    );
    return { waits };
  }

  /** Asks for an endpoint that is there. */
  begin(words: readonly number[], subset?: readonly number[]): Charge {
    const found = this.ask({ words, ...(subset === undefined ? {} : { subset }) });
    if (!('charge' in found)) throw new Error('the turn waits');
    return found.charge;
  }

  /** Asks for an endpoint that is not there. @returns the wait slot */
  wait(words: readonly number[], priority = 0): number {
    const found = this.ask({ words, priority });
    if (!('waits' in found)) throw new Error('the turn has an endpoint');
    return found.waits;
  }

  end({ ticket, ticketGeneration }: Charge): void {
    this.#shard.decider.complete(ticket, ticketGeneration, 0, this.now++);
    this.#shard.decider.release(ticket, ticketGeneration);
  }

  grow({ ticket, ticketGeneration }: Charge, tokens: number): void {
    this.#shard.decider.grow(ticket, ticketGeneration, 0, tokens);
  }

  turn(words: readonly number[], subset?: readonly number[]): number {
    const charge = this.begin(words, subset);
    this.end(charge);
    return charge.slot;
  }

  /** Fills an endpoint far beyond its cache, so that the pool has no room to spare. */
  crowd(slot: number): void {
    this.grow(this.begin(wordsOf(90, 250), [slot]), 200 * BLOCK);
    this.pool.gate.sessions.tick(this.now);
  }

  dispatch(slot: number): string {
    return this.pool.gate.dispatch(1, slot, -1, this.now++);
  }

  #decideReturned(words: readonly number[]) {
    const [returned] = this.#shard.returns();
    if (returned?.result.kind !== 'dispatched') throw new Error('nothing has been dispatched');
    const { endpoint, ticket, ticketGeneration } = returned.result;
    return this.#decide({ words }, { slot: endpoint, ticket, ticketGeneration });
  }

  /** The shard decides again for a turn that was dispatched. */
  decideAgain(words: readonly number[]): Charge {
    const { status, slots, ticket, ticketGeneration } = this.#decideReturned(words);
    expect(status).toBe('decided');
    return { slot: slots[0]!, ticket, ticketGeneration };
  }

  /** The same for one that waits again, as it cannot use its dispatch. */
  waitAgain(words: readonly number[]): void {
    expect(this.#decideReturned(words).status).toBe('waiting');
  }

  /** Blocks of beginnings that sessions of an endpoint share. */
  shared(slot: number): number {
    const { core } = this.#shard;
    const rows = ((core.call.sessionNewsAddress() >>> 0) >>> 2) - smallSizes.endpoints * CELLS;
    return core.u32[rows + slot * CELLS + PREFIX_TOKENS]! / BLOCK;
  }

  cancel(slot: number): void {
    this.#shard.waitSlots.cancel(slot);
  }

  /** Blocks that an endpoint must have room for, of a waiting turn. */
  need(slot: number): number {
    return this.pool.gate.needOf(1, slot) / BLOCK;
  }

  used(slot: number): number {
    return this.pool.gate.sessions.usedTokens(slot) / BLOCK;
  }

  get counts() {
    return this.pool.gate.sessions.counts();
  }

  check(): readonly number[] {
    const { call } = this.pool.control;
    const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
    expect(call.lockAcquire(lock, 1_000)).toBe(1);
    const found = [call.sessionsCheck(), call.turnsCheck(), call.ledgerCheck(), call.gateCheck()];
    call.lockRelease(lock);
    return found;
  }
}

describe('held turns', () => {
  it('a turn for whose session no endpoint has room waits', () => {
    const pool = new HoldingPool(1);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    const slot = pool.wait(wordsOf(3, 40));
    expect(pool.dispatch(slot)).toBe('held');
    expect(pool.counts.looks).toMatchObject({ room: 2, none: 1 });
    expect(pool.pool.gate.read(1, slot)).toMatchObject({ held: true, home: -1, prefixSlot: -1 });
  });

  it('a new session needs room for what an endpoint holds of its prompt and no session has in use', () => {
    const pool = new HoldingPool(2, { idleLeaseMs: 1_000 });
    pool.turn([...wordsOf(1, 30), ...wordsOf(2, 10)], [0]);
    pool.now += 2_000;
    pool.crowd(1);
    pool.turn(wordsOf(3, 46), [0]);
    expect(pool.used(0)).toBe(46);
    const slot = pool.wait([...wordsOf(1, 30), ...wordsOf(4, 40)]);
    expect(pool.pool.gate.read(1, slot)).toMatchObject({ held: true });
    expect(pool.counts.lapsed.forgotten).toBe(0);
  });

  it('a turn of a protected session goes to its home, whatever the profile likes better', () => {
    const pool = new HoldingPool(3);
    pool.crowd(2);
    expect(pool.turn(wordsOf(1, 30), [1])).toBe(1);
    const others = [pool.begin(wordsOf(2, 5), [1]), pool.begin(wordsOf(3, 5), [1])];
    expect(pool.turn(wordsOf(1, 33))).toBe(1);
    for (const charge of others) pool.end(charge);
  });

  it('a turn of a protected session goes where the profile sends it while the pool has room to spare', () => {
    const pool = new HoldingPool(2);
    expect(pool.turn(wordsOf(1, 30), [1])).toBe(1);
    pool.begin(wordsOf(2, 5), [1]);
    expect(pool.turn(wordsOf(1, 33))).toBe(0);
    expect(pool.counts.looks).toMatchObject({ protected: 1, room: 2, none: 0 });
  });

  it('bounds of a detector hold for turns in a pool with room to spare, and so does a ceiling of 0', () => {
    const pool = new HoldingPool(1, {}, requests(1));
    const charge = pool.begin(wordsOf(1, 20));
    const slot = pool.wait(wordsOf(2, 20));
    expect(pool.dispatch(slot)).toBe('closed');
    pool.end(charge);
    expect(pool.dispatch(slot)).toBe('done');
    const closed = new HoldingPool(1, {}, { mode: 'learned' });
    expect(closed.pool.control.call.gateCeiling(0, 0)).toBe(1);
    expect(closed.dispatch(closed.wait(wordsOf(1, 20)))).toBe('closed');
  });

  it('a tick lets the sessions lapse that are not worth their room, from the oldest to the first one that is', () => {
    const pool = new HoldingPool(1);
    for (const name of [1, 2, 3]) pool.turn(wordsOf(name, 20));
    pool.now += 3_000_000;
    pool.turn(wordsOf(2, 25));
    pool.turn(wordsOf(4, 5));
    expect(pool.used(0)).toBe(70);
    // The first tick learns for how long a session is worth its room.
    for (let i = 0; i < 2; i++) pool.pool.gate.sessions.tick(pool.now);
    expect(pool.used(0)).toBe(30);
    expect(pool.counts.lapsed).toMatchObject({ 'given-up': 2, forgotten: 0 });
    // The one that came back stands before the newest: it keeps what lies behind it.
    pool.pool.gate.sessions.tick(pool.now + 1);
    expect(pool.used(0)).toBe(30);
  });

  it('the profile picks among the endpoints with room', () => {
    const pool = new HoldingPool(4);
    pool.crowd(3);
    pool.turn(wordsOf(1, 90), [0]);
    pool.begin(wordsOf(2, 21), [1]);
    expect(pool.turn(wordsOf(3, 30))).toBe(2);
    expect(pool.turn(wordsOf(4, 75))).toBe(1);
  });

  it('a small prompt passes while a turn is held', () => {
    const pool = new HoldingPool(1, { smallPrompt: 0.05 });
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    pool.wait(wordsOf(3, 40));
    pool.turn(wordsOf(4, 3));
    expect(pool.counts.looks.small).toBe(1);
  });

  it('a turn of a protected session passes while another turn is held', () => {
    const pool = new HoldingPool(1);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    pool.wait(wordsOf(3, 40));
    expect(pool.turn(wordsOf(2, 47))).toBe(0);
  });

  it('a turn that would have room waits behind those that are held', () => {
    const pool = new HoldingPool(1);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    const first = pool.wait(wordsOf(3, 40));
    const second = pool.wait(wordsOf(4, 5));
    expect(pool.dispatch(first)).toBe('held');
    expect(pool.dispatch(second)).toBe('done');
    expect(pool.decideAgain(wordsOf(4, 5)).slot).toBe(0);
  });

  it('a held turn goes when a session is no longer worth its place', () => {
    const pool = new HoldingPool(1);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    const slot = pool.wait(wordsOf(3, 40));
    expect(pool.dispatch(slot)).toBe('held');
    pool.now += 3_000_000;
    pool.pool.gate.sessions.tick(pool.now);
    expect(pool.dispatch(slot)).toBe('done');
    pool.decideAgain(wordsOf(3, 40));
    expect(pool.counts.lapsed['given-up']).toBe(1);
    expect(pool.used(0)).toBe(86);
  });

  it('the place of a dispatched turn is kept for it, and given to no other', () => {
    const pool = new HoldingPool(1);
    const running = pool.begin(wordsOf(1, 95));
    const slots = [pool.wait(wordsOf(2, 91)), pool.wait(wordsOf(3, 60))];
    pool.end(running);
    pool.now += 3_000_000;
    pool.pool.gate.sessions.tick(pool.now);
    expect(slots.map((slot) => pool.dispatch(slot))).toEqual(['done', 'held']);
    expect(pool.used(0)).toBe(91);
    pool.decideAgain(wordsOf(2, 91));
    expect(pool.used(0)).toBe(91);
    expect(pool.dispatch(slots[1]!)).toBe('held');
  });

  it('a dispatched turn goes on although its room has shrunk meanwhile', () => {
    const pool = new HoldingPool(1);
    pool.turn(wordsOf(1, 71));
    const other = pool.begin(wordsOf(5, 20));
    pool.wait(wordsOf(2, 40));
    const slot = pool.wait(wordsOf(3, 9));
    expect(pool.dispatch(slot)).toBe('done');
    // The protected session comes back with more, which nothing holds up.
    pool.turn(wordsOf(1, 75));
    expect(pool.decideAgain(wordsOf(3, 9)).slot).toBe(0);
    pool.end(other);
    expect(pool.check()).toEqual([0, 0, 0, 0]);
  });

  it('a place that is kept is free again when the thread of its turn has died', () => {
    const pool = new HoldingPool(1);
    pool.turn(wordsOf(1, 71));
    pool.begin(wordsOf(5, 20));
    pool.wait(wordsOf(2, 40));
    const slot = pool.wait(wordsOf(3, 9));
    pool.dispatch(slot);
    expect(pool.used(0)).toBe(100);
    expect(pool.pool.control.call.reclaimThread(1)).toBeGreaterThan(0);
    expect(pool.used(0)).toBeLessThanOrEqual(91);
    expect(pool.check()).toEqual([0, 0, 0, 0]);
  });

  it('no turn is held while sessions use nine tenths of the caches of the pool or less', () => {
    const held = (first: number, second: number) => {
      const pool = new HoldingPool(2);
      pool.begin(wordsOf(1, first), [0]);
      pool.begin(wordsOf(2, second), [1]);
      return 'waits' in pool.ask({ words: wordsOf(3, 40) });
    };
    expect([held(90, 90), held(90, 91), held(99, 81), held(99, 82)]).toEqual([false, true, false, true]);
  });

  it('no turn is held before sessions use more than eleven tenths of the caches of the pool with it', () => {
    const held = (first: number, second: number) => {
      const pool = new HoldingPool(2);
      pool.begin(wordsOf(1, first), [0]);
      pool.begin(wordsOf(2, second), [1]);
      return 'waits' in pool.ask({ words: wordsOf(3, 20) });
    };
    expect([held(99, 101), held(99, 102)]).toEqual([false, true]);
  });

  it('a crowded pool holds turns beyond nine tenths of its caches until it has had room for a minute', () => {
    const heldAfter = (quietMs: number) => {
      const pool = new HoldingPool(2, { smallPrompt: 0.3 });
      pool.begin(wordsOf(1, 60), [0]);
      pool.begin(wordsOf(2, 90), [1]);
      const chats = [6, 7].map((name) => pool.begin(wordsOf(name, 29), [0]));
      pool.cancel(pool.wait(wordsOf(3, 40)));
      for (const chat of chats) pool.end(chat);
      pool.now += quietMs;
      pool.pool.gate.sessions.tick(pool.now);
      pool.begin(wordsOf(4, 38), [0]);
      return 'waits' in pool.ask({ words: wordsOf(5, 31) });
    };
    expect([heldAfter(30_000), heldAfter(61_000)]).toEqual([true, false]);
  });

  it('a held turn goes to any endpoint once sessions use nine tenths of the caches or less', () => {
    const pool = new HoldingPool(2);
    const other = pool.begin(wordsOf(4, 60), [0]);
    pool.begin(wordsOf(1, 35), [0]);
    pool.begin(wordsOf(2, 90), [1]);
    const slot = pool.wait(wordsOf(3, 70));
    pool.end(other);
    pool.now += 3_000_000;
    // The first tick learns for how long a session is worth its room, the next one lets the ended one lapse.
    pool.pool.gate.sessions.tick(pool.now);
    expect(pool.dispatch(slot)).toBe('held');
    pool.pool.gate.sessions.tick(pool.now);
    expect([pool.used(0), pool.used(1)]).toEqual([35, 90]);
    expect(pool.dispatch(slot)).toBe('done');
  });

  it('pending prefill closes an endpoint for other requests, and for no turn of a session', () => {
    const waits = (smallPrompt: number) => {
      const pool = new HoldingPool(1, { smallPrompt }, { mode: 'learned' });
      pool.begin(wordsOf(1, 20));
      return 'waits' in pool.ask({ words: wordsOf(2, 20) });
    };
    expect([waits(0.5), waits(0.02)]).toEqual([true, false]);
  });

  it('pending prefill closes no endpoint for a held turn', () => {
    const pool = new HoldingPool(1, {}, { mode: 'learned' });
    pool.turn(wordsOf(1, 61));
    pool.begin(wordsOf(2, 31));
    const slot = pool.wait(wordsOf(3, 20));
    expect(pool.dispatch(slot)).toBe('held');
    pool.now += 3_000_000;
    pool.pool.gate.sessions.tick(pool.now);
    expect(pool.dispatch(slot)).toBe('done');
    expect(pool.decideAgain(wordsOf(3, 20)).slot).toBe(0);
  });

  it('a turn without room is held in a pool with a tenth of its caches left while other requests wait', () => {
    const dispatched = (others: boolean) => {
      const pool = new HoldingPool(2, { smallPrompt: 0.15 }, requests(1));
      pool.begin(wordsOf(1, 80), [0]);
      pool.turn(wordsOf(2, 91), [1]);
      if (others) pool.ask({ words: wordsOf(5, 14), subset: [0] });
      const found = pool.ask({ words: wordsOf(3, 30) });
      return 'waits' in found ? pool.dispatch(found.waits) : 'decided';
    };
    expect([dispatched(false), dispatched(true)]).toEqual(['decided', 'held']);
  });

  it('a held turn may exceed the cache by a share that grows with the cube of its wait', () => {
    const waitFor = (blocksTooMany: number) => {
      const pool = new HoldingPool(1, { stretch: 0.1 });
      for (const name of [1, 2, 3]) pool.begin(wordsOf(name, 40));
      const slot = pool.wait(wordsOf(4, blocksTooMany - 20));
      const began = pool.now;
      pool.pool.gate.sessions.tick(began);
      for (; pool.dispatch(slot) === 'held'; pool.now += 9) expect(pool.now).toBeLessThan(1_000_000);
      return pool.now - began;
    };
    expect(waitFor(200) / waitFor(25)).toBeCloseTo(2, 1);
    expect(waitFor(108) / waitFor(32)).toBeCloseTo(1.5, 1);
  });

  describe('while other turns are held that would fill all caches', () => {
    /** Milliseconds after which a turn may exceed the one cache by a fourth, beside held turns of so many blocks. */
    function waitBeside(others: readonly number[], words: readonly number[]) {
      const pool = new HoldingPool(1, { stretch: 0.1 });
      for (const name of [1, 2, 3]) pool.begin(wordsOf(name, 40));
      for (const [i, blocks] of others.entries()) pool.wait(wordsOf(10 + i, blocks));
      const slot = pool.wait(words);
      const began = pool.now;
      pool.pool.gate.sessions.tick(began);
      for (; pool.dispatch(slot) === 'held'; pool.now += 9) expect(pool.now).toBeLessThan(1_000_000);
      return pool.now - began;
    }

    it('a turn waits for so many times as long as they would fill them', () => {
      const alone = waitBeside([], wordsOf(4, 5));
      expect(waitBeside([45, 45], wordsOf(4, 5)) / alone).toBeCloseTo(1, 1);
      expect(waitBeside([90, 90, 90, 30], wordsOf(4, 5)) / alone).toBeCloseTo(3, 1);
    });

    it('a turn waits no longer once they have gone', () => {
      const pool = new HoldingPool(1, { stretch: 0.1 });
      for (const name of [1, 2, 3]) pool.begin(wordsOf(name, 40));
      const others = [10, 11, 12].map((name) => pool.wait(wordsOf(name, 90)));
      const slot = pool.wait(wordsOf(4, 5));
      const began = pool.now;
      pool.pool.gate.sessions.tick(began);
      for (const other of others) pool.cancel(other);
      for (; pool.dispatch(slot) === 'held'; pool.now += 9) expect(pool.now).toBeLessThan(1_000_000);
      expect((pool.now - began) / waitBeside([], wordsOf(4, 5))).toBeCloseTo(1, 1);
    });

    it('a sub-agent waits no longer for them, as its agent waits for it', () => {
      const fork = [...wordsOf(1, 40), ...wordsOf(5, 5)];
      expect(waitBeside([90, 90, 90], fork) / waitBeside([], fork)).toBeCloseTo(1, 1);
    });
  });

  it('a turn that was held for the longest wait goes on without room', () => {
    const pool = new HoldingPool(2, { maxWaitMs: 60_000 });
    for (const slot of [0, 1]) pool.begin(wordsOf(10 + slot, 91 + 4 * slot), [slot]);
    const slot = pool.wait(wordsOf(3, 40));
    pool.now += 59_000;
    expect(pool.dispatch(slot)).toBe('held');
    pool.now += 2_000;
    expect(pool.dispatch(slot)).toBe('done');
    expect(pool.decideAgain(wordsOf(3, 40)).slot).toBe(0);
    expect(pool.counts.forced).toBe(1);
  });

  it('a cancelled turn holds up no other', () => {
    const pool = new HoldingPool(1);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    pool.cancel(pool.wait(wordsOf(3, 40)));
    expect(pool.turn(wordsOf(4, 5))).toBe(0);
  });

  it('held turns of a thread that has died hold up no other', () => {
    const pool = new HoldingPool(1);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    pool.wait(wordsOf(3, 40));
    expect(pool.pool.gate.sessions.held).toBe(1);
    pool.pool.control.call.reclaimThread(1);
    expect(pool.pool.gate.sessions.held).toBe(0);
  });

  it('a held turn goes to another endpoint when the home of its session has left', () => {
    const pool = new HoldingPool(3, {}, requests(1));
    pool.crowd(2);
    pool.turn(wordsOf(1, 40), [0]);
    const busy = pool.begin(wordsOf(2, 5), [0]);
    const slot = pool.wait(wordsOf(1, 45));
    expect(pool.pool.gate.read(1, slot)).toMatchObject({ held: false, home: 0 });
    expect(pool.dispatch(slot)).toBe('closed');
    pool.pool.table.setState(0, 'draining');
    expect(pool.dispatch(slot)).toBe('done');
    expect(pool.decideAgain(wordsOf(1, 45)).slot).toBe(1);
    pool.end(busy);
  });

  it('a turn that waits for its home is held when its session has lost its place meanwhile', () => {
    const pool = new HoldingPool(1, {}, requests(1));
    pool.turn(wordsOf(1, 40));
    const busy = pool.begin(wordsOf(2, 55));
    const slot = pool.wait(wordsOf(1, 45));
    pool.grow(busy, 40 * BLOCK);
    pool.end(busy);
    expect(pool.dispatch(slot)).toBe('held');
    expect(pool.pool.gate.read(1, slot)).toMatchObject({ held: true, home: -1 });
  });

  it('sub-agents that wait for the home of their agent need room for what they add, also after one has gone on', () => {
    const pool = new HoldingPool(1, {}, requests(1));
    const agent = wordsOf(1, 40);
    pool.turn(agent);
    const busy = pool.begin(wordsOf(2, 55));
    const prompts = [3, 4, 5].map((name) => [...agent, ...wordsOf(name, 4)]);
    const [first, ...others] = prompts.map((words) => pool.wait(words));
    pool.end(busy);
    expect(pool.dispatch(first!)).toBe('done');
    const charge = pool.decideAgain(prompts[0]!);
    expect(others.map((slot) => pool.need(slot))).toEqual([4, 4]);
    pool.end(charge);
    pool.turn([...prompts[0]!, ...wordsOf(6, 4)]);
    expect(others.map((slot) => pool.need(slot))).toEqual([4, 4]);
    expect(pool.check()).toEqual([0, 0, 0, 0]);
  });

  it('a held sub-agent needs room for what it adds, also after its agent has gone on', () => {
    const pool = new HoldingPool();
    const agent = wordsOf(1, 40);
    const charge = pool.begin(agent, [0]);
    pool.begin(wordsOf(2, 58), [0]);
    pool.crowd(1);
    const slot = pool.wait([...agent, ...wordsOf(3, 5)]);
    expect(pool.need(slot)).toBe(5);
    pool.end(charge);
    pool.begin([...agent, ...wordsOf(4, 8)]);
    expect(pool.need(slot)).toBe(5);
    expect(pool.check()).toEqual([0, 0, 0, 0]);
  });

  it('a turn that cannot use its dispatch and waits again shares nothing of its session', () => {
    const pool = new HoldingPool(2, {}, requests(1));
    pool.turn(wordsOf(1, 40), [0]);
    pool.crowd(1);
    const busy = pool.begin(wordsOf(2, 55), [0]);
    const words = wordsOf(1, 45);
    const slot = pool.wait(words);
    pool.end(busy);
    expect(pool.dispatch(slot)).toBe('done');
    pool.pool.table.setState(0, 'draining');
    pool.waitAgain(words);
    expect(pool.shared(0)).toBe(0);
  });

  it('the highest of several bands is never held', () => {
    const pool = new HoldingPool(1);
    expect(pool.pool.gate.keepBands([5, 0], pool.now)).toBe(true);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    pool.wait(wordsOf(3, 40), 0);
    expect(pool.ask({ words: wordsOf(4, 40), priority: 5 })).toMatchObject({ charge: { slot: 0 } });
  });

  it('a new session passes when the table of sessions is full, and is counted', () => {
    const pool = new HoldingPool(1);
    const { call } = pool.pool.control;
    const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
    pool.turn(wordsOf(1, 90));
    call.lockAcquire(lock, 1_000);
    for (let entry = call.sessionTake(); entry !== 0; entry = call.sessionTake()) {
      call.sessionBegin(entry, 0, 0, 0, 0n, 0, 1);
      call.sessionEnd(entry, 1);
    }
    call.lockRelease(lock);
    expect(pool.begin(wordsOf(3, 40)).slot).toBe(0);
    expect(pool.counts.recognised.uncounted).toBe(1);
  });

  it('turns are not held while sessions are off or in shadow mode, also those that were', () => {
    const pool = new HoldingPool(1);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    const slot = pool.wait(wordsOf(3, 40));
    pool.pool.gate.sessions.configure({ ...CONFIGURED, mode: 'shadow' });
    expect(pool.dispatch(slot)).toBe('done');
    pool.decideAgain(wordsOf(3, 40));
    expect(pool.turn(wordsOf(5, 60))).toBe(0);
  });

  it('turns that have room and that the profile sends home are decided as without sessions', () => {
    const play = (mode: SessionRule['mode']) => {
      const pool = new HoldingPool(2, { mode });
      return Array.from({ length: 60 }, (_, i) => pool.turn(wordsOf(i % 3, 5 + i / 3), [i % 2]));
    };
    expect(play('on')).toEqual(play('off'));
  });
});
