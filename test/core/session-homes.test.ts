import { describe, expect, it } from 'vitest';
import { makeGate, type Shard } from './gate-pool.ts';
import { scorer } from './pool.ts';

const BLOCK = 64;
const IDLE = { waiting: 0, running: 0, kvUsage: 0, blockTokens: BLOCK, blockCount: 10_000 };
/** The home of a session is worth more than an idle endpoint. */
const BY_HOME = [
  scorer('OP_SCORE_SESSION_HOME', 10),
  scorer('OP_SCORE_ACTIVE_REQUEST', 1, 0, 1),
  scorer('OP_PICK_MAX_SCORE', 1, 1),
];
const SESSIONS = { smallPrompt: 0, stretch: 0.1, maxWaitMs: 300_000 } as const;

/** Three endpoints, each with room for all, and prompts of the same beginning up to their length. */
class Homes {
  readonly pool = makeGate({ mode: 'requests', maxRequests: 1_000, maxTokens: 1 }, [IDLE, IDLE, IDLE], BY_HOME);
  readonly #shard: Shard = this.pool.shard(1);
  #now = 1_000;

  constructor(mode: 'off' | 'shadow' | 'on') {
    this.pool.gate.sessions.configure({ mode, ...SESSIONS });
  }

  begin(blocks: number, more: { readonly subset?: readonly number[]; readonly further?: boolean } = {}) {
    const { core } = this.#shard;
    const at = core.call.hashesAddress() >>> 0;
    for (let i = 0; i < blocks; i++) {
      core.view.setBigUint64(at + 8 * i, BigInt.asUintN(64, BigInt(i + 1) * 0x9e37_79b9_7f4a_7c15n), true);
    }
    const size = { blocks, promptTokens: blocks * BLOCK };
    const { status, slots, ticket, ticketGeneration } = this.#shard.decide({ ...size, ...more, nowMs: this.#now++ });
    expect(status).toBe('decided');
    return { slot: slots[0]!, end: () => this.#shard.decider.release(ticket, ticketGeneration) };
  }

  turn(blocks: number, subset?: readonly number[]): number {
    const { slot, end } = this.begin(blocks, subset === undefined ? {} : { subset });
    end();
    return slot;
  }
}

describe('the scorer of homes', () => {
  it.each(['shadow', 'on'] as const)(
    'the scorer of homes speaks for the endpoint of the last turn, mode %s',
    (mode) => {
      const homes = new Homes(mode);
      for (const [i, home] of [2, 0, 1].entries()) {
        homes.turn(10 + 20 * i, [home]);
        expect(homes.turn(20 + 20 * i)).toBe(home);
      }
    },
  );

  it('the scorer of homes says nothing of a first turn, or of one beside a turn in flight', () => {
    const homes = new Homes('on');
    const first = homes.begin(10, { subset: [2] });
    // The endpoint of the parent has a request in flight, and the home of a fork is none.
    expect(homes.begin(20).slot).not.toBe(2);
    first.end();
  });

  it('the scorer of homes says nothing while sessions are off', () => {
    const homes = new Homes('off');
    homes.turn(10, [2]);
    const others = homes.begin(5, { subset: [2] });
    expect(homes.turn(20)).not.toBe(2);
    others.end();
  });
});

describe('the home of a session', () => {
  it('the home of a session whose requests have two stages is the pick of the first one, prefill', () => {
    const homes = new Homes('on');
    const prefill = homes.begin(10, { subset: [2] });
    const decode = homes.begin(10, { subset: [0], further: true });
    expect([prefill.slot, decode.slot]).toEqual([2, 0]);
    decode.end();
    prefill.end();
    expect(homes.turn(20)).toBe(2);
    const { recognised } = homes.pool.gate.sessions.counts();
    expect(recognised).toMatchObject({ new: 1, prompt: 1, fork: 0 });
  });

  it('the home of a session is never an endpoint of later stages, whose cache has no room for any', () => {
    const homes = new Homes('on');
    const { sessions } = homes.pool.gate;
    const fitting = () =>
      sessions.tally(
        [0, 1, 2].map((slot) => ({ slot, capacity: 64_000 })),
        1_000,
      ).fit;
    homes.begin(10, { subset: [2] });
    expect(fitting()).toBe(300);
    const later = () => homes.begin(10, { subset: [0], further: true }).end();
    later();
    expect(fitting()).toBe(200);
    // One that is picked for the first stage too may be a home again.
    homes.turn(1, [0]);
    later();
    expect(fitting()).toBe(300);
  });
});
