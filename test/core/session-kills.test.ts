import { describe, expect, it } from 'vitest';
import { CapacityGate } from '../../dist/src/core/capacity-gate.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, Decider, loadCoreModule } from '../../dist/src/core/index.js';
import { SessionNews } from '../../dist/src/core/session-news.js';
import { WaitSlots } from '../../dist/src/core/wait-slots.js';
import { describedRequest, makeGate } from './gate-pool.ts';
import { attachCounted, Killed, ownAreas, type Stores } from './killed-at-store.ts';
import { plainRequest, scorer } from './pool.ts';

const BLOCK = 64;
const [SURVIVOR, VICTIM] = [2, 1];
/** An endpoint whose cache has 100 blocks. */
const IDLE = { waiting: 0, running: 0, kvUsage: 0, blockTokens: BLOCK, blockCount: 100 };
const OPERATIONS = [
  scorer('OP_SCORE_PREFIX', 0.01, 0, 8192, 64),
  scorer('OP_SCORE_ACTIVE_REQUEST', 1),
  scorer('OP_PICK_MAX_SCORE', 1, 1),
];

interface Charge {
  readonly ticket: number;
  readonly ticketGeneration: number;
}

/** A prompt: `shared` blocks that all have, and blocks of a session. */
interface Prompt {
  readonly session: number;
  readonly blocks: number;
  readonly shared?: number;
}

/** A shard: decides, ends turns, waits. */
class Shard {
  readonly core: CoreInstance;
  readonly #decider: Decider;
  readonly #waitSlots: WaitSlots;
  now: number;

  constructor(core: CoreInstance, now: number) {
    this.core = core;
    this.#decider = new Decider(core, 3n);
    this.#waitSlots = new WaitSlots(core);
    this.now = now;
  }

