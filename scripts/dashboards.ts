// Writes deploy/monitoring/dashboards/*.json for Grafana from the tables below: `npm run dashboards`.
import { writeFileSync } from 'node:fs';

/** Grafana's names of units; `suffix:` writes a word of ours behind the number. */
type Unit = 'short' | 's' | 'percentunit' | 'bytes' | 'reqps' | 'ops' | 'none' | 'suffix:tokens' | 'suffix:targets';

interface Panel {
  readonly title: string;
  readonly description: string;
  readonly unit: Unit;
  /** Expressions by legend. `$S` is where the choice of job and instance goes. */
  readonly queries: Readonly<Record<string, string>>;
}

interface Row {
  readonly title: string;
  /** The metrics are those of the process, which stand under no pool; absent = they are those of pools. */
  readonly ofProcess?: boolean;
  readonly panels: readonly Panel[];
}

export interface Dashboard {
  readonly file: string;
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly rows: readonly Row[];
}

const COLUMNS = 3;
/** Grafana's grid is 24 wide. */
const PANEL = { w: 24 / COLUMNS, h: 8 };
const PROCESS_CHOICE = 'job=~"$job", instance=~"$instance"';
/** Series of a process's own pool have no such label: `All` shows them, too. */
const CHOICE = `${PROCESS_CHOICE}, pool=~"$pool"`;

function panel(title: string, unit: Unit, description: string, queries: Readonly<Record<string, string>>): Panel {
  return { title, unit, description, queries };
}

/** Three quantiles of a histogram over all its series. */
function quantiles(metric: string): Record<string, string> {
  const of = (q: number) => `histogram_quantile(${q}, sum by (le) (rate(${metric}_bucket{$S}[$__rate_interval])))`;
  return { '99 %': of(0.99), '95 %': of(0.95), '50 %': of(0.5) };
}

const perSecond = (metric: string, ...by: string[]) =>
  `sum by (${by.join(', ')}) (rate(${metric}{$S}[$__rate_interval]))`;
const largest = (metric: string, ...by: string[]) => `max by (${by.join(', ')}) (${metric}{$S})`;
const total = (metric: string, ...by: string[]) => `sum by (${by.join(', ')}) (${metric}{$S})`;
const FLOW = '{{priority}} {{fairness_id}}';

const POOL: Row = {
  title: 'Pool',
  panels: [
    panel('Average KV cache utilization', 'percentunit', 'Mean over the ready endpoints.', {
      '{{name}}': largest('llm_d_epp_average_kv_cache_utilization', 'name'),
    }),
    panel('Average queue size', 'short', 'Requests waiting in a model server, mean over the ready endpoints.', {
      '{{name}}': largest('llm_d_epp_average_queue_size', 'name'),
    }),
    panel('Queue size per endpoint', 'short', 'Requests waiting in each model server.', {
      '{{model_server_endpoint}}': largest('llm_d_epp_per_endpoint_queue_size', 'model_server_endpoint'),
    }),
    panel('Average running requests', 'short', 'Requests running in a model server, mean over the ready endpoints.', {
      '{{name}}': largest('llm_d_epp_average_running_requests', 'name'),
    }),
    panel('Ready endpoints', 'short', 'Endpoints whose signals are fresh, as each picker sees them.', {
      '{{name}} {{instance}}': largest('llm_d_epp_ready_endpoints', 'name', 'instance'),
    }),
    panel('Unevenness', 'short', 'Standard deviation of waiting and running requests over the ready endpoints.', {
      'waiting {{name}}': largest('llm_d_epp_std_dev_queue_size', 'name'),
      'running {{name}}': largest('llm_d_epp_std_dev_running_requests', 'name'),
    }),
  ],
};

