import { createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeMessage,
  EARLIER_VERSION,
  encodeMessage,
  type Message,
  messageKey,
  VERSION,
} from '../../dist/src/replication/messages.js';
import { WireError } from '../../dist/src/replication/wire.js';

const count = fc.nat(2 ** 31 - 1);
const word = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const words = fc.array(word, { maxLength: 20 }).map((values) => BigUint64Array.from(values));
const number = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const epoch = fc.integer({ min: 0, max: 8.64e15 });
const replica = fc.string({ maxLength: 40, unit: 'grapheme' });
const tokens = fc.double({ noNaN: true, min: 0, max: 2 ** 53 - 1 });
const time = fc.double({ noNaN: true, min: 0, max: 8.64e15 });
const load = fc.record({
  endpoint: word,
  requests: count,
  tokens: count,
  prefill: count,
  prompt: count,
  output: count,
  pending: count,
  held: count,
  charged: count,
});
const envelope = { replica, epoch, serial: number, sentAtMs: time, to: replica };
const placement = fc.record({
  endpoint: word,
  parent: fc.option(word, { nil: undefined }),
  hashes: words,
  tail: fc.option(word, { nil: undefined }),
});
const hash = fc.option(word, { nil: 0n });
const turn = fc
  .record({
    ...{ begins: fc.boolean(), endpoint: word, before: hash, anchor: word, earlyAnchor: hash, prefix: hash },
    named: fc.boolean(),
  })
  .chain((each) =>
    fc.tuple(fc.nat(2 ** 24), fc.nat(2 ** 24), fc.nat(2 ** 24), word).map(([a, b, c, within]) => {
      const [least, shared, most] = [a, b, c].sort((one, other) => one - other) as [number, number, number];
      const nests = within !== 0n && least > 0 && least < shared;
      const told = { tokens: most, shared };
      return { ...each, ...told, within: nests ? within : 0n, withinTokens: nests ? least : 0 };
    }),
  );
/** The same turn as a replica of the earlier version tells it. */
const unnested = <Turn extends object>(turns: readonly Turn[]) =>
  turns.map((each) => ({ ...each, within: 0n, withinTokens: 0 }));
const update = fc.record({
  kind: fc.constant('update' as const),
  ...envelope,
  sequence: number,
  seedCheck: count,
  full: fc.boolean(),
  leaves: fc.boolean(),
  loads: fc.array(load, { maxLength: 5 }),
  placements: fc.array(placement, { maxLength: 5 }),
  ejections: fc.array(fc.record({ endpoint: word, out: fc.boolean() }), { maxLength: 3 }),
  spendings: fc.array(fc.record({ tenant: fc.string({ maxLength: 30 }), tokens }), { maxLength: 3 }),
  turns: fc.array(turn, { maxLength: 5 }),
  learned: fc.option(fc.uint8Array({ minLength: 1, maxLength: 50 }), { nil: undefined }),
});
const request = fc.record({
  kind: fc.constant('request' as const),
  ...envelope,
  index: fc.boolean(),
  sessions: fc.boolean(),
});
const session = fc
  .tuple(
    turn,
    fc.record({
      ...{ turns: fc.nat(255), ageMs: count, peer: count, waits: fc.boolean(), forgotten: fc.boolean() },
      lapsedAfter: fc.option(fc.nat(65_535), { nil: undefined }),
    }),
  )
  .map(([told, state]) => ({ ...told, ...state }));
