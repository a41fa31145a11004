import type { Metric } from './metric-kind.js';
import { seriesKinds } from './metric-table.js';

const bounds = new Map<Metric, Float64Array>(
  seriesKinds.flatMap((kind) => kind.metrics.map((metric) => [metric, Float64Array.from(metric.buckets)] as const)),
);

/** Upper bounds of a metric's buckets, without `+Inf`. */
export function boundsOf(metric: Metric): Float64Array {
  return bounds.get(metric)!;
}

/** Adds one observation to the histogram whose cells start at `at`. NaN is skipped. */
export function observe(cells: Float64Array, at: number, limit: Float64Array, value: number): void {
  if (!Number.isFinite(value)) return;
  let low = 0;
  let high = limit.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (value <= limit[middle]!) high = middle;
    else low = middle + 1;
  }
  cells[at + low]! += 1;
  cells[at + limit.length + 1]! += value;
}
