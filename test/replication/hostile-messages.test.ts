import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenBuckets } from '../../dist/src/flow-control/token-buckets.js';
import { encodeMessage, type MessageKey, messageKey } from '../../dist/src/replication/messages.js';
import { PEERS_MAX } from '../../dist/src/replication/peer-view.js';
import { replicaAt, START_MS, updateOf } from './replicator-parts.ts';

const ENDPOINT = 7n;
const LOAD = { requests: 5, tokens: 9, prefill: 0, prompt: 0, output: 0, pending: 0, held: 0, charged: 5 };

/** A replica that hears one live peer with five requests. */
function withPeer(key?: MessageKey) {
  const parts = replicaAt({ key });
  const { replicator, clock } = parts;
  let sequence = 0;
  const say = () => {
    const loads = [{ endpoint: ENDPOINT, ...LOAD }];
    const bytes = encodeMessage(updateOf('peer', ++sequence, clock.ms, { full: true, loads }), key);
    replicator.receive(bytes, clock.ms);
    replicator.tick(clock.ms);
  };
  say();
  /** The peer speaks five times a second, as it does. */
  const pass = (ms: number) => {
    for (let at = 0; at < ms; at += 200) {
      clock.ms += 200;
      say();
    }
  };
  const live = () => replicator.peers.filter((each) => each.live).map(({ replica }) => replica);
  return { ...parts, pass, live };
}

describe('a message of a stranger', () => {
  it.each([
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['-Infinity', Number.NEGATIVE_INFINITY],
  ])('a message with the time %s removes no live replica', (_name, sentAtMs) => {
    const { replicator, pool, clock, pass, live } = withPeer();
    const bytes = encodeMessage(updateOf('peer', 2, 0, { sentAtMs }));
    replicator.receive(bytes, clock.ms);
    pass(1_000);
    expect(live()).toEqual(['peer']);
    expect(pool.peerLoads.get(ENDPOINT)).toBe(5);
    expect(replicator.counts.badMessages).toMatchObject({ value: 1 });
  });

  it('messages that cannot be read leave one line a minute, with their number', () => {
    const { replicator, log, clock } = replicaAt();
    for (let i = 0; i < 1_000; i++) replicator.receive(Uint8Array.of(9), clock.ms);
    expect(log).toEqual([expect.stringMatching(/^a message cannot be read: version 9 .* \{"count":1\}$/)]);
    clock.ms += 60_000;
    replicator.receive(Uint8Array.of(9), clock.ms);
    expect(log).toHaveLength(2);
    expect(log[1]).toContain('{"count":1000}');
    expect(replicator.counts.badMessages.unreadable).toBe(1_001);
  });

  it('invented tenants beyond the bound are counted, and leave one line', () => {
    const { replicator, log, clock } = replicaAt();
    for (let i = 0; i < 6; i++) {
      const spendings = Array.from({ length: 20_000 }, (_, at) => ({ tenant: `${i} ${at}`, tokens: 1 }));
      replicator.receive(encodeMessage(updateOf(`stranger ${i}`, 1, clock.ms, { spendings })), clock.ms);
    }
    expect(replicator.counts.forgottenTenants).toBe(20_000);
    expect(log.filter((line) => line.includes('tenants'))).toEqual([
      expect.stringMatching(/^replicas tell of more than 100000 tenants: .* set replication.hashKeyFile /),
    ]);
  });

  it('invented loads beyond the bound of all peers are counted, and leave one line', () => {
    const { replicator, log, clock } = replicaAt();
    for (let i = 0; i < 26; i++) {
      const loads = Array.from({ length: 10_240 }, (_, at) => ({ ...LOAD, endpoint: BigInt(i * 10_240 + at + 1) }));
      replicator.receive(encodeMessage(updateOf(`stranger ${i}`, 1, clock.ms, { loads })), clock.ms);
    }
    expect(replicator.counts.forgottenLoads).toBe(26 * 10_240 - 262_144);
    expect(log.filter((line) => line.includes('of load'))).toEqual([
      expect.stringMatching(/^replicas tell of load in more than 262144 places .* set replication.hashKeyFile /),
    ]);
  });

  it('the loads on invented endpoints wait for the next tick, but no more than 65,536 of them', () => {
    const { replicator, pool, clock } = replicaAt();
    const hear = (name: string, parts: object) => {
      replicator.receive(encodeMessage(updateOf(name, 1, clock.ms, { full: true, ...parts })), clock.ms);
    };
    for (let i = 0; i < 9; i++) hear(`peer ${i}`, {});
    replicator.tick(clock.ms);
    const applied = [0, 1, 2, 3, 4, 5, 6].map((part) => {
      const loads = Array.from({ length: 10_000 }, (_, i) => ({ endpoint: BigInt(part * 10_000 + i), ...LOAD }));
      hear(`stranger ${part}`, { loads });
      return pool.peerLoads.size;
    });
    expect(applied).toEqual([0, 0, 0, 0, 0, 0, 70_000]);
  });

  it('invented names with another seed leave one line each, and 64 a minute at most', () => {
    const { replicator, log, clock } = replicaAt();
    const hear = (names: number, sequence: number) => {
      for (let i = 0; i < names; i++) {
        const update = updateOf(`invented ${i}`, sequence, clock.ms, { seedCheck: 8 });
        replicator.receive(encodeMessage(update), clock.ms);
      }
      return log.filter((line) => line.startsWith('a replica hashes blocks with another seed')).length;
    };
    expect([hear(1, 1), hear(1, 2)]).toEqual([1, 1]);
    expect([hear(PEERS_MAX, 3), hear(PEERS_MAX, 4)]).toEqual([64, 64]);
  });

  it('invented names take the place of no live replica, and give way to one that comes later', () => {
    const { replicator, clock, log, pass, live } = withPeer();
    const invent = (i: number) => replicator.receive(encodeMessage(updateOf(`invented ${i}`, 1, clock.ms)), clock.ms);
    for (let i = 0; i < 2 * PEERS_MAX; i++) invent(i);
    expect(live()).toHaveLength(PEERS_MAX);
    expect(live()).toContain('peer');
    expect(log.filter((line) => line.startsWith(`more than ${PEERS_MAX} other replicas are heard`))).toHaveLength(1);
    pass(1_000);
    replicator.receive(encodeMessage(updateOf('late', 1, clock.ms)), clock.ms);
    expect(live().sort()).toEqual(['late', 'peer']);
  });
});

