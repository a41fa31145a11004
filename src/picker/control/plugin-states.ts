import type { EndpointReading, EndpointTable } from '../../core/endpoint-table.js';
import type { PluginState } from '../../operations/debug-pages.js';
import type { PoolController } from './pool-controller.js';

/** Sources of the states. */
export interface PluginStateSources {
  readonly pool: Pick<PoolController, 'assignments'>;
  readonly table: Pick<EndpointTable, 'read'>;
  /** The plugins that run, default ones included, in order. */
  readonly configured: () => readonly { readonly name: string; readonly type: string }[];
}

/** Endpoints in one list. */
const ENDPOINTS_MAX = 100;

const STATELESS = 'keeps nothing between requests that this page can show';

/** State of a kind of plugin about an endpoint, and the sort key of the endpoints, highest first. */
interface EndpointState {
  readonly show: (reading: EndpointReading) => object;
  readonly rank: (reading: EndpointReading) => number;
}

const heldBlocks: EndpointState = {
  show: ({ prefixBlocks }) => ({ blocks: prefixBlocks }),
  rank: ({ prefixBlocks }) => prefixBlocks,
};
const inFlight: EndpointState = {
  show: ({ inflight, inflightTokens }) => ({ requests: inflight, tokens: inflightTokens }),
  rank: ({ inflight }) => inflight,
};
const activeBlocks: EndpointState = {
  show: (reading) => ({ blocks: reading.activeBlocks, outputBlocks: reading.outputBlocks }),
  rank: ({ activeBlocks: blocks }) => blocks,
};
/** Unknown signals are null. */
const scraped: EndpointState = {
  show: ({ waiting, running, kvUsage }) => ({
    waiting: waiting ?? null,
    running: running ?? null,
    kvUsage: kvUsage ?? null,
  }),
  rank: ({ waiting }) => waiting ?? 0,
};

const STATES: Readonly<Record<string, EndpointState>> = {
  'approx-prefix-cache-producer': heldBlocks,
  'precise-prefix-cache-producer': heldBlocks,
  'precise-prefix-cache-scorer': heldBlocks,
  'inflight-load-producer': inFlight,
  'active-request-scorer': inFlight,
  'token-load-scorer': inFlight,
  'concurrency-detector': inFlight,
  'learned-limit-detector': inFlight,
  'active-blocks-scorer': activeBlocks,
  'utilization-detector': scraped,
  'core-metrics-extractor': scraped,
};

/** Every configured plugin with what it knows, in llm-d-router's form. Nothing of a prompt is in it. */
export function pluginStates({ configured, pool, table }: PluginStateSources): readonly PluginState[] {
  const readings = pool.assignments.map(({ slot, endpoint }) => ({ endpoint: endpoint.id, reading: table.read(slot) }));
  return configured().map(({ name, type }) => {
    const known = STATES[type];
    return known === undefined ? { name, type, message: STATELESS } : { name, type, state: listed(readings, known) };
  });
}

function listed(
  readings: readonly { readonly endpoint: string; readonly reading: EndpointReading }[],
  { show, rank }: EndpointState,
): object {
  const sorted = [...readings].sort((a, b) => rank(b.reading) - rank(a.reading));
  return {
    endpoints: sorted.slice(0, ENDPOINTS_MAX).map(({ endpoint, reading }) => ({ endpoint, ...show(reading) })),
    totalEndpoints: readings.length,
    maxEndpoints: ENDPOINTS_MAX,
    truncated: readings.length > ENDPOINTS_MAX,
  };
}
