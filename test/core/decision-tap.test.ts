import { describe, expect, it } from 'vitest';
import { FRAME, FRAME_HEAD_BYTES, FRAME_TAIL_BYTES } from '../../dist/src/contract/recorded-frames.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { DecisionTap } from '../../dist/src/core/decision-tap.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.ts';

interface Frame {
  readonly kind: number;
  readonly payload: Buffer;
}

function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; ) {
    const begin = at + FRAME_HEAD_BYTES;
    const end = begin + bytes.readUInt32LE(at);
    frames.push({ kind: bytes.readUInt8(at + 4), payload: bytes.subarray(begin, end) });
    at = end + FRAME_TAIL_BYTES;
  }
  return frames;
}

/** A pool of three endpoints, whose shard records its decisions. */
function recorded(bytesMax = 1e6) {
  const pool = makePool([scorer('OP_SCORE_QUEUE'), pickMax], [{ waiting: 4 }, { waiting: 4 }, { waiting: 1 }]);
  const tap = new DecisionTap(pool.core, 0);
  const taken: Buffer[] = [];
  tap.start({ bytesMax, take: (frames) => taken.push(Buffer.from(frames)) });
  const random = (pool.core.call.requestAddress() >>> 0) + CORE.REQUEST_RANDOM;
  const randomNow = () => Buffer.from(pool.core.bytes.slice(random, random + CORE.REQUEST_RANDOM_BYTES));
  const decide = (request: Partial<typeof plainRequest> & { readonly earlier?: number }) => {
    tap.before();
    const given = { ...plainRequest, ...request };
    const decision = pool.decider.decide(given);
    tap.after(given, decision);
    return decision;
  };
  const stop = () => {
    const counts = tap.stop();
    return { counts, frames: framesOf(Buffer.concat(taken)) };
  };
  return { ...pool, tap, decide, stop, randomNow };
}

describe('the recording of a thread', () => {
  it('the recording of a thread has what a decision was asked, at the offsets of docs/reference/recording.md', () => {
    const shard = recorded();
    const random = shard.randomNow();
    const asked = { nowMs: 1_234.5, promptTokens: 700, outputTokens: 30, priority: -3, earlier: 1 };
    const { score, record } = shard.decide(asked);
    const [{ kind, payload } = { kind: -1, payload: Buffer.alloc(0) }] = shard.stop().frames;
    const word = (offset: number) => payload.readUInt32LE(offset);
    expect([kind, payload.readDoubleLE(0), word(8), word(12)]).toEqual([FRAME.decision, 1_234.5, 1, record]);
    expect([word(16), word(24), word(28), word(32), payload.readInt32LE(36)]).toEqual([0, 0, 700, 30, -3]);
    // The slot of the earlier pick, + 1.
    expect([word(40), word(44)]).toEqual([64, 2]);
    expect([random.some((byte) => byte !== 0), payload.subarray(64, 80)]).toEqual([true, random]);
    expect([payload.readFloatLE(80), word(84)]).toEqual([score, 4]);
    // One pick, no keys, no hashes.
    expect([word(88), word(92), word(96), word(104)]).toEqual([1, 0, 0, 2]);
    expect(payload.length).toBe(104 + 4 + 8 * word(100));
  });

  it('the recording of a thread says 0 for a request without an earlier pick', () => {
    const shard = recorded();
    shard.decide({});
    expect(shard.stop().frames[0]!.payload.readUInt32LE(44)).toBe(0);
  });

  it('the recording of a thread has of later decisions only the cells that have changed', () => {
    const shard = recorded();
    for (let i = 0; i < 2; i++) shard.decide({ nowMs: 5 });
    const [first, second] = shard.stop().frames.map(({ payload }) => payload.readUInt32LE(100));
    expect(first).toBeGreaterThan(0);
    expect(second).toBeLessThan(first!);
  });

  it('the recording of a thread leaves out decisions without a pick, and what its bound has no room for', () => {
    const shard = recorded();
    shard.decide({ subset: [] });
    expect(shard.stop()).toEqual({ counts: { decisions: 0, dropped: 0 }, frames: [] });
    const bounded = recorded(40);
    for (let i = 0; i < 3; i++) bounded.decide({});
    expect(bounded.stop()).toEqual({ counts: { decisions: 0, dropped: 3 }, frames: [] });
  });

  it('the recording of a thread has the end of a request', () => {
    const shard = recorded();
    const measures = { outcome: 'completed', firstOutputMs: undefined, perTokenMs: 2.5, durationMs: 60 } as const;
    shard.tap.ended(9, { ...measures, outputTokens: 12, promptTokens: undefined, cachedTokens: 64 });
    const [{ kind, payload } = { kind: -1, payload: Buffer.alloc(0) }] = shard.stop().frames;
    const words = [0, 4, 12, 16, 20].map((offset) => payload.readUInt32LE(offset));
    const times = [24, 28, 32].map((offset) => payload.readFloatLE(offset));
    expect([kind, words, times]).toEqual([FRAME.end, [1, 9, 12, 0xffff_ffff, 64], [Number.NaN, 2.5, 60]]);
  });
});
