import type { EndpointTable } from '../core/endpoint-table.js';
import { type ConcurrencySettings, concurrency } from './detectors/concurrency.js';
import { type UtilizationSettings, utilization } from './detectors/utilization.js';

/** The configured saturation detector. */
export type SaturationSettings = UtilizationSettings | ConcurrencySettings;

/**
 * Saturation of a set of endpoints; an empty set is full.
 * @returns 1 or more = full
 */
export function saturation(
  table: EndpointTable,
  slots: readonly number[],
  settings: SaturationSettings,
  nowMs: number,
): number {
  if (slots.length === 0) return 1;
  if (settings.type === 'utilization-detector') return utilization(table, slots, settings, nowMs);
  return concurrency(table, slots, settings);
}