  ask({ session, blocks, shared = 4 }: Prompt, slot: number, held?: Charge) {
    const at = this.core.call.hashesAddress() >>> 0;
    let hash = 7n;
    for (let i = 0; i < blocks; i++) {
      const word = BigInt(i < shared ? i + 1 : session * 1_000 + i);
      hash = BigInt.asUintN(64, (hash ^ word) * 0x9e37_79b9_7f4a_7c15n + 0x1234_5678_9abcn);
      this.core.view.setBigUint64(at + 8 * i, hash, true);
    }
    const gate = { waitSlots: this.#waitSlots.next, held, blind: false };
    const size = { blocks, promptTokens: blocks * BLOCK, subset: [slot] };
    return this.#decider.decide({ ...plainRequest, ...size, gate, nowMs: this.now++ });
  }

  begin(prompt: Prompt, slot: number): Charge {
    const { status, ticket, ticketGeneration } = this.ask(prompt, slot);
    expect(status).toBe('decided');
    return { ticket, ticketGeneration };
  }

  end({ ticket, ticketGeneration }: Charge, tokens = 0): void {
    this.#decider.complete(ticket, ticketGeneration, tokens, this.now++);
    this.#decider.release(ticket, ticketGeneration);
  }

  turn(prompt: Prompt, slot: number): void {
    this.end(this.begin(prompt, slot));
  }

  wait(prompt: Prompt, slot: number): number {
    expect(this.ask(prompt, slot).status).toBe('waiting');
    return this.#waitSlots.enqueue({ ...describedRequest, sinceMs: this.now });
  }
}

/** A pool with sessions in all states, of which the survivor has one turn in flight: what each kill begins with. */
function makeScene(mode: 'shadow' | 'on') {
  const settings = { mode: 'requests', maxRequests: 1_000, maxTokens: 1 } as const;
  const pool = makeGate(settings, [IDLE, IDLE], OPERATIONS, loadCoreModule('release'));
  pool.programs.publish(0, OPERATIONS, { inserts: true });
  pool.gate.sessions.configure({ mode, smallPrompt: 0.02, stretch: 0, maxWaitMs: 300_000 });
  const survivor = new Shard(attachCore(pool.memory, SURVIVOR), 1_000);
  for (const session of [1, 2, 3]) survivor.turn({ session, blocks: 25 + session }, 0);
  survivor.turn({ session: 4, blocks: 30 }, 1);
  // A request without a session, between two of them.
  survivor.turn({ session: 9, blocks: 1 }, 0);
  survivor.turn({ session: 5, blocks: 24 }, 0);
  // The caches are full: a turn of another session finds no room.
  const running = survivor.begin({ session: 6, blocks: 65 }, 1);
  return { pool, running, now: survivor.now };
}

type Scene = ReturnType<typeof makeScene>;

interface Act {
  readonly name: string;
  readonly mode?: 'on';
  /** What the victim has done before. */
  readonly before?: (shard: Shard, scene: Scene) => Charge;
  readonly act: (shard: Shard, charge: Charge) => void;
}

/** Takes a session that a peer tells, used between others of its endpoint. */
function learn({ core, now }: Shard, { isLapsed = false, isRunning = false }): void {
  const told = { before: 0n, anchor: 1n << 50n, earlyAnchor: 1n << 51n, prefix: 5n, named: false, waits: false };
  const size = { tokens: 12 * BLOCK, shared: 2 * BLOCK, turns: 2, ageMs: 4, forgotten: false, peer: 0 };
  const nested = { within: 6n, withinTokens: BLOCK };
  const place = { slot: 0, generation: 1, begins: isRunning, lapsedAfter: isLapsed ? 3 : undefined };
  expect(new SessionNews(core).learn({ ...told, ...size, ...nested, ...place }, 7, now)).toBe(true);
}

const ACTS: readonly Act[] = [
  { name: 'the first turn of a session', act: (shard) => shard.turn({ session: 7, blocks: 20 }, 0) },
  { name: 'a turn of a session at its home', act: (shard) => shard.turn({ session: 2, blocks: 30 }, 0) },
  { name: 'a turn of the session used longest ago', act: (shard) => shard.turn({ session: 1, blocks: 30 }, 0) },
  { name: 'a turn of a session that goes elsewhere', act: (shard) => shard.turn({ session: 2, blocks: 30 }, 1) },
  { name: 'a fork of a running session', act: (shard) => shard.turn({ session: 6, blocks: 69 }, 1) },
  { name: 'a request without a session', act: (shard) => shard.turn({ session: 8, blocks: 1 }, 0) },
  {
    name: 'a lapsed session that a peer tells, behind a protected one',
    act: (shard) => learn(shard, { isLapsed: true }),
  },
  { name: 'an idle session that a peer tells', act: (shard) => learn(shard, {}) },
  { name: 'a session with a turn in flight that a peer tells', act: (shard) => learn(shard, { isRunning: true }) },
  { name: 'a turn that pushes others out', act: (shard) => shard.turn({ session: 7, blocks: 60 }, 0) },
  {
    name: 'the end of a turn whose answer pushes others out',
    before: (shard) => shard.begin({ session: 2, blocks: 30 }, 0),
    act: (shard, charge) => shard.end(charge, 40 * BLOCK),
  },
  {
    name: 'a turn without room, which waits',
    mode: 'on',
    act: (shard) => void shard.wait({ session: 7, blocks: 60 }, 1),
  },
  {
    name: 'a fork of a running session, which waits',
    mode: 'on',
    act: (shard) => void shard.wait({ session: 6, blocks: 130 }, 1),
  },
  {
    name: 'a turn that comes back with a dispatch',
    mode: 'on',
    before: (shard, { pool, running }) => {
      const slot = shard.wait({ session: 7, blocks: 60 }, 1);
      pool.gate.takeEnqueued(
        VICTIM,
        () => undefined,
        () => undefined,
      );
      new Shard(attachCore(pool.memory, SURVIVOR), shard.now).end(running);
      pool.gate.sessions.tick(4_000_000);
      expect(pool.gate.dispatch(VICTIM, slot, -1, 4_000_000)).toBe('done');
      shard.now = 4_000_001;
      let dispatched: Charge | undefined;
      new WaitSlots(shard.core).takeReturns((_, result) => {
        if (result.kind === 'dispatched') dispatched = result;
      });
      return dispatched!;
    },
    act: (shard, charge) => {
      const { status, ticket, ticketGeneration } = shard.ask({ session: 7, blocks: 60 }, 1, charge);
      expect(status).toBe('decided');
      shard.end({ ticket, ticketGeneration });
    },
  },
];

/** What the structures say of themselves, and what is in use before and after it is all summed anew. */
function checked({ call }: CoreInstance) {
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  expect(call.lockAcquire(lock, 100)).toBe(1);
  const found = [call.sessionsCheck(), call.turnsCheck(), call.ledgerCheck(), call.gateCheck()];
  const used = [0, 1].map((slot) => call.sessionsUsed(slot));
  call.sessionsRepair();
  const again = [0, 1].map((slot) => call.sessionsUsed(slot));
  call.lockRelease(lock);
  return { found, used, again };
}

/** Kills the victim at its n-th store of an act. @returns whether it was killed before the act was over */
function killAt({ act, before }: Act, scene: Scene, stores: Stores, killedAt: number): boolean {
  const { pool, now } = scene;
  const victim = new Shard(attachCounted(pool.memory, VICTIM, stores), now);
  const charge = before?.(victim, scene) ?? { ticket: 0, ticketGeneration: 0 };
  Object.assign(stores, { count: 0, killedAt });
  try {
    act(victim, charge);
    return false;
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
    return true;
  }
}

/** Whether sessions go on after a kill as if nothing had been: those of others, and the one of the victim. */
function expectGoesOn({ pool, running }: Scene, acted: Act): void {
  const control = attachCore(pool.memory, 0);
  const { sessions } = new CapacityGate(control);
  const shard = new Shard(attachCore(pool.memory, SURVIVOR), 5_000_000);
  sessions.configure({ mode: 'shadow', smallPrompt: 0.02, stretch: 0, maxWaitMs: 300_000 });
  if (acted.before === undefined || acted.mode === undefined) shard.end(running);
  const before = sessions.counts().recognised;
  // Small steps, so that none is pushed out; the victim's own session was one of 2, 6 or 7.
  for (const [session, slot] of [
    [3, 0],
    [4, 1],
    [5, 0],
  ] as const) {
    shard.turn({ session, blocks: 36 }, slot);
  }
  const after = sessions.counts().recognised;
  expect({ prompt: after.prompt - before.prompt, fork: after.fork - before.fork }).toEqual({ prompt: 3, fork: 0 });
  shard.turn({ session: 2, blocks: 40 }, 0);
  expect(sessions.counts().recognised.fork).toBe(after.fork);
}

describe('sessions after a thread was killed', () => {
  it.each(ACTS)(
    'sessions add up wherever it stood, and no turn is lost: $name',
    (acted) => {
      const scene = makeScene(acted.mode ?? 'shadow');
      const bytes = new Uint8Array(scene.pool.memory.memory.buffer);
      const [first, behind] = ownAreas(scene.pool.control);
      const start = [0, behind].map((at) => ({ at, bytes: bytes.slice(at, at === 0 ? first : undefined) }));
      const stores: Stores = { count: 0, killedAt: -1 };
      expect(killAt(acted, scene, stores, -1)).toBe(false);
      const all = stores.count;
      expect(all).toBeGreaterThan(20);
      for (let n = 1; n <= all; n++) {
        for (const part of start) bytes.set(part.bytes, part.at);
        stores.killedAt = -1;
        expect(killAt(acted, scene, stores, n)).toBe(true);
        const control = attachCore(scene.pool.memory, 0);
        control.call.reclaimThread(VICTIM);
        const { found, used, again } = checked(control);
        expect({ n, found, used }).toEqual({ n, found: [0, 0, 0, 0], used: again });
        expectGoesOn(scene, acted);
        expect(checked(control).found).toEqual([0, 0, 0, 0]);
      }
    },
    120_000,
  );
});
