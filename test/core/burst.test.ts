import { describe, expect, it } from 'vitest';
import { defaultAdaptation } from '../../dist/src/config/adaptation.js';
import type { Coefficients } from '../../dist/src/core/index.js';
import { type BurstOptions, runBurst } from './burst-scenario.ts';
import { pickMax, scorer } from './pool.ts';

const { prior, ...targets } = defaultAdaptation().model;
/** What is assumed until something has been learned. */
const assumed: Coefficients = { ...prior, ...targets, evictionPrice: 1 };
const learned = { operations: [scorer('OP_SCORE_MARGINAL_COST'), pickMax], coefficients: assumed };
const configured = {
  operations: [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 2), scorer('OP_SCORE_PREFIX', 3), pickMax],
};
const SEEDS = Array.from({ length: 5 }, (_, i) => i + 1);

function overSeeds(options: Omit<BurstOptions, 'seed'>) {
  const results = SEEDS.map((seed) => runBurst({ ...options, seed }));
  const imbalances = results.map(({ imbalance }) => imbalance).sort((a, b) => a - b);
  return { worst: imbalances.at(-1)!, median: imbalances[2]!, kept: Math.min(...results.map(({ kept }) => kept)) };
}

describe('a burst of 1,000 requests with 16 system prompts over 8 idle endpoints, conversations among them', () => {
  for (const shards of [1, 4]) {
    it(`a burst of 1,000 requests with 16 system prompts ends within 15 % by learned costs, with ${shards} shards`, () => {
      const { worst, kept } = overSeeds({ ...learned, shards, order: 'in turn' });
      expect(worst).toBeLessThanOrEqual(1.15);
      expect(kept).toBe(1);
    });
  }

  it('a burst of 1,000 requests with 16 system prompts is spread more evenly by learned costs than by the default weights', () => {
    const byCosts = overSeeds({ ...learned, shards: 2, order: 'drawn' });
    const byWeights = overSeeds({ ...configured, shards: 2, order: 'drawn' });
    expect(byCosts.median).toBeLessThanOrEqual(1.25);
    expect(byCosts.worst).toBeLessThanOrEqual(1.5);
    expect(byWeights.median).toBeGreaterThan(2);
    expect([byCosts.kept, byWeights.kept]).toEqual([1, 1]);
  });
});
