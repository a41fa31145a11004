import type {
  ConcurrencySettings,
  SaturationSettings,
  ScrapedSettings,
  UtilizationSettings,
} from '../contract/saturation-settings.js';
import type { EndpointTable } from '../core/endpoint-table.js';
import { type Operation, type ReadName, readsOf } from '../core/operations.js';
import type { Rejection } from '../scheduling/decision.js';

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
  // llm-d-router's answer has none here.
  reason: 'rejected-saturated',
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
    if (request.priority >= 0) return 'admitted';
    const used = this.#saturation(request);
    return used >= 1 ? { ...SHED, bound: { by: 'pool-saturation', used, limit: 1 } } : 'admitted';
  }
}

/**
 * Saturation of a set of endpoints: the mean of theirs; an empty set is full.
 * @returns 1 or more = full
 */
export function saturation(
  table: EndpointTable,
  slots: readonly number[],
  settings: SaturationSettings,
  nowMs: number,
): number {
  if (slots.length === 0) return 1;
  let sum = 0;
  for (const slot of slots) {
    const { signalTimeMs, ...load } = table.read(slot);
    sum += endpointSaturation({ ...load, ageMs: nowMs - signalTimeMs }, settings);
  }
  return sum / slots.length;
}

/** The detector as a filter: the endpoints below its limits, with its headroom. */
export function saturationFilter(
  settings: UtilizationSettings | ConcurrencySettings,
): Pick<Operation, 'code' | 'parameters'> {
  const above = 1 + settings.headroom;
  if (settings.type === 'utilization-detector') {
    const { queueDepthThreshold, kvCacheUtilThreshold, metricsStalenessMs } = settings;
    const parameters = [queueDepthThreshold * above, kvCacheUtilThreshold * above, metricsStalenessMs];
    return { code: 'OP_FILTER_UNSATURATED', parameters };
  }
  const { mode, maxConcurrency, maxTokenConcurrency, failOpen } = settings;
  const requests = mode === 'tokens' ? Number.POSITIVE_INFINITY : maxConcurrency * above;
  const tokens = mode === 'requests' ? Number.POSITIVE_INFINITY : maxTokenConcurrency * above;
  return { code: 'OP_FILTER_CONCURRENCY', parameters: [requests, tokens, failOpen ? 1 : 0] };
}

/** Columns of endpoints that the detector reads as a filter. */
export function saturationReads(settings: SaturationSettings): readonly ReadName[] {
  if (settings.type === 'max-saturation-detector') {
    return settings.detectors.flatMap(({ settings: one }) => saturationReads(one));
  }
  if (settings.type === 'scraped-concurrency-detector') return ['known', 'waiting', 'running', 'inflight'];
  return readsOf(saturationFilter(settings));
}

/** Load of an endpoint as a detector sees it. */
export interface DetectedLoad {
  /** Undefined = unknown. */
  readonly waiting: number | undefined;
  readonly running: number | undefined;
  readonly kvUsage: number | undefined;
  /** Milliseconds since the last scrape. */
  readonly ageMs: number;
  readonly inflight: number;
  readonly inflightTokens: number;
}

/** Saturation of one endpoint: 1 or more = full. Of several detectors the fullest counts, for any stages. */
export function endpointSaturation(load: DetectedLoad, settings: SaturationSettings): number {
  switch (settings.type) {
    case 'utilization-detector':
      return utilization(load, settings);
    case 'concurrency-detector':
      return concurrency(load, settings);
    case 'scraped-concurrency-detector':
      return scraped(load, settings);
    case 'max-saturation-detector':
      return Math.max(...settings.detectors.map((each) => endpointSaturation(load, each.settings)));
  }
}

/**
 * max(waiting / queue threshold, KV usage / KV threshold). Requests in flight that the scrape does not show count as
 * waiting. An endpoint with unknown or stale signals counts as full (llm-d-router's utilization-detector).
 */
function utilization({ waiting, running, kvUsage, ageMs, inflight }: DetectedLoad, settings: UtilizationSettings) {
  if (waiting === undefined || kvUsage === undefined || ageMs > settings.metricsStalenessMs) return 1;
  const unseen = running === undefined ? 0 : Math.max(0, inflight - (waiting + running));
  return Math.max((waiting + unseen) / settings.queueDepthThreshold, kvUsage / settings.kvCacheUtilThreshold);
}

/** Requests that run or wait against the capacity; without an engine's report, those in flight from here. */
function scraped({ waiting, running, ageMs, inflight }: DetectedLoad, settings: ScrapedSettings): number {
  const isFresh = waiting !== undefined && running !== undefined && ageMs <= settings.metricsStalenessMs;
  return Math.max(isFresh ? waiting + running : 0, inflight) / settings.maxConcurrency;
}

/** Load in flight against the capacity; `hybrid` is the larger ratio (llm-d-router's concurrency-detector). */
function concurrency({ inflight, inflightTokens }: DetectedLoad, settings: ConcurrencySettings): number {
  const requests = inflight / settings.maxConcurrency;
  const tokens = inflightTokens / settings.maxTokenConcurrency;
  return { requests, tokens, hybrid: Math.max(requests, tokens) }[settings.mode];
}
