import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../tools/gateway/client.ts';
import { metric, metricsPage, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** What llm-d-router exports, without its prefix; the metrics reference of its repository lists them. */
const ROUTER_METRICS = `
request_total
request_error_total
request_duration_seconds
request_size_bytes
response_size_bytes
request_input_tokens
request_output_tokens
request_cached_tokens
request_running
request_ntpot_seconds
request_ttft_seconds
request_streaming_tpot_seconds
request_streaming_itl_seconds
average_kv_cache_utilization
average_queue_size
average_running_requests
std_dev_kv_cache_utilization
std_dev_queue_size
std_dev_running_requests
ready_endpoints
per_endpoint_queue_size
scheduler_e2e_duration_seconds
scheduler_attempts_total
plugin_duration_seconds
plugin_data_scope_violations_total
request_processing_duration_seconds
response_processing_duration_seconds
info
flow_control_request_queue_duration_seconds
flow_control_dispatch_cycle_duration_seconds
flow_control_request_enqueue_duration_seconds
flow_control_queue_size
flow_control_queue_bytes
flow_control_pool_saturation
flow_control_stale_endpoints
flow_control_capacity_utilization_requests
flow_control_capacity_utilization_bytes
flow_control_global_capacity_utilization_requests
flow_control_global_capacity_utilization_bytes
flow_control_requests_total
flow_control_revocations_issued_total
flow_control_revocations_total
flow_control_reclaim_target
flow_control_pending_reclaim
flow_control_revocation_confirmation_seconds
model_rewrite_decisions_total
datalayer_poll_errors_total
datalayer_extract_errors_total
prefix_indexer_size
prefix_indexer_hit_ratio
prefix_indexer_hit_bytes
inflight_requests
inflight_tokens
encoder_cache_queries_total
encoder_cache_hits_total
encoder_cache_hit_ratio
inference_request_metric
request_predicted_ttft_seconds
request_predicted_tpot_seconds
request_ttft_prediction_duration_seconds
request_tpot_prediction_duration_seconds
request_slo_violation_total
disagg_decision_total
pd_decision_total
disaggregatedset_strict_header_no_match_total
disaggregatedset_revision_gating_share
program_aware_jains_fairness_index
program_aware_avg_wait_time_milliseconds
program_aware_attained_service_tokens
extproc_streams_inflight
extproc_stream_duration_seconds
extproc_streams_total
kv_cache_index_admissions_total
kv_cache_index_evictions_total
kv_cache_index_lookup_requests_total
kv_cache_index_max_pod_hit_count_total
kv_cache_index_lookup_hits_total
kv_cache_index_lookup_latency_seconds
kv_cache_events_dedup_removed_hashes_suppressed_total
kv_cache_events_dedup_removed_hashes_forwarded_total
kv_cache_events_stores_skipped_total
kv_cache_events_removals_skipped_total
kv_cache_events_active_subscribers
kv_cache_events_subscriber_reconnections_total
kv_cache_events_messages_received_total
kv_cache_events_zmq_errors_total
kv_cache_events_pool_queue_depth
kv_cache_events_pool_capacity
`
  .trim()
  .split(/\s+/);

/**
 * Where metrics are defined that are shown once there is something to count, or where the configuration asks for it.
 */
const TABLES = [
  'telemetry/metric-table.ts',
  'telemetry/queue-kinds.ts',
  'telemetry/exposition.ts',
  'metrics/flow-control-metrics.ts',
  'metrics/eviction-counts.ts',
  'metrics/rollout-shares.ts',
  'metrics/kv-event-metrics.ts',
];

const text = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const PLUGINS = `featureGates: [flowControl]
plugins:
- {type: queue-scorer}
- {type: prefix-cache-scorer}
- {type: approx-prefix-cache-producer, parameters: {blockSizeTokens: 16}}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: prefix-cache-scorer}]}
`;

/** A picker over one endpoint that nothing listens for. */
async function serve(profile = PLUGINS, ...flags: string[]) {
  const setting = await Setting.create([{ name: 'away', port: 21_099 }], profile);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  return ports;
}

describe('the metrics of llm-d-router', () => {
  it('the metrics of llm-d-router are shown under their names, or named on the compatibility page with the reason', async () => {
    const { metricsPort } = await serve(PLUGINS, '--enable-grpc-stream-metrics');
    const page = await metricsPage(metricsPort);
    const document = text('docs/compatibility.md');
    const tables = TABLES.map((table) => text(`src/operations/${table}`)).join('');
    const shown = (name: string) =>
      page.includes(`# TYPE llm_d_epp_${name} `) ||
      tables.includes(`'llm_d_epp_${name}'`) ||
      tables.includes(`'${name.replace('flow_control_', '')}'`);
    const missing = ROUTER_METRICS.filter((name) => !shown(name) && !document.includes(`\`${name}\``));
    expect(missing).toEqual([]);
  });

  it('the metrics of llm-d-router count polls that fail by the type of the source', async () => {
    const { metricsPort } = await serve();
    const polls = 'datalayer_poll_errors_total';
    const source = 'source_type="metrics-data-source"';
    await eventually('a poll has failed', async () => {
      return (await metric(metricsPort, `llm_d_epp_${polls}`, source))! > 0;
    });
    expect(await metric(metricsPort, `llm_d_inference_scheduler_${polls}`, source)).toBeGreaterThan(0);
    const extractions = `source_type="metrics-data-source",extractor_type="core-metrics-extractor"`;
    expect(await metric(metricsPort, 'llm_d_epp_datalayer_extract_errors_total', extractions)).toBe(0);
  });
});

describe('GET /debug/plugins/state', () => {
  it.each([PLUGINS, PLUGINS.slice(PLUGINS.indexOf('plugins:'))])(
    'GET /debug/plugins/state lists every plugin with its state, with and without flow control',
    async (profile) => {
      const { metricsPort } = await serve(profile);
      const response = await fetch(`http://127.0.0.1:${metricsPort}/debug/plugins/state`);
      expect(response.status).toBe(200);
      const { timestamp, plugins } = (await response.json()) as {
        timestamp: string;
        plugins: Record<string, { name: string; type: string; state?: object; message?: string }>;
      };
      expect(new Date(timestamp).toISOString()).toBe(timestamp);
      const producer = plugins['approx-prefix-cache-producer'];
      expect(producer?.state).toEqual({
        endpoints: [{ endpoint: 'default/away', blocks: 0 }],
        totalEndpoints: 1,
        maxEndpoints: 100,
        truncated: false,
      });
      for (const [key, { name, type, state, message }] of Object.entries(plugins)) {
        expect([name, type], key).toEqual([key, expect.any(String)]);
        expect([typeof state, typeof message].sort(), key).toEqual(
          state === undefined ? ['string', 'undefined'] : ['object', 'undefined'],
        );
      }
    },
  );
});
