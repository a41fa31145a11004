import type { EndpointTable } from '../core/endpoint-table.js';
import { type Operation, type ReadName, readsOf } from '../core/operations.js';
import type { Rejection } from '../scheduling/decision.js';
import type { ConcurrencySettings, SaturationSettings, UtilizationSettings } from './settings.js';

/** Input of an admission decision. */
export interface AdmissionRequest {
  /** Below 0 = sheddable. */
  readonly priority: number;
  readonly fairnessId: string;
  /** Addresses that the proxy allows; undefined = the whole pool. */
  readonly subset: readonly string[] | undefined;
}

/** Decides whether a request may be placed now. */
export interface Admission {
  admit(request: AdmissionRequest): 'admitted' | Rejection;
}

const SHED: Rejection = {
  kind: 'rejected',
  code: 'ResourceExhausted',
  message: 'system saturated, sheddable request dropped',
  reason: undefined,
};

/**
 * llm-d-router's rule without flow control: sheddable requests are rejected while the pool is saturated, and all others
 * are admitted.
 */
export class LegacyAdmission implements Admission {
  readonly #saturation: (request: AdmissionRequest) => number;

  /** @param saturation of the endpoints that the request may use; 1 = full, also for a pool without endpoints */
  constructor(saturation: (request: AdmissionRequest) => number) {
    this.#saturation = saturation;
  }

  admit(request: AdmissionRequest): 'admitted' | Rejection {
    return request.priority < 0 && this.#saturation(request) >= 1 ? SHED : 'admitted';
  }
}

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

/** The detector as a filter: the endpoints below its limits, with its headroom. */
export function saturationFilter(settings: SaturationSettings): Pick<Operation, 'code' | 'parameters'> {
  const above = 1 + settings.headroom;
  if (settings.type === 'utilization-detector') {
    const { queueDepthThreshold, kvCacheUtilThreshold, metricsStalenessMs } = settings;
    const parameters = [queueDepthThreshold * above, kvCacheUtilThreshold * above, metricsStalenessMs];
    return { code: 'OP_FILTER_UNSATURATED', parameters };
  }
  const { mode, maxConcurrency, maxTokenConcurrency } = settings;
  const requests = mode === 'tokens' ? Number.POSITIVE_INFINITY : maxConcurrency * above;
  const tokens = mode === 'requests' ? Number.POSITIVE_INFINITY : maxTokenConcurrency * above;
  return { code: 'OP_FILTER_CONCURRENCY', parameters: [requests, tokens] };
}

/** Columns of endpoints that the detector compares with its limits: those that it reads as a filter. */
export function saturationReads(settings: SaturationSettings): readonly ReadName[] {
  return readsOf(saturationFilter(settings));
}

/**
 * Mean of max(waiting / queue threshold, KV usage / KV threshold) over the endpoints. An endpoint with unknown or stale
 * signals counts as full (llm-d-router's utilization-detector).
 */
function utilization(
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

/**
 * Saturation by the requests in flight against the capacity of the endpoints. `hybrid` is the mean over the endpoints
 * of the larger ratio (llm-d-router's concurrency-detector).
 */
function concurrency(table: EndpointTable, slots: readonly number[], settings: ConcurrencySettings): number {
  let requests = 0;
  let tokens = 0;
  let larger = 0;
  for (const slot of slots) {
    const { inflight, inflightTokens } = table.read(slot);
    requests += inflight / settings.maxConcurrency;
    tokens += inflightTokens / settings.maxTokenConcurrency;
    larger += Math.max(inflight / settings.maxConcurrency, inflightTokens / settings.maxTokenConcurrency);
  }
  const sum = { requests, tokens, hybrid: larger }[settings.mode];
  return sum / slots.length;
}
