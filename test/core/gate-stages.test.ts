import { describe, expect, it } from 'vitest';
import type { GateSettings, StageLimits } from '../../dist/src/core/capacity-gate.js';
import { makeGate } from './gate-pool.ts';
import { plainRequest } from './pool.ts';

const none = Number.POSITIVE_INFINITY;
const NO_LIMITS: StageLimits = {
  queue: none,
  usage: none,
  stalenessMs: none,
  requests: none,
  tokens: none,
  scraped: none,
  scrapedStalenessMs: none,
};

function worst(prefill: Partial<StageLimits>, decode: Partial<StageLimits> = prefill): GateSettings {
  return { mode: 'worst', prefill: { ...NO_LIMITS, ...prefill }, decode: { ...NO_LIMITS, ...decode } };
}

const PREFILL = { prefill: true, decode: false };
const DECODE = { prefill: false, decode: true };

/** Saturation of one endpoint with these signals, at 1 ms. */
function saturation(settings: GateSettings, signals: object, stages = DECODE, requests = 0): number | undefined {
  const bed = makeGate(settings, [signals]);
  expect(bed.gate.setStages(0, stages)).toBe(true);
  const shard = bed.shard(1);
  for (let sent = 0; sent < requests; sent++) shard.decider.decide({ ...request, promptTokens: 10 });
  return bed.gate.saturation([0], 1);
}

const request = plainRequest;
const calm = { waiting: 0, running: 0, kvUsage: 0 };

describe('the fullest of several detectors', () => {
  it('each limit counts alone where the others have room', () => {
    expect(saturation(worst({ queue: 5, usage: 0.8 }), { ...calm, kvUsage: 0.4 })).toBeCloseTo(0.5);
    expect(saturation(worst({ queue: 5, usage: 0.8 }), { ...calm, waiting: 10, kvUsage: 0.4 })).toBeCloseTo(2);
    expect(saturation(worst({ requests: 4, queue: 100 }), calm, DECODE, 3)).toBeCloseTo(0.75);
    expect(saturation(worst({ tokens: 40 }), calm, DECODE, 3)).toBeCloseTo(0.75);
  });

  it('an endpoint is measured by the limits of its stage alone', () => {
    const settings = worst({ queue: 1 }, { requests: 10 });
    const busy = { ...calm, waiting: 3 };
    expect(saturation(settings, busy, PREFILL)).toBeCloseTo(3);
    expect(saturation(settings, busy, DECODE)).toBe(0);
    expect(saturation(settings, busy, { prefill: true, decode: true })).toBeCloseTo(3);
  });

  it('an endpoint of no stage is never full', () => {
    expect(saturation(worst({ queue: 1 }), { ...calm, waiting: 9 }, { prefill: false, decode: false })).toBe(0);
  });

  it('a stage without limits has room', () => {
    expect(saturation(worst({}), { waiting: 1_000, running: 1_000, kvUsage: 1 }, DECODE, 5)).toBe(0);
  });
});

describe('requests on an endpoint by its scrape', () => {
  it('requests that run and requests that wait count, whichever picker sent them', () => {
    expect(saturation(worst({ scraped: 10 }), { ...calm, waiting: 3, running: 4 })).toBeCloseTo(0.7);
  });

  it('requests that were sent since the scrape count beside it', () => {
    expect(saturation(worst({ scraped: 10 }), { ...calm, running: 4 }, DECODE, 2)).toBeCloseTo(0.6);
  });

  it('an endpoint that tells nothing counts what is in flight from here', () => {
    expect(saturation(worst({ scraped: 10 }), {}, DECODE, 3)).toBeCloseTo(0.3);
  });
});

describe('room by several detectors', () => {
  it('a request goes to the endpoint that none of them calls full, and waits when there is none', () => {
    const bed = makeGate(worst({ requests: 1, queue: 5 }), [
      { ...calm, waiting: 7 },
      { ...calm, waiting: 0 },
    ]);
    for (const slot of [0, 1]) bed.gate.setStages(slot, DECODE);
    const shard = bed.shard(1);
    expect(shard.ask({ nowMs: 1 })).toMatchObject({ status: 'decided', slots: [1] });
    expect(shard.ask({ nowMs: 1 }).status).toBe('waiting');
  });
});
