import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compare, leanPeer, nodePeer, type Peer } from './differential.ts';
import { randomScript } from './script-generator.ts';

/** Of one run; `npm run fuzz -- http2` goes on for as long as is wanted. */
const SCRIPTS = 400;
/** First seed; every run plays the same scripts. */
const SEED = 1;
/**
 * Scripts with several flaws, of which one side forgives the first: a bad PRIORITY, the end of a stream, GOAWAYs, a cut
 * header block.
 */
const FORGIVEN_SEEDS = [20_265_079, 20_269_053, 20_270_607, 20_272_313, 20_009_181];

describe('the lean transport and node:http2', () => {
  let lean: Peer;
  let node: Peer;
  beforeAll(async () => {
    [lean, node] = await Promise.all([leanPeer(), nodePeer()]);
  });
  afterAll(async () => {
    await Promise.all([lean.close(), node.close()]);
  });

  const differences = async (flawed: boolean): Promise<string[]> => {
    const found: string[] = [];
    for (let seed = SEED; seed < SEED + SCRIPTS; seed++) {
      const difference = await compare(lean, node, randomScript(seed, flawed));
      if (difference !== undefined) found.push(`seed ${seed}: ${difference}`);
    }
    return found;
  };

  it('the lean transport and node:http2 hear and answer the same of clients that keep to the protocol', async () => {
    expect(await differences(false)).toEqual([]);
  }, 120_000);

  it.each(FORGIVEN_SEEDS)('a named difference explains what comes behind it (seed %i)', async (seed) => {
    expect(await compare(lean, node, randomScript(seed, true))).toBe(undefined);
  });

  it('the lean transport and node:http2 end the same streams and connections, but for named differences', async () => {
    expect(await differences(true)).toEqual([]);
  }, 120_000);
});
