import type { EndpointTable } from '../../core/endpoint-table.js';

/** Thresholds of the utilization-detector. */
export interface UtilizationSettings {
  readonly type: 'utilization-detector';
  /** Waiting requests at which an endpoint is full. */
  readonly queueDepthThreshold: number;
  /** KV cache use at which an endpoint is full, in (0, 1]. */
  readonly kvCacheUtilThreshold: number;
  /** Signals older than this count as full, in milliseconds. */
  readonly metricsStalenessMs: number;
}

/**
 * The mean of max(waiting / queue threshold, kv / kv threshold) over the endpoints; one whose signals are unknown or
 * stale counts as full (llm-d-router's utilization-detector).
 */
export function utilization(
  table: EndpointTable,
  slots: readonly number[],
  settings: UtilizationSettings,
  nowMs: number,
): number {
  let sum = 0;
  for (const slot of slots) {
    const { waiting, kvUsage, signalTimeMs } = table.read(slot);
    const unknown = waiting === undefined || kvUsage === undefined;
    if (unknown || nowMs - signalTimeMs > settings.metricsStalenessMs) sum += 1;
    else sum += Math.max(waiting / settings.queueDepthThreshold, kvUsage / settings.kvCacheUtilThreshold);
  }
  return sum / slots.length;
}
