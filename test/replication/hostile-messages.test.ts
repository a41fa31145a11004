import { describe, expect, it } from 'vitest';
import { encodeMessage } from '../../dist/replication/messages.js';
import { PEERS_MAX } from '../../dist/replication/peer-view.js';
import { replicaAt, updateOf } from './replicator-parts.ts';

const ENDPOINT = 7n;
const LOAD = { requests: 5, tokens: 9, prefill: 0, prompt: 0, output: 0, pending: 0, held: 0, charged: 5 };

/** A replica that hears one live peer with five requests. */
function withPeer() {
  const parts = replicaAt();
  const { replicator, clock } = parts;
  let sequence = 0;
  const say = () => {
    const loads = [{ endpoint: ENDPOINT, ...LOAD }];
    const bytes = encodeMessage(updateOf('peer', ++sequence, clock.ms, { full: true, loads }));
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
    const bytes = encodeMessage({ ...updateOf('peer', 2, 0), sentAtMs } as ReturnType<typeof updateOf>);
    replicator.receive(bytes, clock.ms);
    pass(1_000);
    expect(live()).toEqual(['peer']);
    expect(pool.peerLoads.get(ENDPOINT)).toBe(5);
    expect(replicator.counts.badMessages).toBe(1);
  });

  it('messages that cannot be read leave one line a minute, with their number', () => {
    const { replicator, log, clock } = replicaAt();
    for (let i = 0; i < 1_000; i++) replicator.receive(Uint8Array.of(9), clock.ms);
    expect(log).toEqual([expect.stringMatching(/^a message cannot be read: version 9 .* \{"count":1\}$/)]);
    clock.ms += 60_000;
    replicator.receive(Uint8Array.of(9), clock.ms);
    expect(log).toHaveLength(2);
    expect(log[1]).toContain('{"count":1000}');
    expect(replicator.counts.badMessages).toBe(1_001);
  });

  it('invented names take the place of no live replica, and give way to one that comes later', () => {
    const { replicator, clock, log, pass, live } = withPeer();
    const invent = (i: number) => replicator.receive(encodeMessage(updateOf(`invented ${i}`, 1, clock.ms)), clock.ms);
    for (let i = 0; i < 2 * PEERS_MAX; i++) invent(i);
    expect(live()).toHaveLength(PEERS_MAX);
    expect(live()).toContain('peer');
    expect(log.filter((line) => line.startsWith('more than 64 other replicas are heard'))).toHaveLength(1);
    pass(1_000);
    replicator.receive(encodeMessage(updateOf('late', 1, clock.ms)), clock.ms);
    expect(live().sort()).toEqual(['late', 'peer']);
  });
});
