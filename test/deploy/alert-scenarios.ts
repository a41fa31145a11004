/** Samples of a series at every minute, in promtool's notation: `start+step x count`, `value x count`, `_` = none. */
type Series = Readonly<Record<string, string>>;

export interface AlertScenario {
  /** Minute at which the alert must fire with the first series, and must not with the second ones. */
  readonly minute: number;
  readonly fires: Series;
  /** The same situation, just short of the condition. */
  readonly quiet: Series;
  /** Labels of the alert that fires, beside its name and severity. */
  readonly labels: Readonly<Record<string, string>>;
}

const PICKER = 'job="epp", instance="a:9090"';
const INFO = { [`pointsman_info{version="1", ${PICKER}}`]: '1x60' };
const TARGET = { job: 'epp', instance: 'a:9090' };
const OTHER_JOB = 'job="web", instance="b:80"';

/** One series of a picker with further labels. */
const of = (metric: string, labels = '') => `${metric}{${labels === '' ? '' : `${labels}, `}${PICKER}}`;

/** `count` endpoints, none of them out by itself: the gauge of all says how many are. */
function endpoints(count: number, ejected: number): Series {
  const each = Array.from({ length: count }, (_, index) => [
    of('pointsman_endpoint_ejection_state', `endpoint="e${index}"`),
    '0x60',
  ]);
  return { ...Object.fromEntries(each), [of('pointsman_ejected_endpoints')]: `${ejected}x60` };
}

/** A histogram with one bucket below and one above the limit of interest, and calls per minute in both. */
function histogram(name: string, labels: string, [low, high]: readonly [string, string], quick: number, slow: number) {
  const comma = labels === '' ? '' : `, ${labels}`;
  return {
    [of(`${name}_bucket`, `le="${low}"${comma}`)]: `0+${quick}x60`,
    [of(`${name}_bucket`, `le="${high}"${comma}`)]: `0+${quick + slow}x60`,
    [of(`${name}_bucket`, `le="+Inf"${comma}`)]: `0+${quick + slow}x60`,
  };
}

const decisions = (quick: number, slow: number) =>
  histogram('llm_d_epp_scheduler_e2e_duration_seconds', '', ['0.005', '0.01'], quick, slow);
const FLOW = 'inference_pool="p", priority="5"';
const waits = (quick: number, slow: number, outcome = 'Dispatched') =>
  histogram(
    'llm_d_epp_flow_control_request_queue_duration_seconds',
    `outcome="${outcome}", fairness_id="t", model_name="m", target_model_name="m", ${FLOW}`,
    ['10', '30'],
    quick,
    slow,
  );

function errors(requests: number, failed: number): Series {
  const model = 'fairness_id="t", model_name="m", priority="0", target_model_name="m"';
  return {
    [of('llm_d_epp_request_total', model)]: `0+${requests}x60`,
    [of('llm_d_epp_request_error_total', `error_code="500", ${model}`)]: `0+${failed}x60`,
  };
}

function flowOutcomes(counts: Readonly<Record<string, number>>): Series {
  const series = Object.entries(counts).map(([outcome, each]) => [
    of('llm_d_epp_flow_control_requests_total', `outcome="${outcome}", ${FLOW}`),
    `0+${each}x60`,
  ]);
  return Object.fromEntries(series);
}

function predictions(counts: Readonly<Record<string, number>>): Series {
  const series = Object.entries(counts).map(([outcome, each]) => [
    of('pointsman_prediction_server_requests_total', `outcome="${outcome}"`),
    `0+${each}x60`,
  ]);
  return Object.fromEntries(series);
}

const POD = 'kind="Pod", group=""';

