import { type HealthReport, TENANT_REFUSALS } from '../../src/operations/health-report.js';
import { type Condition, condition, type PickerReading, type Severity } from './condition.js';
import type { Sample, Samples } from './exposition.js';

/** Counter that does not rise in a healthy picker. */
interface Watched {
  readonly metric: string;
  readonly about: string;
  readonly what: string;
  /** Severity while the counter rises. */
  readonly severity: Severity;
  readonly remedy: string;
  /** Whether a sample counts; absent = all do. */
  readonly counts?: (labels: Sample['labels']) => boolean;
  /** Label whose values are named. */
  readonly label?: string;
  /** Its rise in the last minute; absent = that of the whole metric. */
  readonly lastMinute?: (rises: HealthReport['lastMinute']) => number;
}

/** Reasons of `pointsman_kv_events_dropped_total` that a setting ends. */
const UNFIT: ReadonlySet<string> = new Set(['block size', 'unnamed model', 'unnamed adapter', 'no room']);
const refusedLately = (rises: HealthReport['lastMinute']) => rises.pointsman_flow_control_refusals_total ?? 0;
const refusedTenantsLately = (rises: HealthReport['lastMinute']) => rises[TENANT_REFUSALS] ?? 0;

const WATCHED: readonly Watched[] = [
  {
    metric: 'pointsman_shard_deaths_total',
    about: 'shards',
    what: 'died and were started again',
    severity: 'error',
    remedy: 'see the log for the reason',
    label: 'shard',
  },
  {
    metric: 'pointsman_overload_rejections_total',
    about: 'overload',
    what: 'streams were turned away because the picker itself had too much to do',
    severity: 'error',
    remedy: 'add --shards or replicas',
  },
  {
    metric: 'pointsman_shard_refused_connections_total',
    about: 'TLS',
    what: 'connections of plain text were refused at the TLS port of ext_proc',
    severity: 'error',
    remedy: 'let the proxy speak TLS (chart: provider.name=istio), or set --secure-serving=false',
    counts: ({ reason }) => reason === 'plain_text',
  },
  {
    metric: 'pointsman_shard_refused_connections_total',
    about: 'TLS',
    what: 'connections to the ext_proc port were refused in their TLS handshake',
    severity: 'warning',
    remedy: 'the log names the reason; see --cert-path, --client-ca-file and who else connects',
    label: 'reason',
    counts: ({ reason }) => reason !== 'plain_text' && reason !== 'connections' && reason !== 'idle',
  },
  {
    metric: 'pointsman_shard_refused_connections_total',
    about: 'connections',
    what: 'were closed because as many as there may be were open',
    severity: 'error',
    remedy: 'raise --max-connections',
    counts: ({ reason }) => reason === 'connections',
  },
  {
    metric: 'pointsman_shard_refused_connections_total',
    about: 'connections',
    what: 'were closed while not in use, because as many as there may be were open',
    severity: 'warning',
    remedy: 'the log names an address: see who connects, or raise --max-connections',
    counts: ({ reason }) => reason === 'idle',
  },
  {
    metric: 'pointsman_shard_address_refusals_total',
    about: 'addresses',
    what: 'requests or connections were refused for what their address uses',
    severity: 'warning',
    remedy: 'the log names the address: if it is a proxy, name it in --trusted-proxies, else see who connects',
    label: 'reason',
  },
  {
    metric: 'pointsman_ledger_full_total',
    about: 'charges',
    what: 'requests were routed without a charge',
    severity: 'error',
    remedy: 'add replicas: more requests run than the ledger holds',
  },
  {
    metric: 'llm_d_epp_request_error_total',
    about: 'requests',
    what: 'ended in an error',
    severity: 'warning',
    remedy: 'docs/errors.md has cause and remedy of each',
    label: 'error_code',
  },
  {
    metric: 'pointsman_scrape_errors_total',
    about: 'scrapes',
    what: 'failed',
    severity: 'warning',
    remedy: 'check the metrics pages of the model servers',
  },
  {
    metric: 'pointsman_plugin_failures_total',
    about: 'plugins',
    what: 'calls threw or took too long',
    severity: 'warning',
    remedy: 'the log has file, line and column',
    label: 'plugin',
  },
  {
    metric: 'pointsman_flow_control_refusals_total',
    about: 'queues',
    what: 'requests were refused at a bound',
    severity: 'warning',
    remedy: 'add model servers, or have clients send less: a higher bound makes more requests wait longer',
    label: 'cause',
    counts: ({ cause }) => cause !== 'tenant-limit',
    lastMinute: (rises) => refusedLately(rises) - refusedTenantsLately(rises),
  },
  {
    metric: 'pointsman_flow_control_refusals_total',
    about: 'tenant limits',
    what: 'requests were refused because their tenants had spent their tokens',
    severity: 'warning',
    remedy: 'it is what tenantLimits asks for: have these tenants send less (pointsman why, docs/guides/usage.md)',
    counts: ({ cause }) => cause === 'tenant-limit',
    lastMinute: refusedTenantsLately,
  },
  {
    metric: 'pointsman_prediction_server_requests_total',
    about: 'prediction servers',
    what: 'questions were not answered',
    severity: 'warning',
    remedy: 'restart or add prediction servers',
    label: 'outcome',
    counts: ({ outcome }) => outcome !== 'predicted' && outcome !== 'partial',
  },
  {
    metric: 'pointsman_token_requests_total',
    about: 'token sources',
    what: 'prompts were estimated instead',
    severity: 'warning',
    remedy: 'check the token source (docs/tokens.md)',
    label: 'outcome',
    counts: ({ outcome }) => outcome !== 'tokenised',
  },
  {
    metric: 'pointsman_kv_events_gaps_total',
    about: 'KV events',
    what: 'gaps in the messages of engines',
    severity: 'warning',
    remedy: 'raise the buffers of the engines (docs/kv-events.md)',
  },
  {
    metric: 'pointsman_kv_events_dropped_total',
    about: 'KV events',
    what: 'told by engines and of no use, as they do not fit the configuration',
    severity: 'warning',
    remedy:
      'unnamed model: set kvEventsConfig.modelName; block size: give engines of the pool fewer sizes of blocks; ' +
      'no room: raise --index-blocks; unnamed adapter: engines that send lora_name (docs/kv-events.md)',
    label: 'reason',
    counts: ({ reason }) => UNFIT.has(reason ?? ''),
  },
  {
    metric: 'pointsman_kv_events_dropped_total',
    about: 'KV events',
    what: 'told by engines and not used',
    severity: 'note',
    remedy: 'see docs/kv-events.md',
    label: 'reason',
    counts: ({ reason }) => !UNFIT.has(reason ?? ''),
  },
  {
    metric: 'pointsman_retention_hints_left_out_total',
    about: 'retention hints',
    what: 'turns had none, as their clients write its member of the body themselves',
    severity: 'note',
    remedy: 'take the member out of the clients, or flowControl.sessions.retention out of the configuration',
  },
  {
    metric: 'pointsman_prefix_index',
    about: 'prefix index',
    what: 'blocks were refused or dropped',
    severity: 'warning',
    remedy: 'raise --index-blocks',
    label: 'what',
    counts: ({ what }) => what === 'refused' || what === 'dropped',
  },
  {
    metric: 'pointsman_prediction_samples_lost_total',
    about: 'training',
    what: 'samples were not taken by the training server',
    severity: 'note',
    remedy: 'check the training server',
  },
  {
    metric: 'pointsman_adaptation_fallbacks_total',
    about: 'learned costs',
    what: 'times taken back by the guard',
    severity: 'note',
    remedy: '/debug/adaptation has the reason',
  },
  {
    metric: 'pointsman_adaptation_labels_total',
    about: 'learned costs',
    what: 'requests were not learned from, as the control thread was late',
    severity: 'note',
    remedy: 'give the picker more CPU: costs follow the traffic more slowly',
    counts: ({ outcome }) => outcome === 'lost',
  },
  {
    metric: 'pointsman_replication_lost_placements_total',
    about: 'replicas',
    what: 'placed prompts were not told to other replicas',
    severity: 'warning',
    remedy: 'docs/guides/replicas.md',
  },
  {
    metric: 'pointsman_replication_untold_placements_total',
    about: 'replicas',
    what: 'short prompts were not told to other replicas, which loses cache hits',
    severity: 'note',
    remedy: 'sharing takes its part of a core: raise --replication-cpu-percent, or make groups of replicas',
  },
  {
    metric: 'pointsman_replication_lost_turns_total',
    about: 'replicas',
    what: 'turns of sessions were not told to other replicas',
    severity: 'warning',
    remedy: 'docs/guides/replicas.md',
  },
  {
    metric: 'pointsman_replication_bad_messages_total',
    about: 'replicas',
    what: 'messages of other replicas were refused',
    severity: 'warning',
    remedy: 'give all replicas one version, one hashKeyFile and clocks that agree; the log has the reason',
    label: 'reason',
  },
  {
    metric: 'pointsman_replication_forgotten_tenants_total',
    about: 'replicas',
    what: 'tenants of other replicas were forgotten for others, so some of their tokens are not counted here',
    severity: 'warning',
    remedy: 'set replication.hashKeyFile if strangers can publish (docs/guides/replicas.md), or have fewer tenants',
  },
  {
    metric: 'pointsman_replication_forgotten_loads_total',
    about: 'replicas',
    what: 'loads of other replicas gave way to others, so that they do not count here',
    severity: 'warning',
    remedy:
      'set replication.hashKeyFile if strangers can publish (docs/guides/replicas.md), or make groups of replicas',
  },
  {
    metric: 'pointsman_trace_spans_total',
    about: 'traces',
    what: 'spans were not exported',
    severity: 'warning',
    remedy: 'check the collector (docs/guides/tracing.md)',
    label: 'outcome',
    counts: ({ outcome }) => outcome !== 'exported',
  },
  {
    metric: 'pointsman_kubernetes_reconnects_total',
    about: 'Kubernetes',
    what: 'watches broke off',
    severity: 'note',
    remedy: 'check the way to the API server',
    label: 'reason',
  },
];