const REQUESTS: Row = {
  title: 'Requests',
  panels: [
    panel('Request latency', 's', 'From the arrival of a request to the end of its answer.', {
      ...quantiles('llm_d_epp_request_duration_seconds'),
    }),
    panel('Requests', 'reqps', 'Requests that were given a destination.', {
      '{{model_name}} → {{target_model_name}}': perSecond('llm_d_epp_request_total', 'model_name', 'target_model_name'),
    }),
    panel('Errors', 'reqps', 'Requests that ended in an error.', {
      '{{error_code}} {{model_name}} → {{target_model_name}}': perSecond(
        'llm_d_epp_request_error_total',
        ...['error_code', 'model_name', 'target_model_name'],
      ),
    }),
    panel('Request size', 'bytes', 'Bodies of requests.', quantiles('llm_d_epp_request_size_bytes')),
    panel('Response size', 'bytes', 'Bodies of answers.', quantiles('llm_d_epp_response_size_bytes')),
    panel('Running requests', 'short', 'Requests whose answer has not ended, by priority.', {
      '{{priority}}': total('llm_d_epp_request_running', 'priority'),
    }),
    panel('Input tokens', 'suffix:tokens', 'Prompt tokens per request.', quantiles('llm_d_epp_request_input_tokens')),
    panel('Output tokens', 'suffix:tokens', 'Output tokens per request.', quantiles('llm_d_epp_request_output_tokens')),
    panel('Cached share of the prompts', 'percentunit', 'Share of the prompt tokens that came from the caches.', {
      '{{instance}}': largest('pointsman:cached_tokens:ratio_5m', 'instance'),
    }),
    panel('Time to first token', 's', 'Streamed and whole answers.', quantiles('llm_d_epp_request_ttft_seconds')),
    panel('Time per output token', 's', 'After the first token, of streamed answers.', {
      ...quantiles('llm_d_epp_request_streaming_tpot_seconds'),
    }),
    panel('Time between chunks', 's', 'Of streamed answers.', quantiles('llm_d_epp_request_streaming_itl_seconds')),
  ],
};

const FLOW_CONTROL: Row = {
  title: 'Flow control',
  panels: [
    panel('Pool saturation', 'percentunit', 'How full the endpoints of a stage are; from 1 on requests wait.', {
      '{{inference_pool}} {{stage}}': largest('llm_d_epp_flow_control_pool_saturation', 'inference_pool', 'stage'),
    }),
    panel('Net queue flow', 'reqps', 'Above 0 the queues grow, below 0 they drain.', {
      'growth of the queues': 'sum(deriv(llm_d_epp_flow_control_queue_size{$S}[$__rate_interval]))',
    }),
    panel('Arrivals', 'reqps', 'Requests by priority and fairness id; the ten largest flows.', {
      [FLOW]:
        'topk(10, ' +
        `${perSecond('llm_d_epp_flow_control_request_enqueue_duration_seconds_count', 'priority', 'fairness_id')})`,
    }),
    panel('Queue depth', 'short', 'Requests that wait; the ten largest flows.', {
      [FLOW]: `topk(10, ${total('llm_d_epp_flow_control_queue_size', 'priority', 'fairness_id')})`,
    }),
    panel('Buffered bytes', 'bytes', 'Bodies of requests that wait; the ten largest flows.', {
      [FLOW]: `topk(10, ${total('llm_d_epp_flow_control_queue_bytes', 'priority', 'fairness_id')})`,
    }),
    panel('Outcomes', 'reqps', 'What flow control did with requests, those that did not wait included.', {
      '{{priority}} {{outcome}}': perSecond('llm_d_epp_flow_control_requests_total', 'priority', 'outcome'),
    }),
    panel('Waits by flow, 99 %', 's', 'Time in the queue; the ten longest.', {
      [FLOW]:
        'topk(10, histogram_quantile(0.99, sum by (priority, fairness_id, le) ' +
        '(rate(llm_d_epp_flow_control_request_queue_duration_seconds_bucket{$S}[$__rate_interval]))))',
    }),
    panel('Time of flow control itself, 99 %', 's', 'One round of dispatches, and the way of a request to its queue.', {
      dispatch: quantiles('llm_d_epp_flow_control_dispatch_cycle_duration_seconds')['99 %']!,
      enqueue: quantiles('llm_d_epp_flow_control_request_enqueue_duration_seconds')['99 %']!,
    }),
    panel('Dispatches by flow', 'reqps', 'Flows of one priority should get equal shares; the ten largest.', {
      [FLOW]:
        'topk(10, sum by (priority, fairness_id) ' +
        '(rate(llm_d_epp_flow_control_request_queue_duration_seconds_count{outcome="Dispatched", ' +
        '$S}[$__rate_interval])))',
    }),
  ],
};

