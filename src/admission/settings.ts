/** Thresholds of the utilization-detector. */
export interface UtilizationSettings {
  readonly type: 'utilization-detector';
  /** Waiting requests at which an endpoint is full. */
  readonly queueDepthThreshold: number;
  /** KV cache use at which an endpoint is full, in (0, 1]. */
  readonly kvCacheUtilThreshold: number;
  /** Signals older than this count as full, in milliseconds. */
  readonly metricsStalenessMs: number;
  /** Share above the thresholds that a profile's filter still allows. */
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
  /** Share above the capacities that a profile's filter still allows. */
  readonly headroom: number;
}

/** How the saturation of the pool is judged. */
export type SaturationSettings = UtilizationSettings | ConcurrencySettings;
