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

  it('the choice of a pool reads the model of a request where a pool has models, whole or as beginnings', () => {
    const choice = new PoolChoice();
    const one = context(64);
    choice.add({ name: 'a', models: [] }, one);
    expect(choice.readsModels).toBe(false);
    choice.add({ name: 'b', models: ['m', 'n-*'] }, one);
    expect(choice.readsModels).toBe(true);
    expect(['m', 'n-1'].map((model) => choice.ofModel(model))).toEqual([one, one]);
    expect(choice.ofModel('other')).toMatchObject({ kind: 'rejected' });
  });

  it('the choice of a pool looks for a model only on paths whose requests name one beside a prompt', () => {
    const choice = new PoolChoice();
    expect(choice.dialectOf('/v1/chat/completions')?.namesModel).toBe(true);
    for (const path of ['/generate', '/metrics']) expect(choice.dialectOf(path)).toBeUndefined();
  });
});
