import type { QueueLimits } from '../admission/flow/settings.js';
import type { MetricsExposition } from '../operations/telemetry/exposition.js';
import type { FlowControl } from './flow-control.js';

const DISPATCH_TIMES = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1];

/** Register what only the control thread knows of flow control; names, labels and buckets are llm-d-router's. */
export function addFlowMetrics(exposition: MetricsExposition, flow: FlowControl, pool: string): void {
  const gauge = (
    name: string,
    help: string,
    labels: readonly string[],
    read: () => { labels: Record<string, string>; value: number }[],
  ) => exposition.addGauge({ name: `llm_d_epp_flow_control_${name}`, help, labels, read });
  gauge('pool_saturation', 'How full the pool is, 1 = full.', ['inference_pool', 'stage'], () => {
    const value = flow.saturation();
    return value === undefined ? [] : [{ labels: { inference_pool: pool, stage: 'effective' }, value }];
  });
  const bands = (pick: 'requestsUsed' | 'bytesUsed') => () =>
    flow.snapshot(0).bands.map((band) => ({
      labels: { priority: String(band.priority), inference_pool: pool },
      value: band[pick],
    }));
  const used = ['priority', 'inference_pool'];
  gauge('capacity_utilization_requests', 'Share of a band that requests take.', used, bands('requestsUsed'));
  gauge('capacity_utilization_bytes', 'Share of a band that bodies take.', used, bands('bytesUsed'));
  addGlobal(gauge, flow, pool);
  flow.revocations.register(exposition, pool);
  flow.dispatched = exposition.addHistogram({
    name: 'llm_d_epp_flow_control_dispatch_cycle_duration_seconds',
    help: 'Seconds that a dispatch of waiting requests took.',
    buckets: DISPATCH_TIMES,
  });
}

type AddGauge = (
  name: string,
  help: string,
  labels: readonly string[],
  read: () => { labels: Record<string, string>; value: number }[],
) => void;

/** Shares of the bounds of all bands together; absent without such a bound. */
function addGlobal(gauge: AddGauge, flow: FlowControl, pool: string): void {
  const share = (limit: keyof QueueLimits, used: 'waiting' | 'bytes') => () => {
    const most = flow.limits[limit];
    if (most === Number.POSITIVE_INFINITY) return [];
    return [{ labels: { inference_pool: pool }, value: flow.snapshot(0)[used] / most }];
  };
  const labels = ['inference_pool'];
  gauge('global_capacity_utilization_requests', 'Share that requests take.', labels, share('requests', 'waiting'));
  gauge('global_capacity_utilization_bytes', 'Share that bodies take.', labels, share('bytes', 'bytes'));
}
