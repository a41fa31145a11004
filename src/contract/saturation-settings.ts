/** Thresholds of the utilization-detector. */
export interface UtilizationSettings {
  readonly type: 'utilization-detector';
  /** Waiting requests at which an endpoint is full. */
  readonly queueDepthThreshold: number;
  /** KV cache use at which an endpoint is full, in (0, 1]. */
  readonly kvCacheUtilThreshold: number;
  /** Age in milliseconds from which signals count as full. */
  readonly metricsStalenessMs: number;
  /** Share above the thresholds that the profile filter of the detector still allows. */
  readonly headroom: number;
}

/** Capacities of the concurrency-detector, per endpoint. */
export interface ConcurrencySettings {
  readonly type: 'concurrency-detector';
  readonly mode: 'requests' | 'tokens' | 'hybrid';
  /** Requests in flight. */
  readonly maxConcurrency: number;
  /** Uncached prompt tokens in flight. */
  readonly maxTokenConcurrency: number;
  /** Share above the capacities that the profile filter of the detector still allows. */
  readonly headroom: number;
  /** Whether that filter keeps all endpoints when every one is at its limit. */
  readonly failOpen: boolean;
}

/** Capacity of the scraped-concurrency-detector, per endpoint. */
export interface ScrapedSettings {
  readonly type: 'scraped-concurrency-detector';
  /** Requests that run or wait. */
  readonly maxConcurrency: number;
  /** Age in milliseconds from which signals are unknown. */
  readonly metricsStalenessMs: number;
}

/** Detector of one number, without others in it. */
export type SingleSettings = UtilizationSettings | ConcurrencySettings | ScrapedSettings;

/** Half of a request that an endpoint serves. */
export type Stage = 'prefill' | 'decode';

/** Detectors of the max-saturation-detector. */
export interface WorstSettings {
  readonly type: 'max-saturation-detector';
  readonly detectors: readonly {
    /** Configured name. */
    readonly name: string;
    readonly settings: SingleSettings;
    /** Stages that the detector measures. */
    readonly stages: readonly Stage[];
  }[];
}

/** Settings of the detector that measures the saturation of the pool. */
export type SaturationSettings = SingleSettings | WorstSettings;
