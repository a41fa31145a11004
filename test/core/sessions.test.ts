import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, createPoolMemory } from '../../dist/src/core/index.js';
import { smallSizes } from './pool.ts';
import { SessionsTwin } from './sessions-twin.ts';

const ENDPOINTS = 2;
const SESSIONS = 6;
const STATES: Readonly<Record<number, string>> = {
  [CORE.SESSION_RUNNING]: 'running',
  [CORE.SESSION_IDLE]: 'idle',
  [CORE.SESSION_LISTED]: 'listed',
  [CORE.SESSION_LAPSED]: 'lapsed',
};

function openCore(): CoreInstance {
  return attachCore(createPoolMemory(smallSizes, { hashSeed: 7n }), 0);
}

/** Does something with the commit lock held, as all callers of the sessions do. */
function locked<Result>({ call }: CoreInstance, work: () => Result): Result {
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  expect(call.lockAcquire(lock, 100)).toBe(1);
  const result = work();
  expect(call.sessionsCheck()).toBe(0);
  call.lockRelease(lock);
  return result;
}

const stateOf = ({ call, view }: CoreInstance, entry: number) =>
  view.getUint16((call.sessionAddress(entry) >>> 0) + CORE.SESSION_STATE, true);

/** Prefixes by their tokens: the hash says how many there are. */
const PREFIXES = [0, 100, 300, 500].map((tokens) => ({ tokens, hash: BigInt(tokens) * 0x1_0001n }));

const id = fc.nat(SESSIONS - 1);
const slot = fc.nat(ENDPOINTS - 1);
const begin = fc.record({
  what: fc.constant('begin' as const),
  id,
  slot,
  tokens: fc.integer({ min: 500, max: 2_000 }),
  prefix: fc.nat(PREFIXES.length - 1),
  within: fc.nat(PREFIXES.length - 1),
});
const other = fc.record({ what: fc.constant('unlisted' as const), slot, tokens: fc.nat(500) });