/** Errors of each part: counters that rise now, and those that have risen since the start. */
export function errorConditions({ samples, earlier, health }: PickerReading): readonly Condition[] {
  return [
    ...WATCHED.flatMap((watched) =>
      watchedCondition(watched, samples, earlier, lastMinuteOf(watched, health?.lastMinute ?? {})),
    ),
    ...kubernetes(samples),
    ...replicas(samples),
  ];
}

function lastMinuteOf({ metric, lastMinute }: Watched, rises: HealthReport['lastMinute']): number {
  return lastMinute?.(rises) ?? rises[metric] ?? 0;
}

/** @param lastMinute rise that the picker has seen itself */
function watchedCondition(
  watched: Watched,
  samples: Samples,
  earlier: Samples | undefined,
  lastMinute: number,
): readonly Condition[] {
  const { about, what, severity, remedy, label } = watched;
  const now = counted(watched, samples);
  if (now === 0) return [];
  const before = earlier === undefined ? now : counted(watched, earlier);
  const values = label === undefined ? '' : ` (${valuesOf(watched, label, samples)})`;
  if (now > before)
    return [condition(severity, about, `${what}: ${now - before} just now, ${now} since the start${values}`, remedy)];
  if (lastMinute > 0) {
    const text = `${what}: ${lastMinute} in the last minute, ${now} since the start${values}`;
    return [condition(severity, about, text, remedy)];
  }
  return [condition('note', about, `${what}: ${now} since the start${values}`, remedy)];
}

