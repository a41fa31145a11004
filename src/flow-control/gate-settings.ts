import type { SaturationSettings, SingleSettings, Stage } from '../contract/saturation-settings.js';
import type { GateSettings, StageLimits } from '../core/capacity-gate.js';

const NO_LIMITS: StageLimits = {
  queue: Number.POSITIVE_INFINITY,
  usage: Number.POSITIVE_INFINITY,
  stalenessMs: Number.POSITIVE_INFINITY,
  requests: Number.POSITIVE_INFINITY,
  tokens: Number.POSITIVE_INFINITY,
  scraped: Number.POSITIVE_INFINITY,
  scrapedStalenessMs: Number.POSITIVE_INFINITY,
};

/** Rule of the gate for the configured saturation detector; `learned` without one. */
export function gateSettings(detector: SaturationSettings | undefined): GateSettings {
  switch (detector?.type) {
    case undefined:
      return { mode: 'learned' };
    case 'concurrency-detector': {
      const { mode, maxConcurrency, maxTokenConcurrency } = detector;
      return { mode, maxRequests: maxConcurrency, maxTokens: maxTokenConcurrency };
    }
    case 'utilization-detector':
      return {
        mode: 'utilization',
        queueThreshold: detector.queueDepthThreshold,
        usageThreshold: detector.kvCacheUtilThreshold,
        stalenessMs: detector.metricsStalenessMs,
      };
    case 'scraped-concurrency-detector': {
      const limits = limitsOf(detector);
      return { mode: 'worst', prefill: limits, decode: limits };
    }
    case 'max-saturation-detector': {
      const of = (stage: Stage) =>
        detector.detectors.filter(({ stages }) => stages.includes(stage)).map(({ settings }) => limitsOf(settings));
      return { mode: 'worst', prefill: strictest(of('prefill')), decode: strictest(of('decode')) };
    }
  }
}

function limitsOf(settings: SingleSettings): StageLimits {
  switch (settings.type) {
    case 'concurrency-detector': {
      const { mode, maxConcurrency, maxTokenConcurrency } = settings;
      return {
        ...NO_LIMITS,
        ...(mode === 'tokens' ? {} : { requests: maxConcurrency }),
        ...(mode === 'requests' ? {} : { tokens: maxTokenConcurrency }),
      };
    }
    case 'utilization-detector':
      return {
        ...NO_LIMITS,
        queue: settings.queueDepthThreshold,
        usage: settings.kvCacheUtilThreshold,
        stalenessMs: settings.metricsStalenessMs,
      };
    case 'scraped-concurrency-detector':
      return {
        ...NO_LIMITS,
        scraped: settings.maxConcurrency,
        scrapedStalenessMs: settings.metricsStalenessMs,
      };
  }
}

/** The larger of two shares of one figure is its share of the smaller limit. */
function strictest(all: readonly StageLimits[]): StageLimits {
  return all.reduce(
    (one, other) => ({
      queue: Math.min(one.queue, other.queue),
      usage: Math.min(one.usage, other.usage),
      stalenessMs: Math.min(one.stalenessMs, other.stalenessMs),
      requests: Math.min(one.requests, other.requests),
      tokens: Math.min(one.tokens, other.tokens),
      scraped: Math.min(one.scraped, other.scraped),
      scrapedStalenessMs: Math.min(one.scrapedStalenessMs, other.scrapedStalenessMs),
    }),
    NO_LIMITS,
  );
}
