import { describe, expect, it } from 'vitest';
import { effectiveWeights, shownAdaptation } from '../../dist/src/adaptation/adaptation-report.js';
import { Adapter, type Drive } from '../../dist/src/adaptation/adapter.js';
import type { Transition } from '../../dist/src/adaptation/guard.js';
import type { AdaptationSettings } from '../../dist/src/config/adaptation.js';
import type { TierPrices } from '../../dist/src/contract/block-place.js';
import type { Coefficients, CostTerm, HardwareCoefficients, TrainingSample } from '../../dist/src/core/index.js';
import { measured, row, sample, usual, type World } from './samples.ts';

const world: World = { baseMs: 40, prefillMs: 30, stepMs: 20, growthMs: 6, noise: 0.15 };

/** An adapter over samples that a test hands in, and whatever it writes. */
function adapting(settings: Partial<AdaptationSettings> = {}) {
  const waiting: TrainingSample[] = [];
  const written: Coefficients[] = [];
  const endpoints = new Map<
    number,
    { generation: number; speed: number; reliability: number; own: HardwareCoefficients | undefined }
  >();
  const drives: Drive[] = [];
  const transitions: Transition[] = [];
  const shares = { samples: 0, sums: { context: 0, queue: 0, waiting: 0, decode: 0, capacity: 0 } };
  const sums = {
    samples: 0,
    products: [
      [0, 0],
      [0, 0],
    ],
    costs: [0, 0],
  };
  const state = { overloaded: false };
  const tokens = { computed: 0, evicted: 0 };
  const tierPrices: TierPrices[] = [];
  const adapter = new Adapter({
    settings: { ...usual, ...settings },
    samples: {
      lost: 3,
      drain(visit, limit = Number.POSITIVE_INFINITY, every = 1) {
        const taken = waiting.splice(0, limit * every).filter((_, i) => i % every === 0);
        for (const each of taken) visit(each);
        return taken.length;
      },
    },
    computed: () => ({ ...tokens }),
    coefficients: {
      write: (given) => written.push(given) > 0,
      writeEndpoint(slot, generation, speed, reliability, own) {
        endpoints.set(slot, { generation, speed, reliability, own });
        return true;
      },
      shares: () => structuredClone(shares),
      projection: () => structuredClone(sums),
    },
    drive: (drive) => drives.push(drive),
    overloaded: () => state.overloaded,
    changed: (transition) => transitions.push(transition),
    random: row(3),
    projected: [2, 3],
    rules: ['configured', 'other', 'third'],
    tiers: { prices: { host: 0.2, disk: 0.5, remote: 0.5 }, given: [], set: (prices) => tierPrices.push(prices) },
  });
  adapter.start(0);
  return { adapter, waiting, written, endpoints, drives, transitions, shares, sums, state, tokens, tierPrices };
}

type Adapting = ReturnType<typeof adapting>;

/** `minutes` of ten requests a second, as the arm that drives gets them. */
function live(all: Adapting, minutes: number, truth: (arm: Drive['arm']) => World, fromMs = 0, seed = 1): number {
  const random = row(seed);
  const end = fromMs + minutes * 60_000;
  for (let nowMs = fromMs + 250; nowMs <= end; nowMs += 250) {
    const { arm, tag } = all.adapter.drive;
    for (let i = 0; i < 3; i++) {
      const made = measured(truth(arm), random, { tag });
      all.waiting.push({ ...made, timeMs: nowMs - 100 });
    }
    all.adapter.tick(nowMs);
  }
  return end;
}

describe('the price of a miss', () => {
  it('the price of a miss rises with the odds that what it evicts returns', () => {
    const { adapter, tokens, written } = adapting();
    tokens.computed = 8_000;
    adapter.tick(1_000);
    expect(written.at(-1)!.evictionPrice).toBe(1);
    tokens.computed = 16_000;
    tokens.evicted = 4_000;
    adapter.tick(2_000);
    const { returnOdds, coefficients } = adapter.report();
    expect(returnOdds).toBeCloseTo(0.25, 2);
    expect(coefficients.evictionPrice).toBeCloseTo(1 / (1 - returnOdds), 9);
    expect(written.at(-1)).toEqual(coefficients);
  });
});

