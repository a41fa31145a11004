import type { QueueLimits } from '../../contract/queue-settings.js';
import type { QueueSnapshot } from '../../flow-control/queue-contract.js';
import type { MetricsExposition, ReadMetric } from '../telemetry/exposition.js';
import type { EvictionCounts } from './eviction-counts.js';

const DISPATCH_TIMES = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1];

/** The figures that the metrics of flow control read, and where each dispatch is reported. */
export interface FlowControlFigures {
  readonly evictions: EvictionCounts;
  readonly limits: QueueLimits;
  /** Saturation by stage, 1 = full; undefined for a stage without endpoints. */
  saturation(): {
    readonly prefill: number | undefined;
    readonly decode: number | undefined;
    readonly effective: number | undefined;
  };
  /** What each of several detectors says of a stage; empty for a detector alone. */
  detectorSaturations(): readonly { readonly detector: string; readonly stage: string; readonly value: number }[];
  staleEndpoints(): { readonly detector: string; readonly endpoints: number } | undefined;
  /** @param flows flows listed per band */
  snapshot(flows: number): QueueSnapshot;
  /** Receives the duration of each dispatch, in seconds. */
  dispatched: (seconds: number) => void;
}

/**
 * Registers the metrics of flow control on the control thread. Names, labels and buckets are llm-d-router's, as are the
 * older names where it has them.
 */
export function addFlowMetrics(exposition: MetricsExposition, flow: FlowControlFigures, pool: string): void {
  addSaturation(exposition, flow, pool);
  addBands(exposition, flow, pool);
  addWhole(exposition, flow, pool);
  flow.evictions.register(exposition, pool);
  const dispatches = {
    help: 'Seconds that a dispatch of waiting requests took.',
    buckets: DISPATCH_TIMES,
  };
  const observe = exposition.addHistogram({ name: name('dispatch_cycle_duration_seconds'), ...dispatches });
  const observeToo = exposition.addHistogram({
    name: olderName('dispatch_cycle_duration_seconds'),
    help: olderHelp('dispatch_cycle_duration_seconds', dispatches.help),
    buckets: DISPATCH_TIMES,
  });
  flow.dispatched = (seconds) => {
    observe(seconds);
    observeToo(seconds);
  };
}

const name = (rest: string) => `llm_d_epp_flow_control_${rest}`;
const olderName = (rest: string) => `inference_extension_flow_control_${rest}`;
const olderHelp = (rest: string, help: string) => `Older name of ${name(rest)}. ${help}`;

function addSaturation(exposition: MetricsExposition, flow: FlowControlFigures, pool: string): void {
  const help = 'How full the endpoints of a stage are, 1 = full. Effective is the fuller stage; an empty pool is full.';
  const metric: Omit<ReadMetric, 'name' | 'help'> = {
    labels: ['inference_pool', 'stage'],
    read: () => {
      const { prefill, decode, effective } = flow.saturation();
      return Object.entries({ prefill, decode, effective: effective ?? 1 }).flatMap(([stage, value]) =>
        value === undefined ? [] : [{ labels: { inference_pool: pool, stage }, value }],
      );
    },
  };
  exposition.addGauge({ ...metric, name: name('pool_saturation'), help });
  exposition.addGauge({ ...metric, name: olderName('pool_saturation'), help: olderHelp('pool_saturation', help) });
  exposition.addGauge({
    name: name('detector_saturation'),
    help: 'How full the endpoints of a stage are by one of several detectors, 1 = full: max-saturation-detector.',
    labels: ['detector', 'stage'],
    read: () =>
      flow.detectorSaturations().map(({ detector, stage, value }) => ({ labels: { detector, stage }, value })),
  });
  exposition.addGauge({
    name: name('stale_endpoints'),
    help: 'Endpoints whose signals are missing or too old for the saturation detector.',
    labels: ['detector'],
    read: () => {
      const stale = flow.staleEndpoints();
      return stale === undefined ? [] : [{ labels: { detector: stale.detector }, value: stale.endpoints }];
    },
  });
}

function addBands(exposition: MetricsExposition, flow: FlowControlFigures, pool: string): void {
  const labels = ['priority', 'inference_pool'];
  const bands = (pick: 'requestsUsed' | 'bytesUsed' | 'tokensUsed') => () =>
    flow.snapshot(0).bands.map((band) => ({
      labels: { priority: String(band.priority), inference_pool: pool },
      value: band[pick],
    }));
  exposition.addGauge({
    name: name('capacity_utilization_requests'),
    help: 'Share of the requests that may wait in a band, 0 to 1.',
    labels,
    read: bands('requestsUsed'),
  });
  exposition.addGauge({
    name: name('capacity_utilization_bytes'),
    help: 'Share of the bytes of bodies that may wait in a band, 0 to 1.',
    labels,
    read: bands('bytesUsed'),
  });
  exposition.addGauge({
    name: 'pointsman_flow_control_capacity_utilization_tokens',
    help: 'Share of the tokens that may wait in a band, 0 to 1.',
    labels,
    read: bands('tokensUsed'),
  });
}

/** Used shares of the bounds on all bands together; absent without such a bound. */
function addWhole(exposition: MetricsExposition, flow: FlowControlFigures, pool: string): void {
  const share = (limit: 'requests' | 'bytes', used: 'waiting' | 'bytes') => () => {
    const bound = flow.limits[limit];
    if (bound === Number.POSITIVE_INFINITY) return [];
    return [{ labels: { inference_pool: pool }, value: flow.snapshot(0)[used] / bound }];
  };
  exposition.addGauge({
    name: name('global_capacity_utilization_requests'),
    help: 'Share of the requests that may wait in all bands together, 0 to 1.',
    labels: ['inference_pool'],
    read: share('requests', 'waiting'),
  });
  exposition.addGauge({
    name: name('global_capacity_utilization_bytes'),
    help: 'Share of the bytes of bodies that may wait in all bands together, 0 to 1.',
    labels: ['inference_pool'],
    read: share('bytes', 'bytes'),
  });
}