/** Mostly turns, so that lists become long before an endpoint leaves or forgets. */
const step = fc.oneof(
  { weight: 12, arbitrary: begin },
  { weight: 12, arbitrary: fc.record({ what: fc.constant('end' as const), id }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('grow' as const), id, tokens: fc.nat(3_000) }) },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('lapse' as const), id }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant('share' as const), id, prefix: fc.nat(PREFIXES.length - 1) }) },
  { weight: 6, arbitrary: other },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('forget' as const), slot, capacity: fc.nat(9_000) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('leave' as const), slot }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('repair' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Each> ? Each : never;

/** A core and its twin, side by side. */
class Pair {
  readonly core = openCore();
  readonly twin = new SessionsTwin(ENDPOINTS, (prefix) => PREFIXES.find(({ hash }) => hash === prefix)!.tokens);
  readonly #entries = Array.from({ length: SESSIONS }, () => 0);
  #now = 0;

  play(each: Step): void {
    this.#now++;
    locked(this.core, () => this.#play(each));
    this.twin.prune();
  }

  #play(each: Step): void {
    const { call } = this.core;
    const entry = 'id' in each ? this.#entries[each.id]! : 0;
    const known = entry !== 0;
    if (each.what === 'begin') this.#begin(each);
    else if (each.what === 'end' && known) {
      call.sessionEnd(entry, this.#now);
      this.twin.end(each.id);
    } else if (each.what === 'grow' && known) {
      call.sessionGrow(entry, each.tokens);
      this.twin.grow(each.id, each.tokens);
    } else if (each.what === 'lapse' && known) {
      call.sessionLapse(entry);
      this.twin.lapse(each.id);
    } else if (each.what === 'share' && known) {
      const { tokens, hash } = PREFIXES[each.prefix]!;
      call.sessionShare(entry, tokens, hash);
      this.twin.share(each.id, tokens, hash);
    } else if (each.what === 'unlisted') {
      call.sessionsOtherBegins(each.slot, each.tokens);
      expect(call.sessionsUsed(each.slot)).toBe(this.twin.used(each.slot) + each.tokens);
      call.sessionsOtherEnds(each.slot, each.tokens);
      this.twin.unlisted(each.slot, each.tokens);
    } else if (each.what === 'forget') {
      expect(call.sessionsForgotten(each.slot, each.capacity)).toBe(this.twin.forget(each.slot, each.capacity));
    } else if (each.what === 'leave') {
      call.sessionsLeave(each.slot);
      this.twin.leave(each.slot);
    } else if (each.what === 'repair') {
      call.sessionsRepair();
      this.twin.repair();
    }
  }

  #begin({ id, slot, tokens, prefix, within }: Extract<Step, { what: 'begin' }>): void {
    const { call } = this.core;
    if (this.twin.sessions.get(id)?.state === 'running') return;
    if (this.#entries[id] === 0) this.#entries[id] = call.sessionTake();
    const { tokens: shared, hash } = PREFIXES[prefix]!;
    const outer = PREFIXES[within]!;
    call.sessionBegin(this.#entries[id]!, slot, tokens, shared, hash, id + 1, this.#now);
    this.twin.begin(id, slot, tokens, shared, hash);
    // A hash of 0 is none, and so is one that is not counted.
    if (within === 0) return;
    call.sessionNest(this.#entries[id]!, outer.hash);
    this.twin.nest(id, outer.hash);
  }

  agree(): void {
    const { call } = this.core;
    for (let slot = 0; slot < ENDPOINTS; slot++) expect(call.sessionsUsed(slot)).toBe(this.twin.used(slot));
    for (const [id, entry] of this.#entries.entries()) {
      if (entry === 0) continue;
      expect(STATES[stateOf(this.core, entry)]).toBe(this.twin.stateOf(id));
    }
  }
}

describe('sessions on endpoints', () => {
  it('the core and its twin agree after every step on states and on what is in use', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 120, size: 'max' }), (steps) => {
        const pair = new Pair();
        for (const each of steps) {
          pair.play(each);
          pair.agree();
        }
      }),
      { numRuns: 60 },
    );
  });

  it('a session that pauses behind an older protected one frees nothing', () => {
    const core = openCore();
    const { call } = core;
    const [older, newer] = locked(core, () => [call.sessionTake(), call.sessionTake()]);
    locked(core, () => {
      call.sessionBegin(older!, 0, 1_000, 0, 0n, 1, 1);
      call.sessionEnd(older!, 2);
      call.sessionBegin(newer!, 0, 500, 0, 0n, 2, 3);
      call.sessionEnd(newer!, 4);
      call.sessionLapse(newer!);
    });
    expect(call.sessionsUsed(0)).toBe(1_500);
    locked(core, () => call.sessionLapse(older!));
    expect(call.sessionsUsed(0)).toBe(0);
  });

  it('other traffic counts only behind a protected session', () => {
    const core = openCore();
    const { call } = core;
    const entry = locked(core, () => {
      call.sessionsOtherBegins(0, 700);
      call.sessionsOtherEnds(0, 700);
      return call.sessionTake();
    });
    locked(core, () => {
      call.sessionBegin(entry, 0, 1_000, 0, 0n, 1, 1);
      call.sessionEnd(entry, 2);
      call.sessionsOtherBegins(0, 50);
      call.sessionsOtherEnds(0, 50);
    });
    expect(call.sessionsUsed(0)).toBe(1_050);
  });

  it('a full table gives the entry of a lapsed session away, and none of a protected one', () => {
    const core = openCore();
    const { call } = core;
    const entries = locked(core, () => Array.from({ length: 65_535 }, () => call.sessionTake()));
    locked(core, () => {
      for (const entry of entries) {
        call.sessionBegin(entry, 0, 10, 0, 0n, 1, entry);
        call.sessionEnd(entry, entry);
      }
    });
    expect(locked(core, () => entries.map(() => call.sessionTake())).every((taken) => taken === 0)).toBe(true);
    locked(core, () => call.sessionLapse(entries[0]!));
    const taken = locked(core, () => entries.map(() => call.sessionTake()).filter((entry) => entry !== 0));
    expect(new Set(taken)).toEqual(new Set([entries[0]!]));
    expect(stateOf(core, entries[1]!)).toBe(CORE.SESSION_IDLE);
  });
});

/** Hashes of a prompt in the input area. @returns their address */
function writeHashes({ call, view }: CoreInstance, hashes: readonly bigint[]): number {
  const at = call.hashesAddress() >>> 0;
  for (const [i, hash] of hashes.entries()) view.setBigUint64(at + 8 * i, hash, true);
  return at;
}

