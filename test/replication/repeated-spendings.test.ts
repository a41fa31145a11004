import { expect, test } from 'vitest';
import { encodeMessage } from '../../dist/src/replication/messages.js';
import type { ReplicatedPool } from '../../dist/src/replication/replicated-pool.js';
import { HeardPool, replicaAt, updateOf } from './replicator-parts.ts';

/** A pool whose only tenant has used 100 tokens, which it tells once, and again when asked for all. */
class SpendingPool extends HeardPool {
  #told = false;
  override spendings: ReplicatedPool['spendings'] = (all) => {
    if (this.#told && !all) return [];
    this.#told = true;
    return [{ tenant: 'a', tokens: 100 }];
  };
}

test('the spending of a tenant is told again once a second, as the message that told it may have been lost', () => {
  const pool = new SpendingPool();
  const { replicator, clock } = replicaAt({ pool });
  const asked: boolean[] = [];
  const spendings = pool.spendings;
  pool.spendings = (all) => {
    asked.push(all);
    return spendings(all);
  };
  for (let ms = 0; ms < 3_000; ms += 100) {
    clock.ms += 100;
    replicator.tick(clock.ms);
  }
  const again = asked.filter(Boolean).length;
  expect(again).toBeGreaterThanOrEqual(2);
  expect(again).toBeLessThanOrEqual(4);
});

test('the spending of a tenant that is told again is charged once', () => {
  const { replicator, pool, clock } = replicaAt();
  for (const sequence of [1, 2, 3]) {
    const update = updateOf('peer', sequence, clock.ms, { spendings: [{ tenant: 'a', tokens: 100 }] });
    replicator.receive(encodeMessage(update), clock.ms);
  }
  expect(pool.spent).toEqual([{ tenant: 'a', tokens: 100 }]);
});