describe('prices of tiers', () => {
  /** Prices that decide, after requests whose blocks in the host's memory take as long as their computation. */
  function pricesAfter(mode: AdaptationSettings['mode']) {
    const all = adapting({ mode });
    all.adapter.model.meet([{ slot: 0, generation: 1, hardware: '' }]);
    for (let i = 1; i <= 40; i++) {
      const held = { promptTokens: 9000, uncachedTokens: 2600, hostTokens: 8000 };
      all.waiting.push(sample({ ...held, tag: all.adapter.drive.tag, timeMs: i * 1000, firstOutputMs: 520 }));
      all.adapter.tick(i * 1000);
    }
    return { decide: all.tierPrices.at(-1)!, shown: all.adapter.report().tierPrices! };
  }

  it('prices of tiers are those learned while learned costs decide', () => {
    const { decide, shown } = pricesAfter('always');
    expect(decide.host).toBeGreaterThan(0.4);
    expect(shown).toEqual(decide);
  });

  it('prices of tiers are those configured while learned costs are only shown', () => {
    const { decide, shown } = pricesAfter('shadow');
    expect(decide).toEqual({ host: 0.2, disk: 0.5, remote: 0.5 });
    expect(shown.host).toBeGreaterThan(0.4);
  });
});

describe('the adapter', () => {
  it('the adapter begins with what is assumed and the configured weights in charge', () => {
    const { written, drives } = adapting();
    expect(written).toMatchObject([{ prefillMsPerKiloToken: 55, stepMs: 13 }]);
    expect(drives).toEqual([{ arm: 'static', tag: 1 }]);
  });

  it('the adapter writes what it has learned, and how slow each endpoint is, once a second', () => {
    const all = adapting();
    live(all, 3, () => ({ ...world, speeds: { 1: 2 } }));
    expect(all.written.length).toBe(181);
    expect(all.written.at(-1)!.prefillMsPerKiloToken).toBeGreaterThan(25);
    expect(all.written.at(-1)!.prefillMsPerKiloToken).toBeLessThan(45);
    expect([...all.endpoints.keys()].sort()).toEqual([0, 1, 2, 3]);
    expect(all.endpoints.get(1)!.speed).toBeGreaterThan(1.5);
  });

  it('the adapter writes the coefficients of the hardware class of each endpoint, and reports them', () => {
    const all = adapting();
    const kinds = ['a', 'b', 'a', 'b'];
    all.adapter.model.meet(kinds.map((hardware, slot) => ({ slot, generation: 1, hardware })));
    live(all, 3, () => ({ ...world, speeds: { 1: 2, 3: 2 } }));
    const [first, second] = [all.endpoints.get(0)!, all.endpoints.get(1)!];
    expect(second.own!.prefillMsPerKiloToken / first.own!.prefillMsPerKiloToken).toBeGreaterThan(1.5);
    expect([first.speed, second.speed]).toEqual([1, 1]);
    const { classes } = all.adapter.report();
    expect(classes.map(({ hardware }) => hardware)).toEqual(['a', 'b']);
    expect(classes[1]!.coefficients).toEqual(second.own);
    all.adapter.model.meet([{ slot: 0, generation: 1, hardware: 'a' }]);
    live(all, 0.1, () => world, 180_000);
    expect(all.endpoints.get(0)!.own).toBeUndefined();
  });

  it('the adapter learns from one in so many of the samples when more than 1,000 come in a tick', () => {
    const all = adapting();
    const random = row(1);
    const tick = (nowMs: number, samples: number) => {
      for (let i = 0; i < samples; i++) all.waiting.push({ ...measured(world, random, { tag: 1 }), timeMs: nowMs });
      const { learned, ignored } = all.adapter.report().samples;
      all.adapter.tick(nowMs);
      const after = all.adapter.report().samples;
      return [after.learned - learned, after.ignored - ignored];
    };
    expect([tick(250, 3_500), tick(500, 3_600), tick(750, 40), tick(1_000, 40)]).toEqual([
      [3_500, 0],
      [900, 2_700],
      [10, 30],
      [40, 0],
    ]);
  });

  it('the adapter only looks on in mode shadow, however good its predictions are', () => {
    const all = adapting();
    live(all, 20, () => world);
    expect(all.adapter.report()).toMatchObject({ mode: 'shadow', state: 'shadow', arm: 'static' });
    expect(all.adapter.report().fit.correlation).toBeGreaterThan(0.9);
    expect(all.drives).toHaveLength(1);
  });

  it('the adapter drives in mode auto when it is better, and says so', () => {
    const all = adapting({ mode: 'auto' });
    const better = { ...world, baseMs: 30, prefillMs: 22, stepMs: 17 };
    live(all, 60, (arm) => (arm === 'learned' ? better : world));
    expect(all.transitions.map(({ to }) => to)).toEqual(['canary', 'active']);
    expect(all.drives.filter(({ arm }) => arm === 'learned').length).toBeGreaterThan(50);
    expect(new Set(all.drives.map(({ tag }) => tag)).size).toBe(all.drives.length);
  });

  it('the adapter knows which arm made the decisions of its last 64 epochs', () => {
    const all = adapting({ mode: 'auto' });
    live(all, 60, (arm) => (arm === 'learned' ? { ...world, baseMs: 30 } : world));
    const last = all.drives.slice(-64);
    expect(last.map(({ tag }) => all.adapter.armOf(tag))).toEqual(last.map(({ arm }) => arm));
    expect(all.adapter.armOf(all.drives.at(-65)!.tag)).toBeUndefined();
  });

  it('the adapter forgets everything when it falls back, the endpoints too', () => {
    const all = adapting({ mode: 'auto' });
    const uneven = { ...world, speeds: { 1: 2 } };
    const end = live(all, 30, () => uneven);
    expect(all.adapter.report().state).not.toBe('shadow');
    // Every answer takes the same time now, whatever the model says.
    for (let i = 1; i <= 100 && all.adapter.report().state !== 'fallback'; i++) {
      const { tag } = all.adapter.drive;
      const random = row(i);
      for (let k = 0; k < 50; k++) {
        all.waiting.push({ ...measured(uneven, random, { tag }), firstOutputMs: 20 + 1000 * random() });
      }
      all.adapter.tick(end + i * 250);
    }
    expect(all.transitions.at(-1)).toMatchObject({ to: 'fallback' });
    expect(all.adapter.report().fit.samples).toBe(0);
    expect(all.endpoints.get(1)).toEqual({ generation: 1, speed: 1, reliability: 1 });
    expect(all.written.at(-1)).toMatchObject({ prefillMsPerKiloToken: 55 });
  });

  it('the adapter stands aside while requests wait everywhere for half a minute', () => {
    const all = adapting({ mode: 'auto' });
    const end = live(all, 30, (arm) => (arm === 'learned' ? { ...world, prefillMs: 22, stepMs: 15 } : world));
    all.state.overloaded = true;
    live(all, 1, () => world, end);
    expect(all.adapter.report()).toMatchObject({ standsAside: true, arm: 'static' });
  });

  it('the adapter counts samples that it cannot learn from, and tells what was lost', () => {
    const all = adapting();
    all.waiting.push(sample(), sample({ outcome: 'aborted' }), sample({ outcome: 'failed' }));
    all.adapter.tick(250);
    expect(all.adapter.report().samples).toEqual({ learned: 1, ignored: 2, lost: 3 });
  });

  it('the adapter does not mistrust its samples because answers in one piece waited for memory', () => {
    const reasonAfter = (outputTokens: number) => {
      const all = adapting({ mode: 'auto' });
      const end = live(all, 30, (arm) => (arm === 'learned' ? { ...world, prefillMs: 22, stepMs: 15 } : world));
      const random = row(5);
      for (let nowMs = end + 250; nowMs <= end + 20_000; nowMs += 250) {
        const { tag } = all.adapter.drive;
        const given = { tag, waiting: 9, kvUsage: 0.97, outputTokens };
        for (let k = 0; k < 20; k++) {
          const made = measured({ ...world, streamed: false }, random, given);
          all.waiting.push({ ...made, timeMs: nowMs - 100, durationMs: 2680 });
        }
        all.adapter.tick(nowMs);
      }
      return all.transitions.at(-1)?.reason;
    };
    expect(reasonAfter(0)).toMatch(/^only \d+ % of the requests can be learned from$/);
    expect(reasonAfter(200)).not.toMatch(/can be learned from/);
  });

  it('the adapter tells how often both ways of deciding agree', () => {
    const all = adapting();
    for (let i = 0; i < 4000; i++) all.waiting.push(sample({ slot: 1, wouldPick: i % 4 === 0 ? 2 : 1 }));
    all.adapter.tick(250);
    expect(all.adapter.report().agreement).toBeCloseTo(0.75, 1);
  });

  it('the adapter names terms that have not distinguished any endpoints for five minutes, with the scorers that look at them', () => {
    const all = adapting();
    const busy: CostTerm[] = ['context', 'decode'];
    for (let second = 1; second <= 500; second++) {
      all.shares.samples += 10;
      for (const term of busy) all.shares.sums[term] += 5;
      // The queue had something to say in the beginning.
      if (second < 60) all.shares.sums.queue += 2;
      all.adapter.tick(second * 1000);
      if (second === 299) expect(all.adapter.report().inactive).toEqual([]);
    }
    const shown = shownAdaptation(all.adapter.report(), (slot) => `server-${slot}`);
    expect(shown.shares!.context).toBeCloseTo(0.5, 1);
    expect(shown.inactive.map(({ term }) => term)).toEqual(['queue', 'waiting', 'capacity']);
    expect(shown.inactive[1]!.scorers).toContain('queue-scorer');
  });

  it('the adapter drives through weights when it is told to, and moves them once a second', () => {
    const all = adapting({ mode: 'always', drive: 'weights' });
    expect(all.drives).toEqual([{ arm: 'learned', tag: 1, weights: [2, 3] }]);
    for (let second = 1; second <= 60; second++) {
      all.sums.samples += 30;
      all.sums.products[0]![0]! += 30;
      all.sums.products[1]![1]! += 30;
      all.sums.costs[0]! -= 30;
      all.sums.costs[1]! -= 3;
      all.adapter.tick(second * 1000);
    }
    expect(all.drives).toHaveLength(61);
    const [first, second] = all.drives.at(-1)!.weights!;
    expect(first! / second!).toBeGreaterThan(5);
    expect(all.adapter.report().projection!.samples).toBeGreaterThan(400);
  });

  it('the adapter leaves the coefficients in place when the model has nothing sound to say', () => {
    const all = adapting();
    for (let i = 0; i < 100; i++) all.waiting.push(sample({ firstOutputMs: Number.NaN, perTokenMs: Number.NaN }));
    all.adapter.tick(1000);
    expect(all.written.at(-1)!.prefillMsPerKiloToken).toBeCloseTo(55, 6);
    expect(all.written.at(-1)!.stepMs).toBeCloseTo(13, 6);
  });
});