const BANDS: Row = {
  title: 'Queues by band',
  panels: [
    panel('Waits by band, 99 %', 's', 'Time in the queue of requests that were dispatched.', {
      '{{inference_pool}} {{priority}}': largest('pointsman:queue_wait_seconds:p99_5m', 'inference_pool', 'priority'),
    }),
    panel('Use of the bounds', 'percentunit', 'Share of the requests, bytes and tokens that may wait in a band.', {
      'requests {{priority}}': largest('llm_d_epp_flow_control_capacity_utilization_requests', 'priority'),
      'bytes {{priority}}': largest('llm_d_epp_flow_control_capacity_utilization_bytes', 'priority'),
      'tokens {{priority}}': largest('pointsman_flow_control_capacity_utilization_tokens', 'priority'),
    }),
    panel('Refusals by cause', 'reqps', 'Requests that were not let into a queue, by the bound they met.', {
      '{{priority}} {{cause}}': perSecond('pointsman_flow_control_refusals_total', 'priority', 'cause'),
    }),
    panel('Refused share', 'percentunit', 'Share of the requests of a band that were not dispatched.', {
      '{{inference_pool}} {{priority}}': largest('pointsman:flow_control_lost:ratio_5m', 'inference_pool', 'priority'),
    }),
    panel('Buffered bytes by band', 'bytes', 'Bodies of requests that wait.', {
      '{{priority}}': total('llm_d_epp_flow_control_queue_bytes', 'priority'),
    }),
    panel('Evictions', 'ops', 'Running requests that were ended for waiting ones.', {
      '{{outcome}}': perSecond('llm_d_epp_flow_control_revocations_total', 'outcome'),
    }),
  ],
};

const ENDPOINTS: Row = {
  title: 'Endpoints and signals',
  panels: [
    panel('Age of the signals', 's', 'Time since the last good scrape of each endpoint.', {
      '{{endpoint}}': largest('pointsman_endpoint_signal_age_seconds', 'endpoint'),
    }),
    panel('Stale endpoints', 'short', 'Endpoints whose signals the saturation detector cannot use.', {
      '{{detector}} {{instance}}': largest('llm_d_epp_flow_control_stale_endpoints', 'detector', 'instance'),
    }),
    panel(
      'Age of the sources',
      's',
      'Time since the last good page, of the endpoint that has gone without for longest.',
      {
        '{{source_type}} {{instance}}': largest('pointsman_source_age_seconds', 'source_type', 'instance'),
      },
    ),
    panel('Unknown values', 'short', 'Endpoints whose values of a source are unknown.', {
      '{{source_type}} {{instance}}': largest('pointsman_source_stale_endpoints', 'source_type', 'instance'),
    }),
    panel('Failed scrapes', 'ops', 'Scrapes of model servers that failed.', {
      '{{instance}}': perSecond('pointsman_scrape_errors_total', 'instance'),
      '{{source_type}}': perSecond('llm_d_epp_datalayer_poll_errors_total', 'source_type'),
    }),
    panel('Ejected share', 'percentunit', 'Share of the endpoints that are out of the picks.', {
      '{{instance}}': largest('pointsman:ejected_endpoints:ratio', 'instance'),
    }),
    panel(
      'State of each endpoint',
      'none',
      '0 in, 1 out, 2 out with a probe under way, 3 dead: it takes no connections.',
      {
        '{{endpoint}}': largest('pointsman_endpoint_ejection_state', 'endpoint'),
      },
    ),
    panel('Ejections', 'ops', 'How often endpoints were taken out of the picks.', {
      '{{instance}}': perSecond('pointsman_endpoint_ejections_total', 'instance'),
    }),
    panel('Silent endpoints', 'none', '1 while requests in flight on an endpoint get no byte.', {
      '{{endpoint}}': largest('pointsman_endpoint_silent', 'endpoint'),
    }),
    panel('Requests in flight', 'short', 'By endpoint, over all pickers.', {
      '{{endpoint}}': total('pointsman_endpoint_inflight_requests', 'endpoint'),
    }),
    panel('Uncached tokens in flight', 'suffix:tokens', 'By endpoint, over all pickers.', {
      '{{endpoint}}': total('pointsman_endpoint_inflight_tokens', 'endpoint'),
    }),
    panel('Connected to NATS', 'none', '0 while a picker neither hears of other replicas nor tells them.', {
      '{{instance}}': largest('pointsman_replication_connected', 'instance'),
    }),
    panel('Refused messages of replicas', 'ops', 'Messages of other replicas that do not count here, by the reason.', {
      '{{instance}} {{reason}}': perSecond('pointsman_replication_bad_messages_total', 'instance', 'reason'),
    }),
    panel('Charges', 'short', 'Requests charged and not released yet.', {
      '{{instance}}': largest('pointsman_ledger_entries', 'instance'),
    }),
  ],
};

