import { describe, expect, it } from 'vitest';
import { IndexAge } from '../../dist/src/core/index-age.js';
import { chain, insert, match, openPool, run } from './index-pool.ts';

describe('the age of the prefix index', () => {
  it('the age of the prefix index counts from the reading before its least recently used blocks', () => {
    const { core, index } = openPool();
    const age = new IndexAge(core, 0);
    expect(age.read(1_000)).toBeUndefined();
    insert(index, 0, chain(...run(0, 10)));
    expect(age.read(2_000)).toBe(1_000);
    insert(index, 1, chain(...run(500, 10)));
    expect(age.read(10_000)).toBe(9_000);
    match(index, chain(...run(0, 10)));
    expect(age.read(20_000)).toBe(18_000);
  });

  it('the age of the prefix index stays when nothing uses it, however often it is read', () => {
    const { core, index } = openPool();
    const age = new IndexAge(core, 0);
    insert(index, 0, chain(...run(0, 10)));
    for (let at = 1; at <= 1_000; at++) expect(age.read(at * 1_000)).toBe(at * 1_000);
  });

  it('the age of the prefix index ends with its last endpoint', () => {
    const { core, index } = openPool();
    const age = new IndexAge(core, 0);
    insert(index, 0, chain(...run(0, 10)));
    index.removeEndpoint(0);
    expect(age.read(1_000)).toBeUndefined();
  });
});
