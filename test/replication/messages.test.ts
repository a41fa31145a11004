import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeMessage, encodeMessage, type Message } from '../../dist/replication/messages.js';
import { WireError } from '../../dist/replication/wire.js';

const count = fc.nat(2 ** 31 - 1);
const word = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const words = fc.array(word, { maxLength: 20 }).map((values) => BigUint64Array.from(values));
const epoch = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const replica = fc.string({ maxLength: 40, unit: 'grapheme' });
const tokens = fc.double({ noNaN: true, noDefaultInfinity: true });
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
const placement = fc.record({
  endpoint: word,
  parent: fc.option(word, { nil: undefined }),
  hashes: words,
  tail: fc.option(word, { nil: undefined }),
});
const update = fc.record({
  kind: fc.constant('update' as const),
  replica,
  epoch,
  sequence: epoch,
  sentAtMs: fc.double({ noNaN: true, noDefaultInfinity: true }),
  seedCheck: count,
  full: fc.boolean(),
  leaves: fc.boolean(),
  loads: fc.array(load, { maxLength: 5 }),
  placements: fc.array(placement, { maxLength: 5 }),
  ejections: fc.array(fc.record({ endpoint: word, out: fc.boolean() }), { maxLength: 3 }),
  spendings: fc.array(fc.record({ tenant: fc.string({ maxLength: 30 }), tokens }), { maxLength: 3 }),
  learned: fc.option(fc.uint8Array({ minLength: 1, maxLength: 50 }), { nil: undefined }),
});
const request = fc.record({ kind: fc.constant('request' as const), replica, epoch, index: fc.boolean() });
const piece = fc.record({
  kind: fc.constant('piece' as const),
  replica,
  epoch,
  sequence: epoch,
  number: count,
  last: fc.boolean(),
  endpoints: fc.array(word, { maxLength: 5 }),
  segments: fc.uint8Array({ maxLength: 100 }),
});
const message: fc.Arbitrary<Message> = fc.oneof(update, request, piece);

describe('messages of replicas', () => {
  it('every message is read as it was written', () => {
    fc.assert(
      fc.property(message, (each) => {
        expect(decodeMessage(encodeMessage(each))).toEqual(each);
      }),
    );
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
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(2), (bytes, kind) => {
        try {
          decodeMessage(Uint8Array.of(1, kind, ...bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }),
    );
  });

  it('a message of another version is refused with both versions', () => {
    expect(() => decodeMessage(Uint8Array.of(9))).toThrow('version 9 of the messages, and 2 is expected');
  });

  it('a charged and released request with a new prompt of 2,000 tokens takes less than 400 bytes', () => {
    const row = { endpoint: 2n ** 63n, requests: 3, tokens: 9_000, prefill: 4_000, prompt: 20_000, output: 90 };
    const more = { ...row, pending: 2, held: 30_000, charged: 1_000_000 };
    const hashes = new BigUint64Array(31).fill(2n ** 63n);
    const empty = { ejections: [], spendings: [], learned: undefined, full: false, leaves: false };
    const head = { kind: 'update' as const, replica: 'picker-5d8f7c-x2x4z', epoch: 1.8e12, sequence: 1e6 };
    const all = { ...head, ...empty, sentAtMs: 1.8e12, seedCheck: 2 ** 31, loads: [more] };
    const charged = encodeMessage({
      ...all,
      placements: [{ endpoint: 2n ** 63n, parent: undefined, hashes, tail: undefined }],
    });
    const released = encodeMessage({ ...all, placements: [] });
    expect(charged.length + released.length).toBeLessThan(450);
    // One in each message is the dearest case: the head is sent once for all requests of 10 ms.
    expect(charged.length).toBeLessThan(400);
  });
});
