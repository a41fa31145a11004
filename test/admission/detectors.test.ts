import { describe, expect, it } from 'vitest';
import { type DetectedLoad, endpointSaturation } from '../../dist/src/admission/shedding.js';

const UTILIZATION = {
  type: 'utilization-detector',
  queueDepthThreshold: 5,
  kvCacheUtilThreshold: 0.8,
  metricsStalenessMs: 200,
  headroom: 0,
} as const;
const SCRAPED = { type: 'scraped-concurrency-detector', maxConcurrency: 10, metricsStalenessMs: 2_000 } as const;

const calm: DetectedLoad = { waiting: 0, running: 0, kvUsage: 0, ageMs: 0, inflight: 0, inflightTokens: 0 };

describe('the utilization-detector', () => {
  it('requests in flight that the scrape does not show count as waiting', () => {
    expect(endpointSaturation({ ...calm, running: 3, inflight: 8 }, UTILIZATION)).toBe(1);
    expect(endpointSaturation({ ...calm, waiting: 2, running: 6, inflight: 8 }, UTILIZATION)).toBe(0.4);
  });

  it('more on the engine than from here takes nothing off', () => {
    expect(endpointSaturation({ ...calm, waiting: 5, running: 50, inflight: 3 }, UTILIZATION)).toBe(1);
  });
});

describe('the scraped-concurrency-detector', () => {
  it('what runs and waits counts, and at least what is in flight from here', () => {
    expect(endpointSaturation({ ...calm, waiting: 2, running: 5, inflight: 3 }, SCRAPED)).toBe(0.7);
    expect(endpointSaturation({ ...calm, running: 1, inflight: 3 }, SCRAPED)).toBe(0.3);
  });

  it('old signals do not count', () => {
    expect(endpointSaturation({ ...calm, running: 9, inflight: 2, ageMs: 2_001 }, SCRAPED)).toBe(0.2);
  });
});

describe('the max-saturation-detector', () => {
  it('the fullest of its detectors counts', () => {
    const detectors = [
      { name: 'a', settings: UTILIZATION, stages: ['prefill', 'decode'] },
      { name: 'b', settings: SCRAPED, stages: ['decode'] },
    ] as const;
    const both = { type: 'max-saturation-detector', detectors } as const;
    expect(endpointSaturation({ ...calm, kvUsage: 0.4, running: 9 }, both)).toBe(0.9);
    expect(endpointSaturation({ ...calm, kvUsage: 0.8, running: 1 }, both)).toBe(1);
  });
});
