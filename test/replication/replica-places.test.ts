import { describe, expect, it } from 'vitest';
import { encodeMessage } from '../../dist/src/replication/messages.js';
import { SILENCE_MS } from '../../dist/src/replication/peer-view.js';
import { replicaAt, updateOf } from './replicator-parts.ts';

describe('the place of a replica among its peers', () => {
  it('the pool is told its place when a peer comes, and when another one takes the place of a silent one', () => {
    const { replicator, pool, clock } = replicaAt({ replica: 'm' });
    const hear = (replica: string, sequence: number) =>
      replicator.receive(encodeMessage(updateOf(replica, sequence, clock.ms, { full: true })), clock.ms);
    replicator.connected(clock.ms);
    replicator.tick(clock.ms);
    hear('a', 1);
    hear('z', 1);
    expect(pool.places).toEqual([
      [0, 1],
      [1, 2],
      [1, 3],
    ]);
    clock.ms += SILENCE_MS;
    hear('z', 2);
    clock.ms += 1;
    replicator.tick(clock.ms);
    expect(pool.places.at(-1)).toEqual([0, 2]);
  });
});
