import { describe, expect, it } from 'vitest';
import {
  decodeMessage,
  EARLIER_VERSION,
  encodeMessage,
  type MessageVersion,
  type TurnNews,
  VERSION,
} from '../../dist/src/replication/messages.js';
import { replicaAt, START_MS, updateOf } from './replicator-parts.ts';

function turnOf(anchor: bigint): TurnNews {
  return {
    begins: true,
    endpoint: 1n,
    before: 0n,
    anchor,
    earlyAnchor: 0n,
    prefix: 0n,
    within: 0n,
    tokens: 100,
    shared: 0,
    withinTokens: 0,
    named: false,
  };
}

describe('turns of sessions between replicas', () => {
  it('turns go out with the next update, in their order', () => {
    const { replicator, pool, link } = replicaAt();
    replicator.connected(1_000);
    pool.own.push(turnOf(7n), turnOf(8n));
    replicator.tick(1_005);
    const message = decodeMessage(link.sent.at(-1)!);
    expect(message.kind === 'update' && message.turns.map(({ anchor }) => anchor)).toEqual([7n, 8n]);
    pool.own.push(turnOf(9n));
    replicator.tick(1_010);
    const next = decodeMessage(link.sent.at(-1)!);
    expect(next.kind === 'update' && next.turns.map(({ anchor }) => anchor)).toEqual([9n]);
  });

  it('a beginning within another is told once all live replicas read it, and until then in messages of before', () => {
    const { replicator, pool, link, clock } = replicaAt();
    const nested = { ...turnOf(7n), shared: 50, within: 8n, withinTokens: 20 };
    const told = () => {
      clock.ms += 100;
      pool.own.push(nested);
      replicator.tick(clock.ms);
      const messages = link.sent.splice(0).map((bytes) => [bytes[0], decodeMessage(bytes)] as const);
      return messages.flatMap(([version, message]) =>
        message.kind === 'update' ? message.turns.map(({ withinTokens }) => [version, withinTokens]) : [],
      )[0];
    };
    const hear = (name: string, sequence: number, version: MessageVersion, isEarlier = false) => {
      const bytes = encodeMessage(updateOf(name, sequence, clock.ms, { full: true }), undefined, version);
      // A replica of before sets no bit but that of a signature.
      if (isEarlier) bytes[1] = 0;
      replicator.receive(bytes, clock.ms);
    };
    replicator.connected(clock.ms);
    expect(told()).toEqual([EARLIER_VERSION, 0]);
    hear('a', 1, EARLIER_VERSION);
    expect(told()).toEqual([VERSION, 20]);
    hear('b', 1, EARLIER_VERSION, true);
    expect(told()).toEqual([EARLIER_VERSION, 0]);
    for (let sequence = 2; sequence < 12; sequence++) {
      told();
      hear('a', sequence, VERSION);
    }
    expect(told()).toEqual([VERSION, 20]);
  });

  it('turns of a peer are taken with its name', () => {
    const { replicator, pool, clock } = replicaAt();
    replicator.receive(encodeMessage(updateOf('a', 1, clock.ms, { full: true, turns: [turnOf(7n)] })), clock.ms);
    expect(pool.turnsHeard).toEqual([['a', 7n]]);
  });

  it('turns with hashes of another seed are passed over', () => {
    const { replicator, pool, clock } = replicaAt();
    const turns = { full: true, seedCheck: 8, turns: [turnOf(7n)] };
    replicator.receive(encodeMessage(updateOf('a', 1, clock.ms, turns)), clock.ms);
    expect(pool.turnsHeard).toEqual([]);
  });

  it('the turns of a peer are forgotten when an update of it is missing, when it leaves and when it is silent', () => {
    const { replicator, pool, clock } = replicaAt();
    const hear = (sequence: number, leaves = false) => {
      clock.ms += 5;
      replicator.receive(encodeMessage(updateOf('a', sequence, clock.ms, { full: true, leaves })), clock.ms);
      return pool.forgotten.splice(0);
    };
    expect(hear(1)).toEqual(['a']);
    expect(hear(2)).toEqual([]);
    expect(hear(4)).toEqual(['a']);
    expect(hear(5, true)).toEqual(['a']);
    expect(hear(6)).toEqual(['a']);
    clock.ms += 2_000;
    replicator.tick(clock.ms);
    expect(pool.forgotten).toEqual(['a']);
  });

  it('the turns of a restarted replica stay when its earlier process is silent, and no line calls it silent', () => {
    const { replicator, pool, clock, log } = replicaAt();
    const hear = (sequence: number, epoch: number) =>
      replicator.receive(encodeMessage(updateOf('a', sequence, clock.ms, { full: true, epoch })), clock.ms);
    hear(1, START_MS);
    clock.ms += 500;
    hear(1, START_MS + 400);
    pool.forgotten.splice(0);
    clock.ms += 150;
    hear(2, START_MS + 400);
    clock.ms += 100;
    replicator.tick(clock.ms);
    expect(pool.forgotten).toEqual([]);
    expect(log).not.toContainEqual(expect.stringContaining('silent'));
  });

  it('turns that were lost before they were read leave a gap', () => {
    const { replicator, pool, link } = replicaAt();
    replicator.connected(1_000);
    const sequenceOf = () => {
      const message = decodeMessage(link.sent.at(-1)!);
      return message.kind === 'update' ? message.sequence : 0;
    };
    const before = sequenceOf();
    pool.turns = () => 3;
    pool.own.push(turnOf(7n));
    replicator.tick(1_300);
    expect(sequenceOf()).toBe(before + 2);
    expect(replicator.counts.lostTurns).toBe(3);
  });
});