const KEY = messageKey('group', 'secret');

describe('a message of a stranger who has no key', () => {
  it('a signed message that comes again changes nothing, also after others', () => {
    const { replicator, pool, clock } = replicaAt({ key: KEY });
    const spendings = [{ tenant: 't', tokens: 100 }];
    const ejections = [{ endpoint: ENDPOINT, out: true }];
    const first = encodeMessage(updateOf('peer', 1, clock.ms, { spendings, ejections }), KEY);
    replicator.receive(first, clock.ms);
    for (let i = 2; i < 2_000; i++) replicator.receive(encodeMessage(updateOf('peer', i, clock.ms), KEY), clock.ms);
    replicator.receive(first, clock.ms);
    expect([pool.out, pool.spent]).toEqual([[ENDPOINT], spendings]);
    expect(replicator.counts.badMessages).toMatchObject({ repeated: 1 });
  });

  it('signed messages in another order are all applied', () => {
    const { replicator, clock } = replicaAt({ key: KEY });
    for (const serial of [3, 1, 2, 900, 5, 4]) {
      replicator.receive(encodeMessage(updateOf('peer', serial, clock.ms), KEY), clock.ms);
    }
    expect(Object.values(replicator.counts.badMessages).every((count) => count === 0)).toBe(true);
  });

  it('a signed message to another replica is refused here', () => {
    const { replicator, clock } = replicaAt({ key: KEY });
    replicator.receive(encodeMessage(updateOf('peer', 1, clock.ms, { to: 'that one' }), KEY), clock.ms);
    expect([replicator.peers, replicator.counts.badMessages.repeated]).toEqual([[], 1]);
  });

  it.each([
    ['of ten minutes ago', { sentAtMs: START_MS - 600_000 }, 'its time is 601 s behind the clock here'],
    ['of a clock ahead', { sentAtMs: START_MS + 601_000 }, 'its time is 600 s ahead of the clock here'],
    ['of a process to come', { epoch: START_MS + 1e9 }, 'the start of its process is 999999 s ahead of the clock here'],
  ])('a message %s is refused, and the log says how far the clocks are apart', (_name, parts, reason) => {
    const { replicator, log, clock } = replicaAt();
    replicator.receive(encodeMessage(updateOf('peer', 1, clock.ms, parts)), clock.ms);
    expect([replicator.peers, replicator.counts.badMessages.clock]).toEqual([[], 1]);
    expect(log).toEqual([expect.stringContaining(reason)]);
  });

  it('a forged update with a high number hides a live replica for three seconds at most', () => {
    const { replicator, pool, clock, pass, live } = withPeer();
    const forged = updateOf('peer', 2 ** 52, clock.ms, {
      full: true,
      loads: [{ endpoint: ENDPOINT, ...LOAD, requests: 99 }],
    });
    replicator.receive(encodeMessage(forged), clock.ms);
    expect(pool.peerLoads.get(ENDPOINT)).toBe(99);
    pass(3_000);
    expect([live(), pool.peerLoads.get(ENDPOINT)]).toEqual([['peer'], 5]);
  });

  it('tokens that a stranger reports leave a bucket no larger debt than it holds', () => {
    const buckets = new TokenBuckets([{ fairnessId: 't', tokensPerSecond: 10, burstTokens: 1_000 }]);
    for (let i = 0; i < 100; i++) buckets.takeElsewhere('t', 1e15, 0, false);
    expect(buckets.waitFor('t', 1, 0)).toBeLessThanOrEqual(100_100);
    buckets.takeElsewhere('t', 3_000, 0, true);
    expect(buckets.waitFor('t', 1, 0)).toBeGreaterThan(400_000);
  });
});