describe('effective weights', () => {
  it('effective weights are the costs of one unit of what a scorer looks at, in targets', () => {
    const { coefficients } = adapting().adapter.model;
    const weights = effectiveWeights(coefficients);
    expect(weights.context).toBeCloseTo((55 * 1.5) / 2000, 9);
    expect(weights.queue).toBeCloseTo(55 / 2000, 9);
    expect(weights.waiting).toBeCloseTo(5 / 2000, 9);
    expect(weights.activeRequest).toBeCloseTo((230 / 1e5) * (4 / 60), 9);
    expect(weights.kvTokens).toBeCloseTo(4 / 60, 9);
  });

  it('the adapter with drive: rules plays rules in turn under the guard, and more often the one that costs least', () => {
    const all = adapting({ mode: 'auto', drive: 'rules' });
    const played = [0, 0, 0];
    const random = row(5);
    for (let nowMs = 250; nowMs <= 2_400_000; nowMs += 500) {
      const { tag, rule, arm } = all.adapter.drive;
      if (arm === 'static') expect(rule).toBe(0);
      if (nowMs > 1_200_000) played[rule!]!++;
      const slower = rule === 1 ? 0.8 : 1;
      const truth = {
        ...world,
        baseMs: slower * 40,
        prefillMs: slower * 30,
        stepMs: slower * 20,
        growthMs: slower * 6,
      };
      for (let i = 0; i < 3; i++) all.waiting.push({ ...measured(truth, random, { tag }), timeMs: nowMs - 100 });
      all.adapter.tick(nowMs);
    }
    expect(played.indexOf(Math.max(...played))).toBe(1);
    const { rules } = all.adapter.report();
    expect(rules?.records.map(({ name }) => name)).toEqual(['configured', 'other', 'third']);
    expect(rules!.records[1]!.reward).toBeGreaterThan(rules!.records[2]!.reward);
  });

  it('the adapter without a guard begins an epoch with every change of the rule', () => {
    const all = adapting({ mode: 'always', drive: 'rules' });
    live(all, 5, () => world);
    const rules = all.drives.map(({ rule }) => rule);
    expect(new Set(rules)).toEqual(new Set([0, 1, 2]));
    expect(new Set(all.drives.map(({ tag }) => tag)).size).toBe(all.drives.length);
  });
});