const sessions = fc.record({
  kind: fc.constant('sessions' as const),
  ...envelope,
  ...{ seedCheck: count, last: fc.boolean(), joined: fc.boolean(), sessions: fc.array(session, { maxLength: 5 }) },
});
const piece = fc.record({
  kind: fc.constant('piece' as const),
  ...envelope,
  sequence: number,
  number: count,
  last: fc.boolean(),
  endpoints: fc.array(word, { maxLength: 5 }),
  segments: fc.uint8Array({ maxLength: 100 }),
});
const ROW = { endpoint: 1n, requests: 1, tokens: 1, prefill: 1, prompt: 1, output: 1, pending: 1, held: 1, charged: 1 };
const TURN = {
  ...{ begins: true, endpoint: 1n, before: 1n, anchor: 2n, earlyAnchor: 3n, prefix: 4n, within: 5n },
  ...{ tokens: 9, shared: 5, withinTokens: 3 },
  named: false,
};
const STATE = { turns: 2, ageMs: 60_000, peer: 0, waits: false, forgotten: false, lapsedAfter: undefined };
/** An update with TURN as a replica that knows no later version than 5 has written it. */
const RECORDED = {
  ...{ kind: 'update' as const, replica: 'a', epoch: 1, serial: 2, sentAtMs: 3, to: '', sequence: 4, seedCheck: 5 },
  ...{ full: true, leaves: false, loads: [], placements: [], ejections: [], spendings: [], learned: undefined },
};
const WRITTEN_BY_VERSION_5 =
  '0500000161010200000000000008400004050100000000010f0100000000000000' +
  '0200000000000000010000000000000003000000000000000400000000000000090500';
const message: fc.Arbitrary<Message> = fc.oneof(update, request, piece, sessions);

