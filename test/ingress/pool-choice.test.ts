import { describe, expect, it } from 'vitest';
import { PoolChoice } from '../../dist/src/ingress/pool-choice.js';

const context = (bytes: number) => ({ services: { blockBytes: () => bytes } });

describe('the choice of a pool', () => {
  it('the choice of a pool reads bodies in the blocks of most pools that models choose', () => {
    const choice = new PoolChoice();
    expect(choice.blockBytes).toBeUndefined();
    const removed = context(256);
    choice.add({ name: 'a', models: ['a'] }, context(64));
    choice.add({ name: 'b', models: ['b'] }, context(256));
    choice.add({ name: 'c', models: ['c'] }, removed);
    for (const name of ['d', 'e', 'f']) choice.add({ name, models: [] }, context(1_024));
    expect(choice.blockBytes).toBe(256);
    choice.add({ name: 'b', models: [] }, context(256));
    choice.remove('c', removed);
    expect(choice.blockBytes).toBe(64);
  });
});