/** Messages of every kind, as a peer sends them. */
const MESSAGES = [
  updateOf('peer', 2, 1_000, {
    full: true,
    loads: [{ endpoint: ENDPOINT, ...LOAD }],
    placements: [{ endpoint: ENDPOINT, parent: 3n, hashes: BigUint64Array.of(4n, 5n), tail: 6n }],
    ejections: [{ endpoint: ENDPOINT, out: true }],
    spendings: [{ tenant: 'tenant', tokens: 1_000 }],
    learned: Buffer.from('{"guard":{}}'),
  }),
  { ...updateOf('peer', 3, 1_000), kind: 'request', index: true },
  {
    ...updateOf('peer', 4, 1_000),
    kind: 'piece',
    number: 0,
    last: true,
    endpoints: [ENDPOINT],
    segments: Buffer.alloc(40),
  },
] as readonly Parameters<typeof encodeMessage>[0][];

const CHANGES = fc.array(
  fc.record({
    at: fc.nat(),
    bytes: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 9 }),
      // NaN, the infinite ones and the largest number in eight bytes, and the largest in seven of LEB128.
      fc.constantFrom(
        ...[Number.NaN, Number.POSITIVE_INFINITY, -1, Number.MAX_VALUE].map(
          (value) => new Uint8Array(Float64Array.of(value).buffer),
        ),
        Uint8Array.of(255, 255, 255, 255, 255, 255, 127),
      ),
    ),
    cut: fc.option(fc.nat(), { nil: undefined, freq: 8 }),
  }),
  { minLength: 1, maxLength: 4 },
);

/** A message with some bytes replaced, or its end cut off. */
function changed(
  message: (typeof MESSAGES)[number],
  changes: typeof CHANGES extends fc.Arbitrary<infer T> ? T : never,
  key?: MessageKey,
) {
  let bytes = encodeMessage(message, key);
  for (const { at, bytes: put, cut } of changes) {
    if (bytes.length < 2) break;
    // From the second byte on: another version is refused by its first one.
    const from = 1 + (at % Math.max(1, bytes.length - 1));
    bytes.set(put.subarray(0, bytes.length - from), from);
    if (cut !== undefined) bytes = bytes.subarray(0, cut % (bytes.length + 1));
  }
  return bytes;
}

describe('changed messages', () => {
  const flood = fc.array(fc.tuple(fc.constantFrom(...MESSAGES), CHANGES), { minLength: 1, maxLength: 30 });

  it('changed messages leave finite loads, and the live replica as it was half a minute later', () => {
    fc.assert(
      fc.property(flood, (messages) => {
        const { replicator, pool, clock, pass, live } = withPeer();
        for (const [message, changes] of messages) replicator.receive(changed(message, changes), clock.ms);
        replicator.tick(clock.ms);
        for (const load of pool.peerLoads.values()) expect(load >= 0 && load < 2 ** 31).toBe(true);
        for (const { tokens } of pool.spent) expect(tokens > 0 && tokens <= Number.MAX_SAFE_INTEGER).toBe(true);
        pass(30_000);
        expect([live(), pool.peerLoads.get(ENDPOINT)]).toEqual([['peer'], 5]);
      }),
    );
  });

  it('changed messages that were signed change nothing at all', () => {
    fc.assert(
      fc.property(flood, (messages) => {
        const { replicator, pool, clock, live } = withPeer(KEY);
        for (const [message, changes] of messages) {
          const bytes = changed(message, changes, KEY);
          if (Buffer.compare(bytes, encodeMessage(message, KEY)) === 0) continue;
          replicator.receive(bytes, clock.ms);
        }
        expect([live(), [...pool.peerLoads], pool.spent, pool.out, pool.placed]).toEqual([
          ['peer'],
          [[ENDPOINT, 5]],
          [],
          [],
          0,
        ]);
      }),
    );
  });
});