describe('messages of replicas', () => {
  it('every message is read as it was written', () => {
    fc.assert(
      fc.property(message, (each) => {
        expect(decodeMessage(encodeMessage(each))).toEqual({ ...each, reads: VERSION });
      }),
    );
  });

  it('a message of the earlier version is read without what lies within what, and says that its sender reads more', () => {
    fc.assert(
      fc.property(message, (each) => {
        const bytes = encodeMessage(each, undefined, EARLIER_VERSION);
        expect(bytes[0]).toBe(EARLIER_VERSION);
        const told: Message =
          each.kind === 'update'
            ? { ...each, turns: unnested(each.turns) }
            : each.kind === 'sessions'
              ? { ...each, sessions: unnested(each.sessions) }
              : each;
        expect(decodeMessage(bytes)).toEqual({ ...told, reads: VERSION });
      }),
    );
  });

  it('a message that a replica of the earlier version has written is read, and is the one that is written for it', () => {
    const told = { ...TURN, within: 0n, withinTokens: 0 };
    const bytes = Buffer.from(WRITTEN_BY_VERSION_5, 'hex');
    expect(decodeMessage(bytes)).toEqual({ ...RECORDED, turns: [told], reads: EARLIER_VERSION });
    const written = encodeMessage({ ...RECORDED, turns: [TURN] }, undefined, EARLIER_VERSION);
    // That version looks at the lowest bit of the second byte alone.
    expect(written[1]! & 1).toBe(bytes[1]);
    expect(Buffer.from(written.subarray(2)).toString('hex')).toBe(bytes.subarray(2).toString('hex'));
  });

  it('the first byte is the version that docs/stability.md tells', () => {
    const [version] = encodeMessage(fc.sample(message, { numRuns: 1, seed: 1 })[0]!);
    expect(readFileSync('docs/stability.md', 'utf8')).toContain(`| messages between replicas | ${version}, the`);
  });

  it('a part of a message is refused, and so is a byte more', () => {
    fc.assert(
      fc.property(message, fc.nat(), (each, at) => {
        const bytes = encodeMessage(each);
        expect(() => decodeMessage(bytes.subarray(0, at % bytes.length))).toThrow(WireError);
        expect(() => decodeMessage(Uint8Array.of(...bytes, 0))).toThrow(WireError);
      }),
    );
  });

  it('arbitrary bytes are a message or a WireError, and take no more memory than they have', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(3), (bytes, kind) => {
        try {
          decodeMessage(Uint8Array.of(5 + (bytes.length & 1), 0, kind, ...bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }),
    );
  });

  it('a signed message is read with its key and refused with every other one, and without a signature', () => {
    const [key, other] = [messageKey('group', 'secret'), messageKey('other group', 'secret')];
    fc.assert(
      fc.property(message, (each) => {
        expect(decodeMessage(encodeMessage(each, key), key)).toEqual({ ...each, reads: VERSION });
        expect(decodeMessage(encodeMessage(each, key))).toEqual({ ...each, reads: VERSION });
        expect(() => decodeMessage(encodeMessage(each, other), key)).toThrow('signed with another key');
        expect(() => decodeMessage(encodeMessage(each), key)).toThrow('it is not signed');
      }),
    );
  });

  it('a signed message ends with the first half of its HMAC-SHA-256', () => {
    const key = createHash('sha256').update('pointsman messages of replicas\0group\0secret').digest();
    fc.assert(
      fc.property(message, (each) => {
        const bytes = encodeMessage(each, messageKey('group', 'secret'));
        const mac = createHmac('sha256', key).update(bytes.subarray(0, -16)).digest().subarray(0, 16);
        expect(Buffer.from(bytes.subarray(-16))).toEqual(mac);
      }),
    );
  });

  it('a signed message of which any byte is changed is refused', () => {
    const key = messageKey('group', 'secret');
    fc.assert(
      fc.property(message, fc.nat(), fc.integer({ min: 1, max: 255 }), (each, place, change) => {
        const bytes = encodeMessage(each, key);
        bytes[place % bytes.length]! ^= change;
        expect(() => decodeMessage(bytes, key)).toThrow(WireError);
      }),
    );
  });

  it.each([
    ['sentAtMs', { sentAtMs: Number.NaN }],
    ['sentAtMs', { sentAtMs: Number.POSITIVE_INFINITY }],
    ['sentAtMs', { sentAtMs: -1 }],
    ['epoch', { epoch: 9e15 }],
    ['tokens', { spendings: [{ tenant: 't', tokens: Number.POSITIVE_INFINITY }] }],
    ['tokens', { spendings: [{ tenant: 't', tokens: -1 }] }],
    ['requests', { loads: [{ ...ROW, requests: 2 ** 31 }] }],
    ['held', { loads: [{ ...ROW, held: 2 ** 40 }] }],
    ['tokens', { turns: [{ ...TURN, tokens: 2 ** 25 }] }],
  ])('a message whose %s cannot be is refused, and the reason names the field', (field, parts) => {
    const head = { replica: 'a', epoch: 1, serial: 1, sentAtMs: 1, to: '', kind: 'update' as const, sequence: 1 };
    const rest = { seedCheck: 1, full: false, leaves: false, loads: [], placements: [], ejections: [], spendings: [] };
    const bytes = encodeMessage({ ...head, ...rest, turns: [], learned: undefined, ...parts } as Message);
    expect(() => decodeMessage(bytes)).toThrow(new RegExp(`^${field} is .*(at most|must be from 0)`));
  });

  it.each([
    ['ageMs', { ageMs: 2 ** 31 }],
    ['peer', { peer: 2 ** 31 }],
    ['lapsedAfter', { lapsedAfter: 65_536 }],
  ])('a session whose %s cannot be is refused, and the reason names the field', (field, parts) => {
    const head = { replica: 'a', epoch: 1, serial: 1, sentAtMs: 1, to: 'b', kind: 'sessions' as const, seedCheck: 1 };
    const bytes = encodeMessage({ ...head, last: true, joined: true, sessions: [{ ...TURN, ...STATE, ...parts }] });
    expect(() => decodeMessage(bytes)).toThrow(new RegExp(`^${field} is .*at most`));
  });

  it('a piece of 256 sessions of 60,000 tokens takes less than 15 KiB', () => {
    const head = { replica: 'a', epoch: 1, serial: 1, sentAtMs: 1, to: 'b', kind: 'sessions' as const, seedCheck: 1 };
    const turn = { ...TURN, before: 0n, tokens: 60_000, shared: 15_000, withinTokens: 10_000 };
    const piece = Array.from({ length: 256 }, () => ({ ...turn, ...STATE }));
    expect(encodeMessage({ ...head, last: false, joined: true, sessions: piece }).length).toBeLessThan(15 * 1024);
  });

  it('a message of another version is refused with both versions', () => {
    expect(() => decodeMessage(Uint8Array.of(9))).toThrow('version 9 of the messages, and 5 or 6 is expected');
  });

  it('a turn that shares more than it has is refused', () => {
    const head = { replica: 'a', epoch: 1, serial: 1, sentAtMs: 1, to: '', kind: 'update' as const, sequence: 1 };
    const rest = { seedCheck: 1, full: false, leaves: false, loads: [], placements: [], ejections: [], spendings: [] };
    const turns = [{ ...TURN, shared: 10 }];
    const bytes = encodeMessage({ ...head, ...rest, turns, learned: undefined });
    expect(() => decodeMessage(bytes)).toThrow('shared is 10, and the turn has 9 tokens');
  });

  it.each([
    ['no shorter', { withinTokens: 5 }],
    ['empty', { withinTokens: 0 }],
  ])('a turn with a beginning within its own that is %s is refused', (_name, part) => {
    const bytes = encodeMessage({ ...RECORDED, turns: [{ ...TURN, ...part }] });
    expect(() => decodeMessage(bytes)).toThrow(`withinTokens is ${part.withinTokens}, and the turn shares 5 tokens`);
  });

  it('the begin and the end of a turn of 60,000 tokens take 68 bytes, and 10 more where a beginning lies within', () => {
    const head = { replica: 'a', epoch: 1, serial: 1, sentAtMs: 1, to: '', kind: 'update' as const, sequence: 1 };
    const rest = { seedCheck: 1, full: false, leaves: false, loads: [], placements: [], ejections: [], spendings: [] };
    const bytes = (turns: readonly (typeof TURN)[]) =>
      encodeMessage({ ...head, ...rest, turns, learned: undefined }).length;
    const nested = { ...TURN, tokens: 60_000, shared: 15_000, withinTokens: 10_000 };
    const begins = { ...nested, within: 0n, withinTokens: 0 };
    const ends = { ...begins, begins: false, before: 0n, earlyAnchor: 0n, prefix: 0n, tokens: 60_500 };
    expect(bytes([begins, ends]) - bytes([])).toBe(68);
    expect(bytes([nested, ends]) - bytes([])).toBe(78);
  });

  it('a charged and released request with a new prompt of 2,000 tokens takes less than 400 bytes', () => {
    const row = { endpoint: 2n ** 63n, requests: 3, tokens: 9_000, prefill: 4_000, prompt: 20_000, output: 90 };
    const more = { ...row, pending: 2, held: 30_000, charged: 1_000_000 };
    const hashes = new BigUint64Array(31).fill(2n ** 63n);
    const empty = { ejections: [], spendings: [], turns: [], learned: undefined, full: false, leaves: false };
    const sender = { replica: 'picker-5d8f7c-x2x4z', epoch: 1.8e12, serial: 1e6, to: '' };
    const head = { kind: 'update' as const, ...sender, sequence: 1e6 };
    const all = { ...head, ...empty, sentAtMs: 1.8e12, seedCheck: 2 ** 31, loads: [more] };
    const key = messageKey('group', 'secret');
    const placements = [{ endpoint: 2n ** 63n, parent: undefined, hashes, tail: undefined }];
    const charged = encodeMessage({ ...all, placements }, key);
    const released = encodeMessage({ ...all, placements: [] }, key);
    expect(charged.length + released.length).toBeLessThan(460);
    // One in each message is the dearest case: the head is sent once for all requests of 10 ms.
    expect(charged.length).toBeLessThan(400);
  });
});