/** Scenarios by alert. */
export const alertScenarios: Readonly<Record<string, AlertScenario>> = {
  PointsmanAbsent: { minute: 10, fires: { [`up{${OTHER_JOB}}`]: '1x60' }, quiet: INFO, labels: {} },
  PointsmanNoReadyEndpoints: {
    minute: 10,
    fires: { ...INFO, [of('llm_d_epp_ready_endpoints', 'name="p"')]: '3 3 0x60' },
    quiet: {
      ...INFO,
      [of('llm_d_epp_ready_endpoints', 'name="p"')]: '1x60',
      // The page of llm-d-router, which has its own alerts.
      [`llm_d_epp_ready_endpoints{name="p", ${OTHER_JOB}}`]: '0x60',
    },
    labels: { ...TARGET, name: 'p' },
  },
  PointsmanEndpointsEjected: { minute: 10, fires: endpoints(8, 3), quiet: endpoints(8, 2), labels: TARGET },
  PointsmanEndpointsDead: {
    minute: 10,
    fires: { [of('pointsman_dead_endpoints')]: '0 0 2x60' },
    quiet: { [of('pointsman_dead_endpoints')]: '0 1 0x60' },
    labels: TARGET,
  },
  PointsmanEndpointsFlapping: {
    minute: 30,
    fires: { [of('pointsman_endpoint_ejections_total')]: '0+1x60' },
    quiet: { [of('pointsman_endpoint_ejections_total')]: '0x10 5x50' },
    labels: TARGET,
  },
  PointsmanEndpointSilent: {
    minute: 10,
    fires: { [of('pointsman_endpoint_silent', 'endpoint="e"')]: '0x5 1x60' },
    quiet: { [of('pointsman_endpoint_silent', 'endpoint="e"')]: '0x9 1 0x60' },
    labels: { ...TARGET, endpoint: 'e' },
  },
  PointsmanSignalsOld: {
    minute: 10,
    fires: {
      [of('pointsman_endpoint_signal_age_seconds', 'endpoint="e"')]: '0 0 0 0+60x60',
      [of('pointsman_endpoint_scrape_interval_seconds', 'endpoint="e"')]: '0.05x60',
    },
    quiet: {
      [of('pointsman_endpoint_signal_age_seconds', 'endpoint="e"')]: '14x60',
      [of('pointsman_endpoint_scrape_interval_seconds', 'endpoint="e"')]: '0.05x60',
      // Scraped once a minute by the flag: never older than that.
      [of('pointsman_endpoint_signal_age_seconds', 'endpoint="slow"')]: '59x60',
      [of('pointsman_endpoint_scrape_interval_seconds', 'endpoint="slow"')]: '60x60',
    },
    labels: { ...TARGET, endpoint: 'e' },
  },
  PointsmanMetricsFrozen: {
    minute: 10,
    fires: { [of('pointsman_endpoint_metrics_frozen', 'endpoint="e"')]: '0x5 1x60' },
    quiet: { [of('pointsman_endpoint_metrics_frozen', 'endpoint="e"')]: '0x9 1 0x60' },
    labels: { ...TARGET, endpoint: 'e' },
  },
  PointsmanShardRestarted: {
    minute: 20,
    fires: { [of('pointsman_shard_deaths_total', 'shard="1"')]: '0x10 1x50' },
    quiet: { [of('pointsman_shard_deaths_total', 'shard="1"')]: '7x60' },
    labels: { ...TARGET, shard: '1' },
  },
  PointsmanShardsRestartAgain: {
    minute: 20,
    fires: {
      [of('pointsman_shard_deaths_total', 'shard="1"')]: '0x10 4x50',
      [of('pointsman_shard_deaths_total', 'shard="2"')]: '0x10 4x50',
    },
    quiet: { [of('pointsman_shard_deaths_total', 'shard="1"')]: '0x10 4x50' },
    labels: TARGET,
  },
  PointsmanConnectionsRefused: {
    minute: 10,
    fires: { [of('pointsman_shard_refused_connections_total', 'shard="1",reason="plain_text"')]: '0+5x60' },
    quiet: { [of('pointsman_shard_refused_connections_total', 'shard="1",reason="plain_text"')]: '500x60' },
    labels: { ...TARGET, reason: 'plain_text' },
  },
  PointsmanAddressRefused: {
    minute: 10,
    fires: { [of('pointsman_shard_address_refusals_total', 'reason="streams"')]: '0+5x60' },
    quiet: { [of('pointsman_shard_address_refusals_total', 'reason="streams"')]: '500x60' },
    labels: { ...TARGET, reason: 'streams' },
  },
  PointsmanOverloaded: {
    minute: 10,
    fires: { [of('pointsman_overload_rejections_total')]: '0+5x60' },
    quiet: { [of('pointsman_overload_rejections_total')]: '500x60' },
    labels: TARGET,
  },
  PointsmanDecisionsSlow: { minute: 20, fires: decisions(90, 10), quiet: decisions(1000, 1), labels: TARGET },
  PointsmanControlThreadSlow: {
    minute: 20,
    fires: { ...INFO, [of('nodejs_eventloop_lag_p99_seconds')]: '0.4x60' },
    quiet: {
      ...INFO,
      [of('nodejs_eventloop_lag_p99_seconds')]: '0.2x60',
      // Another program in Node.js.
      [`nodejs_eventloop_lag_p99_seconds{${OTHER_JOB}}`]: '3x60',
    },
    labels: TARGET,
  },
  PointsmanLedgerFull: {
    minute: 15,
    fires: { [of('pointsman_ledger_full_total')]: '0x10 3x50' },
    quiet: { [of('pointsman_ledger_full_total')]: '3x60' },
    labels: TARGET,
  },
  PointsmanErrors: { minute: 15, fires: errors(100, 6), quiet: errors(100, 4), labels: TARGET },
  PointsmanQueueWaitsLong: {
    minute: 25,
    fires: waits(90, 10),
    // Requests that waited in vain count in PointsmanRequestsLost.
    quiet: { ...waits(1000, 1), ...waits(0, 100, 'EvictedTTL') },
    labels: { ...TARGET, inference_pool: 'p', priority: '5' },
  },
  PointsmanQueueNearlyFull: {
    minute: 10,
    fires: {
      [of('llm_d_epp_flow_control_capacity_utilization_requests', FLOW)]: '0.1x60',
      [of('llm_d_epp_flow_control_capacity_utilization_bytes', FLOW)]: '0.95x60',
    },
    quiet: {
      [of('llm_d_epp_flow_control_capacity_utilization_requests', FLOW)]: '0.9x60',
      [of('llm_d_epp_flow_control_capacity_utilization_bytes', FLOW)]: '0.8x60',
      [of('pointsman_flow_control_capacity_utilization_tokens', FLOW)]: '0.7x60',
    },
    labels: { ...TARGET, inference_pool: 'p', priority: '5' },
  },
  PointsmanTurnsHeldLong: {
    minute: 25,
    fires: {
      ...histogram('pointsman_session_hold_seconds', '', ['60', '90'], 90, 10),
      [of('pointsman_session_max_wait_seconds')]: '120x60',
    },
    quiet: {
      ...histogram('pointsman_session_hold_seconds', '', ['60', '90'], 90, 10),
      // The same waits, of a longer bound.
      [of('pointsman_session_max_wait_seconds')]: '300x60',
    },
    labels: TARGET,
  },
  PointsmanRequestsLost: {
    minute: 15,
    fires: flowOutcomes({ Dispatched: 90, RejectedCapacity: 4, EvictedTTL: 6 }),
    // A client that goes away is no loss.
    quiet: flowOutcomes({ Dispatched: 80, RejectedCapacity: 2, EvictedTTL: 2, EvictedContextCancelled: 16 }),
    labels: { ...TARGET, inference_pool: 'p', priority: '5' },
  },
  PointsmanPoolSaturated: {
    minute: 30,
    fires: {
      ...INFO,
      [of('llm_d_epp_flow_control_pool_saturation', 'inference_pool="p", stage="effective"')]: '1.2x60',
    },
    quiet: {
      ...INFO,
      [of('llm_d_epp_flow_control_pool_saturation', 'inference_pool="p", stage="effective"')]: '0.9x60',
      [of('llm_d_epp_flow_control_pool_saturation', 'inference_pool="p", stage="prefill"')]: '1.2x60',
    },
    labels: { ...TARGET, inference_pool: 'p', stage: 'effective' },
  },
  PointsmanConfigurationNotApplied: {
    minute: 30,
    fires: { [of('pointsman_config_reloads_total', 'outcome="invalid"')]: '0x10 1x50' },
    quiet: {
      [of('pointsman_config_reloads_total', 'outcome="invalid"')]: '2x60',
      [of('pointsman_config_reloads_total', 'outcome="applied"')]: '0x10 1x50',
    },
    labels: { ...TARGET, outcome: 'invalid' },
  },
  PointsmanPoolsFileNotApplied: {
    minute: 30,
    fires: { [of('pointsman_pools_file_rejected')]: '0x10 1x50' },
    quiet: { [of('pointsman_pools_file_rejected')]: '1x1 0x58' },
    labels: TARGET,
  },
  PointsmanPluginFails: {
    minute: 15,
    fires: { [of('pointsman_plugin_failures_total', 'plugin="mine"')]: '0+1x60' },
    quiet: { [of('pointsman_plugin_failures_total', 'plugin="mine"')]: '9x60' },
    labels: { ...TARGET, plugin: 'mine' },
  },
  PointsmanKubernetesNotSynced: {
    minute: 10,
    fires: {
      [of('pointsman_kubernetes_synced', POD)]: '0x60',
      [of('pointsman_kubernetes_kind_served', POD)]: '1x60',
    },
    // A kind that the cluster does not have.
    quiet: {
      [of('pointsman_kubernetes_synced', POD)]: '0x60',
      [of('pointsman_kubernetes_kind_served', POD)]: '0x60',
    },
    labels: { ...TARGET, kind: 'Pod' },
  },
  PointsmanKubernetesSilent: {
    minute: 15,
    fires: { [of('pointsman_kubernetes_last_heard_seconds', POD)]: '0+60x60' },
    quiet: { [of('pointsman_kubernetes_last_heard_seconds', POD)]: '60x60' },
    labels: { ...TARGET, kind: 'Pod' },
  },
  PointsmanObjectsRejected: {
    minute: 15,
    fires: { [of('pointsman_kubernetes_rejected_objects', POD)]: '1x60' },
    quiet: { [of('pointsman_kubernetes_rejected_objects', POD)]: '1x10 0x50' },
    labels: { ...TARGET, kind: 'Pod' },
  },
  PointsmanFileNotKept: {
    minute: 15,
    fires: { [of('pointsman_kept_file_unsaved', 'file="usage"')]: '1x60' },
    quiet: { [of('pointsman_kept_file_unsaved', 'file="usage"')]: '1x3 0x50' },
    labels: { ...TARGET, file: 'usage' },
  },
  PointsmanLearnedCostsTakenBack: {
    minute: 50,
    fires: { [of('pointsman_adaptation_fallbacks_total')]: '0x10 1x10 2x10 4x30' },
    quiet: { [of('pointsman_adaptation_fallbacks_total')]: '5x20 6x40' },
    labels: TARGET,
  },
  PointsmanPredictionServersFail: {
    minute: 15,
    fires: predictions({ predicted: 30, partial: 10, timeout: 60 }),
    quiet: predictions({ predicted: 30, partial: 30, timeout: 40 }),
    labels: TARGET,
  },
  PointsmanKvEventsLost: {
    minute: 30,
    fires: { [of('pointsman_kv_events_gaps_total')]: '0+12x60' },
    quiet: { [of('pointsman_kv_events_gaps_total')]: '0+3x60' },
    labels: TARGET,
  },
  PointsmanReplicasApart: {
    minute: 10,
    fires: { [of('pointsman_replication_connected')]: '1x3 0x30' },
    quiet: { [of('pointsman_replication_connected')]: '1x3 0 1x30' },
    labels: TARGET,
  },
  PointsmanReplicaMessagesRefused: {
    minute: 20,
    fires: { [of('pointsman_replication_bad_messages_total', 'reason="signature"')]: '0+12x60' },
    quiet: { [of('pointsman_replication_bad_messages_total', 'reason="signature"')]: '0+5x60' },
    labels: { ...TARGET, reason: 'signature' },
  },
};