const TENANTS: Row = {
  title: 'Tenants',
  panels: [
    panel('Input tokens by tenant', 'suffix:tokens', 'Per second, as model servers report them; the ten largest.', {
      '{{fairness_id}}':
        'topk(10, sum by (fairness_id) (rate(pointsman_tenant_tokens_total{kind="input", ' + '$S}[$__rate_interval])))',
    }),
    panel('Output tokens by tenant', 'suffix:tokens', 'Per second, as model servers report them; the ten largest.', {
      '{{fairness_id}}':
        'topk(10, sum by (fairness_id) (rate(pointsman_tenant_tokens_total{kind="output", ' +
        '$S}[$__rate_interval])))',
    }),
    panel('Cached share by tenant', 'percentunit', 'Share of the input tokens that came from the caches.', {
      '{{fairness_id}}':
        'sum by (fairness_id) (rate(pointsman_tenant_tokens_total{kind="cached", $S}[$__rate_interval])) / sum by ' +
        '(fairness_id) (rate(pointsman_tenant_tokens_total{kind="input", $S}[$__rate_interval]))',
    }),
    panel('Mean wait by tenant', 's', 'Wait in flow control of all requests that it let through or refused.', {
      '{{fairness_id}}':
        `${perSecond('pointsman_tenant_wait_seconds_total', 'fairness_id')} / ` +
        `${perSecond('pointsman_tenant_requests_total', 'fairness_id')}`,
    }),
  ],
};

const INDEX: Row = {
  title: 'Prefix index',
  panels: [
    panel('Use of the index', 'short', 'Distinct blocks, and blocks counted once per endpoint that holds them.', {
      '{{what}} {{instance}}': 'max by (what, instance) (pointsman_prefix_index{what=~"blocks|memberships", $S})',
    }),
    panel('Changes of the index', 'ops', 'Blocks that were stored, evicted, removed or dropped.', {
      '{{what}}':
        'sum by (what) (rate(pointsman_prefix_index{what=~"stored|evicted|removed|dropped|refused", ' +
        '$S}[$__rate_interval]))',
    }),
    panel('Blocks by endpoint', 'short', 'Blocks that each endpoint is believed to hold.', {
      '{{endpoint}}': largest('pointsman_endpoint_prefix_blocks', 'endpoint'),
    }),
    panel('Hit ratio', 'percentunit', 'Share of the prompt, in blocks, that the best endpoint held.', {
      mean:
        'sum(rate(llm_d_epp_prefix_indexer_hit_ratio_sum{$S}[$__rate_interval])) / ' +
        'sum(rate(llm_d_epp_prefix_indexer_hit_ratio_count{$S}[$__rate_interval]))',
    }),
    panel('Prompt tokens computed anew', 'suffix:tokens', 'Per second, by cause: why no cache had them.', {
      '{{cause}}': perSecond('pointsman_cache_loss_tokens_total', 'cause'),
    }),
    panel('KV events', 'ops', 'Messages of engines, gaps in their numbers, and what was not used.', {
      messages: 'sum(rate(pointsman_kv_events_messages_total{$S}[$__rate_interval]))',
      gaps: 'sum(rate(pointsman_kv_events_gaps_total{$S}[$__rate_interval]))',
      'dropped: {{reason}}': perSecond('pointsman_kv_events_dropped_total', 'reason'),
    }),
    panel('Age of the KV events', 's', 'Time since the last events of each endpoint; an idle engine sends none.', {
      '{{endpoint}}': largest('pointsman_kv_events_age_seconds', 'endpoint'),
    }),
    panel('Blocks in use', 'short', 'Unique blocks in use by running requests, by endpoint.', {
      '{{endpoint}}': largest('pointsman_endpoint_active_blocks', 'endpoint'),
    }),
  ],
};

