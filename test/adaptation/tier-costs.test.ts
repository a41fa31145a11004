import { describe, expect, it } from 'vitest';
import { CostModel } from '../../dist/src/adaptation/cost-model.js';
import type { TierPricing } from '../../dist/src/adaptation/tier-costs.js';
import type { TrainingSample } from '../../dist/src/core/index.js';
import { row, sample, usual } from './samples.ts';

const PRICES = { host: 0.2, disk: 0.5, remote: 0.5 };

/** What a request on an idle endpoint takes: 40 ms, 30 ms for 1,000 computed tokens, and its loading. */
function timeOf(computed: number, host: number, hostPrice: number): number {
  return 40 + (30 * (computed + host * hostPrice)) / 1000;
}

/**
 * A model after requests of which every second one finds most of its prompt in the host's memory.
 * @param more how the engine reports a request with so many tokens held
 */
function taught(hostPrice: number, pricing: TierPricing, more: (held: number) => Partial<TrainingSample> = () => ({})) {
  const model = new CostModel(usual.model, pricing);
  model.meet([{ slot: 0, generation: 1, hardware: '' }]);
  const random = row(3);
  for (let i = 0; i < 3000; i++) {
    const promptTokens = 2000 + Math.floor(random() * 6000);
    const hostTokens = i % 2 === 0 ? 0 : Math.floor(promptTokens * (0.5 + random() * 0.4));
    const computed = promptTokens - hostTokens;
    const firstOutputMs = timeOf(computed, hostTokens, hostPrice) * (0.9 + 0.2 * random());
    const uncachedTokens = computed + pricing.prices.host * hostTokens;
    const asked = { timeMs: i * 100, promptTokens, uncachedTokens, hostTokens, firstOutputMs };
    model.learn(sample({ ...asked, ...more(hostTokens), reportedPromptTokens: promptTokens }));
  }
  return model;
}

describe('the price of a tier', () => {
  it.each([0.6, 0.05])(
    'the price of a tier is learned from times to the first output, where the configured one is not %d',
    (price) => {
      const model = taught(price, { prices: PRICES, given: [] });
      expect(model.tiers.prices.host).toBeGreaterThan(price - 0.06);
      expect(model.tiers.prices.host).toBeLessThan(price + 0.06);
      expect(model.tiers.prices).toMatchObject({ disk: 0.5, remote: 0.5 });
      expect(Math.abs(model.coefficients.prefillMsPerKiloToken / 30 - 1)).toBeLessThan(0.1);
    },
  );

  it('the price of a tier is learned where the engine counts what it loads as cached', () => {
    const { tiers } = taught(0.6, { prices: PRICES, given: [] }, (held) => ({ cachedTokens: held }));
    expect(Math.abs(tiers.prices.host - 0.6)).toBeLessThan(0.06);
  });

  it('the price of a tier that the configuration gives stays', () => {
    const { tiers } = taught(0.6, { prices: PRICES, given: ['host'] });
    expect(tiers.prices).toEqual(PRICES);
  });

  it('the price of a tier is the configured one again after a reset', () => {
    const model = taught(0.6, { prices: PRICES, given: [] });
    model.reset();
    expect(model.tiers.prices).toEqual(PRICES);
  });

  it('the price of a tier does not move without requests that load', () => {
    const model = new CostModel(usual.model, { prices: PRICES, given: [] });
    for (let i = 0; i < 100; i++) model.learn(sample({ timeMs: i, firstOutputMs: 900 }));
    expect(model.tiers.prices).toEqual(PRICES);
  });
});