function matching({ metric, counts = () => true }: Watched, samples: Samples): readonly Sample[] {
  return (samples.get(metric) ?? []).filter(({ labels, value }) => value > 0 && counts(labels));
}

function counted(watched: Watched, samples: Samples): number {
  return matching(watched, samples).reduce((sum, { value }) => sum + value, 0);
}

function valuesOf(watched: Watched, label: string, samples: Samples): string {
  const sums = new Map<string, number>();
  for (const { labels, value } of matching(watched, samples)) {
    const name = labels[label] ?? '';
    sums.set(name, (sums.get(name) ?? 0) + value);
  }
  const sorted = [...sums].sort(([, a], [, b]) => b - a);
  return sorted
    .slice(0, 3)
    .map(([name, sum]) => `${name} ${sum}`)
    .join(', ');
}

/** Seconds after which the API server counts as silent; it is heard every 60 s at least. */
const SILENCE_SECONDS_MAX = 180;

function kubernetes(samples: Samples): readonly Condition[] {
  const kinds = (name: string, wrong: (value: number) => boolean) =>
    (samples.get(name) ?? []).filter(({ value }) => wrong(value)).map(({ labels }) => labels.kind ?? '');
  const checks: readonly (readonly [readonly string[], Severity, string, string])[] = [
    [
      kinds('pointsman_kubernetes_synced', (value) => value === 0),
      'error',
      'no complete list of',
      'check the rights: pointsman preflight',
    ],
    [
      kinds('pointsman_kubernetes_last_heard_seconds', (value) => value > SILENCE_SECONDS_MAX),
      'warning',
      'the API server is silent about',
      'check the way to the API server; requests go on with what is known',
    ],
    [
      kinds('pointsman_kubernetes_rejected_objects', (value) => value > 0),
      'warning',
      'objects are left out that cannot be read:',
      'the log names object and field',
    ],
  ];
  return checks
    .filter(([found]) => found.length > 0)
    .map(([found, severity, text, remedy]) => condition(severity, 'Kubernetes', `${text} ${found.join(', ')}`, remedy));
}

function replicas(samples: Samples): readonly Condition[] {
  if ((samples.get('pointsman_replication_connected')?.[0]?.value ?? 1) === 1) return rareUpdates(samples);
  const text = 'not connected to NATS: this picker does not hear of what other replicas charge and place';
  return [condition('warning', 'replicas', text, 'check the address of --replication-url and the network policy')];
}

/** Longest interval of updates that leave out placements before they get rarer. */
const UPDATES_MS_MAX = 20;

/** Updates that the bound on their CPU time makes so rare that peers decide by older loads. */
function rareUpdates(samples: Samples): readonly Condition[] {
  const seconds = samples.get('pointsman_replication_interval_seconds')?.[0]?.value ?? 0;
  if (seconds * 1_000 <= UPDATES_MS_MAX) return [];
  const share = samples.get('pointsman_replication_cpu_share')?.[0]?.value ?? 0;
  const text =
    `updates for others come every ${Math.round(seconds * 1_000)} ms, and so old is the load of this picker that ` +
    `they know: sharing takes ${(share * 100).toFixed(1)} % of a core`;
  return [condition('note', 'replicas', text, 'raise --replication-cpu-percent, or make groups of replicas')];
}