const SESSIONS: Row = {
  title: 'Sessions of agents',
  panels: [
    panel('Cache that sessions need', 'percentunit', 'At 1 the engine forgets some of them.', {
      '{{endpoint}}': largest('pointsman_session_used_ratio', 'endpoint'),
    }),
    panel('Sessions', 'short', 'By state, with those of the last five minutes and how many of their size fit.', {
      '{{state}}': total('llm_d_epp_thunder_agent_sessions', 'state'),
      active: 'sum(pointsman_session_active{$S})',
      fit: 'sum(pointsman_session_fit{$S})',
    }),
    panel(
      'Room for turns',
      'reqps',
      'Per second, by what sessions leave them; none = held, or at the cost of others.',
      {
        '{{room}}': perSecond('pointsman_session_looks_total', 'room'),
      },
    ),
    panel('Holds', 's', 'How long turns were held.', quantiles('pointsman_session_hold_seconds')),
    panel('Tokens computed again', 'suffix:tokens', 'Per second, of known sessions, by the fate of their place.', {
      '{{cause}}': perSecond('pointsman_session_recomputed_tokens_total', 'cause'),
    }),
    panel('Turns by their session', 'reqps', 'Per second: how it was found, and where header and prompt disagree.', {
      '{{how}}': perSecond('pointsman_session_turns_total', 'how'),
      'split: {{cause}}': perSecond('pointsman_session_splits_total', 'cause'),
    }),
    panel('Pauses', 's', 'Time between two turns of a session.', quantiles('pointsman_session_return_seconds')),
    panel('Worth of a place', 's', 'Idle time up to which a session keeps its place, by the number of its turns.', {
      '{{turns}} turns': largest('pointsman_session_keep_seconds', 'turns'),
    }),
  ],
};

const LEARNER: Row = {
  title: 'Learner',
  panels: [
    panel('State', 'none', '1 for the state that the adaptation is in.', {
      '{{state}} {{instance}}': largest('pointsman_adaptation_state', 'state', 'instance'),
    }),
    panel('Learned costs decide', 'none', '1 while learned costs decide, 0 while the configured weights do.', {
      '{{instance}}': largest('pointsman_adaptation_driving', 'instance'),
      'taken back {{instance}}': largest('pointsman_adaptation_fallbacks_total', 'instance'),
    }),
    panel('Gap of the costs', 'percentunit', 'Below 0 learned costs are better; with the 95 % interval.', {
      '{{bound}} {{instance}}': largest('pointsman_adaptation_cost_gap', 'bound', 'instance'),
    }),
    panel('Quality of the predictions', 'none', 'Rank correlation with observed times; share of equal picks.', {
      'correlation {{instance}}': largest('pointsman_adaptation_rank_correlation', 'instance'),
      'agreement {{instance}}': largest('pointsman_adaptation_agreement', 'instance'),
    }),
    panel('Shares in the decisions', 'percentunit', 'What told endpoints apart.', {
      '{{term}}': largest('pointsman_adaptation_decision_share', 'term'),
    }),
    panel('Predicted and observed times', 's', 'Of the last requests.', {
      '{{time}} {{source}} {{quantile}}': largest(
        'pointsman_adaptation_latency_seconds',
        ...['time', 'source', 'quantile'],
      ),
    }),
    panel('Slowness of endpoints', 'none', 'How much longer output takes there; 1 is as long as on the others.', {
      '{{endpoint}}': largest('pointsman_adaptation_endpoint_slowness', 'endpoint'),
    }),
    panel('Training samples', 'ops', 'Finished requests by outcome of their samples.', {
      '{{outcome}}': perSecond('pointsman_adaptation_labels_total', 'outcome'),
    }),
    panel('Prediction servers', 'reqps', 'Questions by outcome.', {
      '{{outcome}}': perSecond('pointsman_prediction_server_requests_total', 'outcome'),
    }),
  ],
};

