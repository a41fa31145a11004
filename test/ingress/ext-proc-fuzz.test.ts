import { expect, it } from 'vitest';
import { ExtProcScripts } from './ext-proc-scripts.ts';

/** Of one run; `npm run fuzz -- ext-proc` goes on for as long as is wanted. */
const SCRIPTS = 3_000;

it('a shard gives everything back and answers once at most, whatever proxies say in whatever order', async () => {
  const scripts = new ExtProcScripts();
  const found: string[] = [];
  for (let seed = 1; seed <= SCRIPTS; seed++) {
    const problem = await scripts.play(seed);
    if (problem !== undefined) found.push(`seed ${seed}: ${problem}`);
  }
  expect(found).toEqual([]);
  expect(scripts.kinds.size).toBe(7);
}, 120_000);