/** Chain hashes of a made-up conversation: distinct, with all bits in use. */
function chainOf(seed: bigint, blocks: number): readonly bigint[] {
  return Array.from({ length: blocks }, (_, i) =>
    BigInt.asUintN(64, (seed * 0x9e37_79b9_7f4a_7c15n + BigInt(i)) * 0xbf58_476d_1ce4_e5b9n),
  );
}

describe('the session of a prompt', () => {
  const anchoredSession = (core: CoreInstance, hashes: readonly bigint[]) =>
    locked(core, () => {
      const entry = core.call.sessionTake();
      core.call.sessionBegin(entry, 0, hashes.length * 64, 0, 0n, 1, 1);
      const early = hashes[Math.floor(0.9 * hashes.length) - 1]!;
      core.call.setAnchors(entry, hashes.at(-1)!, early);
      return entry;
    });
  const found = (core: CoreInstance, hashes: readonly bigint[]) =>
    core.call.sessionOf(writeHashes(core, hashes), hashes.length, 1);

  it('a prompt that goes on from the last one of a session is recognised', () => {
    const core = openCore();
    const entry = anchoredSession(core, chainOf(1n, 50));
    expect(found(core, chainOf(1n, 80))).toBe(entry);
    expect(core.call.anchoredBlocks()).toBe(50);
  });

  it('a prompt whose last tenth was rewritten is recognised, one that shares half is not', () => {
    const core = openCore();
    const entry = anchoredSession(core, chainOf(1n, 50));
    expect(found(core, [...chainOf(1n, 45), ...chainOf(2n, 20)])).toBe(entry);
    expect(found(core, [...chainOf(1n, 25), ...chainOf(2n, 20)])).toBe(0);
  });

  it('the deepest anchor of several in a prompt wins', () => {
    const core = openCore();
    anchoredSession(core, chainOf(1n, 20));
    const fork = anchoredSession(core, chainOf(1n, 40));
    expect(found(core, chainOf(1n, 60))).toBe(fork);
  });

  it('a session is found at its newest prompt only, and not at all once it is forgotten', () => {
    const core = openCore();
    const entry = anchoredSession(core, chainOf(1n, 20));
    locked(core, () => core.call.setAnchors(entry, chainOf(1n, 60)[59]!, chainOf(1n, 60)[53]!));
    expect(found(core, chainOf(1n, 20))).toBe(0);
    expect(found(core, chainOf(1n, 70))).toBe(entry);
    locked(core, () => {
      core.call.sessionEnd(entry, 5);
      core.call.sessionFree(entry);
    });
    expect(found(core, chainOf(1n, 70))).toBe(0);
  });

  it('a session whose endpoint has left has no home, also when another endpoint takes the slot', () => {
    const core = openCore();
    const entry = anchoredSession(core, chainOf(1n, 50));
    locked(core, () => {
      core.call.sessionEnd(entry, 5);
      core.call.sessionsLeave(0);
    });
    expect(stateOf(core, entry)).toBe(CORE.SESSION_LAPSED);
    expect(core.view.getUint16((core.call.sessionAddress(entry) >>> 0) + CORE.SESSION_HOME, true)).toBe(CORE.NO_HOME);
  });

  it('ten thousand sessions are told apart', () => {
    const core = openCore();
    const entries = Array.from({ length: 10_000 }, (_, i) =>
      anchoredSessionUnchecked(core, chainOf(BigInt(i + 3), 10)),
    );
    const wrong = entries.filter((entry, i) => found(core, chainOf(BigInt(i + 3), 12)) !== entry);
    expect(wrong).toHaveLength(0);
  });
});

/** Without the check, which would look at all sessions each time. */
function anchoredSessionUnchecked({ call }: CoreInstance, hashes: readonly bigint[]): number {
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  call.lockAcquire(lock, 100);
  const entry = call.sessionTake();
  call.sessionBegin(entry, 0, 640, 0, 0n, 1, 1);
  call.setAnchors(entry, hashes.at(-1)!, hashes[8]!);
  call.lockRelease(lock);
  return entry;
}