const candidateCost = (configuration: string) =>
  `sum by (objective) (rate(pointsman_shadow_cost_targets_total{configuration="${configuration}", ` +
  '$S}[$__rate_interval]))';

const CANDIDATE: Row = {
  title: 'Candidate configuration',
  panels: [
    panel('Share of other picks', 'percentunit', 'Decisions in which the candidate picked another endpoint, or none.', {
      '{{objective}}':
        `${perSecond('pointsman_shadow_different_total', 'objective')} / ` +
        `${perSecond('pointsman_shadow_decisions_total', 'objective')}`,
    }),
    panel('Saved cost', 'percentunit', 'Share of the predicted cost that the candidate saves; below 0 it costs more.', {
      '{{objective}}': `1 - ${candidateCost('candidate')} / ${candidateCost('running')}`,
    }),
    panel('Predicted cost of both', 'suffix:targets', 'Per second, of the requests that both have placed.', {
      '{{configuration}}': perSecond('pointsman_shadow_cost_targets_total', 'configuration'),
    }),
    panel('Decisions of the candidate', 'reqps', 'Requests that it decided too, by objective.', {
      '{{objective}}': perSecond('pointsman_shadow_decisions_total', 'objective'),
    }),
    panel('Unplaced by the candidate', 'reqps', 'Requests for which it had no endpoint.', {
      '{{objective}}': perSecond('pointsman_shadow_unplaced_total', 'objective'),
    }),
    panel('Versions of the candidate', 'short', 'Versions of its file, by outcome.', {
      '{{outcome}} {{instance}}': largest('pointsman_shadow_config_reloads_total', 'outcome', 'instance'),
    }),
  ],
};

const PROCESS: Row = {
  title: 'The picker itself',
  ofProcess: true,
  panels: [
    panel('Restarts of shards', 'short', 'Shard threads that died and were started again, within an hour.', {
      'shard {{shard}} {{instance}}': 'sum by (shard, instance) (increase(pointsman_shard_deaths_total{$S}[1h]))',
    }),
    panel('Turned away', 'reqps', 'Streams turned away because the picker had too much to do.', {
      '{{instance}}': perSecond('pointsman_overload_rejections_total', 'instance'),
    }),
    panel('Decision time, 99 %', 's', 'One scheduling decision.', {
      '{{instance}}': largest('pointsman:decision_seconds:p99_5m', 'instance'),
    }),
    panel('Own time in the request phase', 's', 'What the picker adds before the model server.', {
      ...quantiles('llm_d_epp_request_processing_duration_seconds'),
    }),
    panel('Open streams', 'short', 'ext_proc streams; with --enable-grpc-stream-metrics.', {
      '{{instance}}': total('llm_d_epp_extproc_streams_inflight', 'instance'),
    }),
    panel('Spans', 'ops', 'Spans of traces by outcome.', {
      '{{outcome}} {{instance}}': perSecond('pointsman_trace_spans_total', 'outcome', 'instance'),
    }),
    panel('Failures of plugins', 'ops', 'Calls of hook plugins that threw or took too long.', {
      '{{plugin}}': perSecond('pointsman_plugin_failures_total', 'plugin'),
    }),
    panel('Lag of the control thread, 99 %', 's', 'How late the control thread does its work.', {
      '{{instance}}': largest('nodejs_eventloop_lag_p99_seconds', 'instance'),
    }),
    panel('Processor', 'none', 'Cores in use.', {
      '{{instance}}': perSecond('process_cpu_seconds_total', 'instance'),
    }),
    panel('Memory', 'bytes', 'Resident memory.', {
      '{{instance}}': largest('process_resident_memory_bytes', 'instance'),
    }),
    panel('Last word of the API server', 's', 'Up to 60 s is usual.', {
      '{{kind}} {{instance}}': largest('pointsman_kubernetes_last_heard_seconds', 'kind', 'instance'),
    }),
    panel('Leader', 'none', '1 for the replica that leads.', {
      '{{instance}}': largest('pointsman_kubernetes_leader', 'instance'),
    }),
    panel('Configuration', 'short', 'Versions of the configuration file, by outcome.', {
      '{{outcome}} {{instance}}': largest('pointsman_config_reloads_total', 'outcome', 'instance'),
    }),
  ],
};

