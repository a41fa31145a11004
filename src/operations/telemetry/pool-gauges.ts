import type { Endpoint } from '../../contract/endpoint.js';
import { CORE } from '../../core/core-names.js';
import type { CoreInstance } from '../../core/memory.js';

/** Values of a pool's gauges at one moment. */
export interface PoolSummary {
  /** Live endpoints whose signals are fresh. */
  readonly ready: number;
  /** Over the ready endpoints; undefined without any. */
  readonly waiting: Spread | undefined;
  readonly running: Spread | undefined;
  readonly kvUsage: Spread | undefined;
  readonly endpoints: readonly EndpointLoad[];
}

/** Mean and sample standard deviation (0 for a single value), both to two decimals as in llm-d-router. */
export interface Spread {
  readonly mean: number;
  readonly deviation: number;
}

export interface EndpointLoad {
  readonly endpoint: Endpoint;
  /** As scraped last; undefined = its metrics page was never read. */
  readonly waiting: number | undefined;
  /** Requests in flight of this picker, and their uncached prompt tokens. */
  readonly inflightRequests: number;
  readonly inflightTokens: number;
}

/** @returns undefined for an empty list */
export function spread(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const deviation = values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0;
  return { mean: twoDecimals(mean), deviation: twoDecimals(deviation) };
}

function twoDecimals(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Reads a pool's state from the endpoint columns without a lock, so a gauge may be one scrape old. */
export function summarisePool(core: CoreInstance, endpointOf: (slot: number) => Endpoint | undefined): PoolSummary {
  const slots = core.sizes.endpoints;
  const first = core.call.regionAddress(CORE.REGION_ENDPOINTS) >>> 2;
  const at = (column: number, slot: number) => first + column * slots + slot;
  const times = at(CORE.COLUMN_SIGNAL_TIME, 0) << 2;
  // Each replica shows its own part, so that the sum over the replicas is the load of the pool.
  const own = (all: number, peers: number, slot: number) => core.u32[at(all, slot)]! - core.u32[at(peers, slot)]!;
  const anySignal = CORE.SIGNAL_WAITING | CORE.SIGNAL_RUNNING | CORE.SIGNAL_KV_USAGE;
  const waiting: number[] = [];
  const running: number[] = [];
  const kvUsage: number[] = [];
  const endpoints: EndpointLoad[] = [];
  let ready = 0;
  for (let slot = 0; slot < slots; slot++) {
    if (core.u32[at(CORE.COLUMN_STATE, slot)] !== CORE.STATE_LIVE) continue;
    const endpoint = endpointOf(slot);
    if (!endpoint) continue;
    const known = core.u32[at(CORE.COLUMN_KNOWN, slot)]!;
    const queue = core.f32[at(CORE.COLUMN_WAITING, slot)]!;
    endpoints.push({
      endpoint,
      waiting: core.view.getFloat64(times + slot * 8, true) === 0 ? undefined : queue,
      inflightRequests: own(CORE.COLUMN_INFLIGHT, CORE.COLUMN_PEER_REQUESTS, slot),
      inflightTokens: own(CORE.COLUMN_INFLIGHT_TOKENS, CORE.COLUMN_PEER_TOKENS, slot),
    });
    if ((known & anySignal) === 0) continue;
    ready++;
    if ((known & CORE.SIGNAL_WAITING) !== 0) waiting.push(queue);
    if ((known & CORE.SIGNAL_RUNNING) !== 0) running.push(core.f32[at(CORE.COLUMN_RUNNING, slot)]!);
    if ((known & CORE.SIGNAL_KV_USAGE) !== 0) kvUsage.push(core.f32[at(CORE.COLUMN_KV_USAGE, slot)]!);
  }
  return { ready, waiting: spread(waiting), running: spread(running), kvUsage: spread(kvUsage), endpoints };
}
