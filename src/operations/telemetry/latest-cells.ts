import type { Metric } from './metric-kind.js';

/** Sets a gauge that shows the value set last by any thread. @param base first cell of its series */
export function setLatest(cells: Float64Array, base: number, metric: Metric, value: number): void {
  cells[base + metric.offset] = value;
  // All threads share this clock, so that the page can find the last value.
  cells[base + metric.offset + 1] = performance.timeOrigin + performance.now();
}