export const DASHBOARDS: readonly Dashboard[] = [
  {
    file: 'gateway.json',
    uid: 'pointsman-gateway',
    title: 'Pointsman: gateway',
    description: 'Pool, requests and flow control: the panels of the dashboard of llm-d-router.',
    rows: [POOL, REQUESTS, FLOW_CONTROL],
  },
  {
    file: 'picker.json',
    uid: 'pointsman-picker',
    title: 'Pointsman: picker',
    description:
      'Queues by band, tenants, endpoints, prefix index, learner, candidate configuration, and the picker itself.',
    rows: [BANDS, SESSIONS, TENANTS, ENDPOINTS, INDEX, LEARNER, CANDIDATE, PROCESS],
  },
];

const DATASOURCE = { type: 'prometheus', uid: '$datasource' };

function choice(name: string, query: string): object {
  return {
    ...{ name, label: name, type: 'query', datasource: DATASOURCE, query: { query, refId: name }, refresh: 2 },
    ...{ includeAll: true, allValue: '.*', multi: true, current: { text: 'All', value: '$__all' }, sort: 1 },
  };
}

const VARIABLES = [
  { name: 'datasource', label: 'data source', type: 'datasource', query: 'prometheus', refresh: 1 },
  choice('job', 'label_values(pointsman_info, job)'),
  choice('instance', 'label_values(pointsman_info{job=~"$job"}, instance)'),
  choice('pool', `label_values(llm_d_epp_ready_endpoints{${PROCESS_CHOICE}}, pool)`),
];

/** A query by pool: labels of two pools may be equal, such as names of endpoints. */
function byPool(expr: string): string {
  return expr.replaceAll('$S', CHOICE).replaceAll(/by \((?!le\)|\))/g, 'by (pool, ');
}

const withPool = (legend: string) => (legend.includes('{{') ? `{{pool}} ${legend}` : legend);

function drawn(
  { title, description, unit, queries }: Panel,
  ofProcess: boolean,
  id: number,
  x: number,
  y: number,
): object {
  const custom = { drawStyle: 'line', lineWidth: 1, fillOpacity: 10, showPoints: 'never' };
  return {
    ...{ id, title, description, type: 'timeseries', datasource: DATASOURCE, gridPos: { ...PANEL, x, y } },
    fieldConfig: { defaults: { unit, custom }, overrides: [] },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: Object.entries(queries).map(([legendFormat, expr], index) => ({
      ...{ refId: String.fromCharCode(65 + index), datasource: DATASOURCE },
      legendFormat: ofProcess ? legendFormat : withPool(legendFormat),
      expr: ofProcess ? expr.replaceAll('$S', PROCESS_CHOICE) : byPool(expr),
    })),
  };
}

/** The JSON of a dashboard. Panels stand three in a line under the title of their row. */
export function dashboardJson({ uid, title, description, rows }: Dashboard): string {
  const panels: object[] = [];
  let y = 0;
  for (const row of rows) {
    const gridPos = { x: 0, y, w: 24, h: 1 };
    panels.push({ id: panels.length + 1, type: 'row', title: row.title, collapsed: false, gridPos, panels: [] });
    y += 1;
    for (const [index, each] of row.panels.entries()) {
      const line = Math.floor(index / COLUMNS);
      panels.push(
        drawn(each, row.ofProcess === true, panels.length + 1, (index % COLUMNS) * PANEL.w, y + line * PANEL.h),
      );
    }
    y += Math.ceil(row.panels.length / COLUMNS) * PANEL.h;
  }
  const shown = { uid, title, description, tags: ['pointsman'], schemaVersion: 39, editable: true };
  const times = { time: { from: 'now-1h', to: 'now' }, refresh: '30s', timezone: 'browser' };
  return `${JSON.stringify({ ...shown, ...times, templating: { list: VARIABLES }, panels }, null, 1)}\n`;
}

if (process.argv[1] === import.meta.filename) {
  for (const dashboard of DASHBOARDS) {
    const file = new URL(`../deploy/monitoring/dashboards/${dashboard.file}`, import.meta.url);
    writeFileSync(file, dashboardJson(dashboard));
  }
}
