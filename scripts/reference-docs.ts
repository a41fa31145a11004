// Writes docs/reference/flags.md and docs/reference/metrics.md: `npm run reference-docs`.
//
// The flags come from the table that the command line is parsed with, the metrics from the registrations of the metrics
// page and from the table of what is counted in shared memory.
import { writeFileSync } from 'node:fs';
import { attachCore, createPoolMemory, defaultPoolSizes } from '../dist/src/core/memory.js';
import type { EventFeed } from '../dist/src/kvevents/event-feed.js';
import { addAdaptationMetrics } from '../dist/src/operations/metrics/adaptation-metrics.js';
import { addCoreMetrics, type CoreMetricsSources } from '../dist/src/operations/metrics/core-metrics.js';
import { EvictionCounts } from '../dist/src/operations/metrics/eviction-counts.js';
import { addFlowMetrics, type FlowControlFigures } from '../dist/src/operations/metrics/flow-control-metrics.js';
import { addKeptFileMetrics } from '../dist/src/operations/metrics/kept-file-metrics.js';
import {
  addClusterMetrics,
  addKubernetesMetrics,
  RequestCounts,
} from '../dist/src/operations/metrics/kubernetes-metrics.js';
import { addKvEventMetrics } from '../dist/src/operations/metrics/kv-event-metrics.js';
import { addPoolsMetrics } from '../dist/src/operations/metrics/pools-metrics.js';
import { addReplicationMetrics } from '../dist/src/operations/metrics/replication-metrics.js';
import { addRolloutShares } from '../dist/src/operations/metrics/rollout-shares.js';
import { addServedModels } from '../dist/src/operations/metrics/served-models.js';
import { addSessionMetrics, type SessionFigures } from '../dist/src/operations/metrics/session-metrics.js';
import { addShadowMetrics } from '../dist/src/operations/metrics/shadow-metrics.js';
import { addShardMetrics } from '../dist/src/operations/metrics/shard-metrics.js';
import { addTokeniserMetrics } from '../dist/src/operations/metrics/tokeniser-metrics.js';
import { addTraceMetrics } from '../dist/src/operations/metrics/trace-metrics.js';
import { addUsageMetrics } from '../dist/src/operations/metrics/usage-metrics.js';
import { MetricsExposition } from '../dist/src/operations/telemetry/exposition.js';
import type { SeriesKind } from '../dist/src/operations/telemetry/metric-kind.js';
import { seriesKinds, streamEndKind, streamKind } from '../dist/src/operations/telemetry/metric-table.js';
import type { TenantUsage } from '../dist/src/operations/usage/tenant-usage.js';
import { disaggregatedsetRolloutScreener } from '../dist/src/scheduling/screeners/disaggregatedset-rollout-screener.js';
import type { Flag } from '../dist/src/serve/flag.js';
import { SERVE_FLAGS } from '../dist/src/serve/flag-table.js';
import { ROUTER_FLAGS } from '../dist/src/serve/router-flags.js';
import { COMMANDS } from '../dist/tools/commands.js';

// Flags

const FLAGS_HEAD = `# Flags

Commands and the flags of \`pointsman serve\`, which is the default command. \
Written by \`npm run reference-docs\` from the table
that the program parses with; \`pointsman serve --help\` prints the same.

Flags are written with one or two dashes, as \`--flag=value\` or \`--flag value\`; a flag without a value in \
its name is on when it
is named and off with \`=false\`. Durations: \`50ms\`, \`30s\`, \`2m\`. Sizes: \`64Mi\`, \`20MB\`, \
\`1048576\`. Environment:
\`NAMESPACE\` and \`POD_NAME\` stand in for flags that are not given, \`OTEL_*\` say where traces go \
([tracing](../guides/tracing.md)). Refused values: [errors](../errors.md#errors-of-flags).`;

/** The page of flags. */
export function flagsPage(): string {
  const flags = Object.entries(SERVE_FLAGS) as [string, Flag<unknown>][];
  const groups = [...new Set(flags.map(([, { group }]) => group))];
  const chapters = groups.map((group) => {
    const rows = flags.filter(([, flag]) => flag.group === group).map(([name, flag]) => flagRow(name, flag));
    return `## ${group}\n\n${table(['flag', 'default', 'meaning'], rows)}`;
  });
  const commands = COMMANDS.map(({ usage, summary }) => [`\`pointsman ${usage}\``, summary]);
  const parts = [FLAGS_HEAD, '## Commands', table(['command', 'meaning'], commands), ...chapters, routerChapter()];
  return `${parts.join('\n\n')}\n`;
}

function flagRow(name: string, { placeholder, shown, doc }: Flag<unknown>): string[] {
  const written = placeholder === undefined ? `--${name}` : `--${name}=${placeholder}`;
  return [`\`${written}\``, shown === undefined ? '' : `\`${shown}\``, doc];
}

const ROUTER_HEAD = `## Flags of llm-d-router

Every flag that llm-d-router has, or will have by what is merged and proposed there (\`next\`), and its \
effect here. A flag that is
neither here nor above ends the start, so that nothing is asked for in vain.`;

function routerChapter(): string {
  const rows = [...ROUTER_FLAGS].map(([name, { since, effect }]) => [`\`--${name}\``, since, effect]);
  return `${ROUTER_HEAD}\n\n${table(['flag', 'since', 'effect here'], rows)}`;
}

// Metrics

const METRICS_HEAD = `# Metrics

Every metric of \`GET /metrics\`. Written by \`npm run reference-docs\` from the registrations of the page; \
a test compares it with a
running picker. Metrics called \`llm_d_epp_…\` have the names, labels and buckets of llm-d-router; \
an older name shows the same values
with the labels of its time, for dashboards of earlier versions. Histograms have \`_bucket\`, \`_sum\` and \
\`_count\`. A metric that is counted by the
threads is on the page from its first value on.

\`promtool check metrics\` ends with 3 for two kinds of names that others have given, and for none of our own: \
\`llm_d_…\`, whose "d" it takes
for the unit of days, and \`nodejs_active_handles_total\`, \`…_requests_total\` and \`…_resources_total\` of \
prom-client, which are gauges.
They stay, as dashboards read them by these names. \`GET /metrics?names=prometheus\` \
(\`params: {names: [prometheus]}\` in a scrape configuration) has
all metrics under names that it accepts: \`llm_d_…\` is \`pointsman_…\`, and those three, which are sums of the \
metrics without \`_total\`, are
left out. The dashboards, alerts and commands of Pointsman read the names of this page.

Labels that clients choose (\`model_name\`, \`target_model_name\`, \`fairness_id\`) take a bounded number of \
values; what is beyond counts
as \`other\`. The label \`endpoint\` is the endpoint's name, with its namespace in front while another endpoint \
of the pool has the same name.
Alerts: [monitoring](../guides/monitoring.md). \
Differences to llm-d-router: [compatibility](../compatibility.md#metrics).`;

/** A metric of the page. */
export interface ShownMetric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly help: string;
  /** Older names of the same values. */
  readonly older: readonly string[];
}

export interface MetricChapter {
  readonly title: string;
  readonly condition: string;
  /** Whether the metrics are on a page before anything was counted. */
  readonly atStart: boolean;
  readonly metrics: readonly ShownMetric[];
}

/** Values are read for a page only, and no page is made here. */
function never(): never {
  throw new Error('a metric was read');
}

const CORE_SOURCES: CoreMetricsSources = {
  shardDeaths: never,
  ejections: never,
  deaths: never,
  silences: never,
  restarts: never,
  leftOut: never,
  endpoints: never,
  scrapeErrors: never,
  sourceErrors: never,
  freshness: never,
  polls: never,
  configReloads: never,
  latencyTrainer: undefined,
  samplesLost: undefined,
};

const FLOW_CONTROL: FlowControlFigures = {
  evictions: new EvictionCounts(),
  limits: { requests: 1, bytes: 1, tokens: 1 },
  saturation: never,
  detectorSaturations: never,
  staleEndpoints: never,
  snapshot: never,
  dispatched: never,
};

/** What a registration adds to the page, by its chapter. */
const REGISTRATIONS: readonly (readonly [string, string, (exposition: MetricsExposition) => void])[] = [
  ['Adaptation', 'Always shown.', (exposition) => addAdaptationMetrics(exposition, never)],
  [
    'Flow control',
    'With the feature gate `flowControl`.',
    (exposition) => addFlowMetrics(exposition, FLOW_CONTROL, 'pool'),
  ],
  [
    'Sessions',
    'With `flowControl.sessions` in mode `shadow` or `on`.',
    (exposition) => addSessionMetrics(exposition, {} as SessionFigures, never),
  ],
  [
    'KV events',
    'With `precise-prefix-cache-producer`.',
    // Only its counters are taken at the registration, to be read for a page.
    (exposition) => addKvEventMetrics(exposition, {} as EventFeed, never),
  ],
  [
    'Replication',
    'With `replication` in the configuration or `--replication-url`.',
    (exposition) => addReplicationMetrics(exposition, never),
  ],
  ['Candidate configuration', 'With `--candidate-config`.', (exposition) => addShadowMetrics(exposition, never)],
  ['Further pools', 'With `--pools`.', (exposition) => addPoolsMetrics(exposition, never)],
  [
    'Models of the endpoints',
    'With `models-data-source`.',
    (exposition) => addServedModels(exposition, { models: new Map() }, never),
  ],
  [
    'Rollouts',
    'With `disaggregatedset-rollout-screener`.',
    (exposition) => {
      const { type } = disaggregatedsetRolloutScreener;
      const columns = { filterColumn: undefined, scoreColumn: undefined, matchColumns: [], profiles: [] };
      addRolloutShares(exposition, [{ name: type, type, parameters: {}, ...columns }], never);
    },
  ],
  ['Use of the shards', 'Always shown.', (exposition) => addShardMetrics(exposition, never)],
  ['Tenants', 'Always shown.', (exposition) => addUsageMetrics(exposition, { read: never } as unknown as TenantUsage)],
  [
    'Kept files',
    'With `--state-dir`, `adaptation.stateFile` or `--usage-dir`.',
    (exposition) => addKeptFileMetrics(exposition, { unsaved: never, unused: never }),
  ],
  ['Tokeniser', 'With `local` of a token producer.', (exposition) => addTokeniserMetrics(exposition, new Map(), never)],
  [
    'Traces',
    'With an exporter in the `OTEL_*` variables ([tracing](../guides/tracing.md)).',
    (exposition) => addTraceMetrics(exposition, never),
  ],
  [
    'Kubernetes',
    'With `--pool-name`, `--endpoint-selector`, or pools of a cluster in `--pools`. Watches, first states, broken ' +
      'watches and answers of the API server are those of the process and have no label `pool`.',
    (exposition) => {
      addKubernetesMetrics(exposition, { discovery: { kinds: [] }, reviews: never, leader: never });
      addClusterMetrics(exposition, { requests: new RequestCounts(), watches: { kinds: [] } });
    },
  ],
];

/** The chapters of the page of metrics. */
export function metricChapters(): readonly MetricChapter[] {
  const core = attachCore(createPoolMemory({ ...defaultPoolSizes, endpoints: 8, threads: 2 }), 0);
  const exposition = new MetricsExposition({
    core,
    poolName: 'pool',
    endpointOf: never,
    streamMetrics: true,
    build: { version: '', commit: '', buildRef: '' },
  });
  const seen = new Set<string>();
  const chapter = (title: string, condition: string): MetricChapter => {
    const fresh = registered(exposition).filter(({ name }) => !seen.has(name));
    for (const { name } of fresh) seen.add(name);
    return { title, condition, atStart: true, metrics: withOlderNames(fresh) };
  };
  const process = chapter('Build, process and pool', 'Always shown.');
  addCoreMetrics(exposition, core, CORE_SOURCES);
  const start = chapter('Endpoints and threads', 'Always shown.');
  const others = REGISTRATIONS.map(([title, condition, register]) => {
    register(exposition);
    return chapter(title, condition);
  });
  const learning = new MetricsExposition({
    core,
    poolName: 'pool',
    endpointOf: never,
    streamMetrics: true,
    processMetrics: false,
    build: { version: '', commit: '', buildRef: '' },
  });
  const trainer = { observations: { ttft: 0, tpot: 0 }, lost: 0 };
  addCoreMetrics(learning, core, { ...CORE_SOURCES, latencyTrainer: trainer, samplesLost: never });
  const predicted = registered(learning).filter(({ name }) => !seen.has(name));
  return [
    ...countedChapters(),
    start,
    ...others,
    {
      title: 'Training of the latency model',
      condition: 'With a producer of latency predictions.',
      atStart: true,
      metrics: withOlderNames(predicted),
    },
    process,
  ];
}

function registered(exposition: MetricsExposition): ShownMetric[] {
  return exposition.registry.getMetricsAsArray().map((metric) => {
    const { name, help, labelNames } = metric as unknown as { name: string; help: string; labelNames?: string[] };
    return { name, type: metric.constructor.name.toLowerCase(), labels: labelNames ?? [], help, older: [] };
  });
}

/** Metrics that the threads count, by what they are about. */
function countedChapters(): MetricChapter[] {
  const titles: Record<string, MetricChapter & { metrics: ShownMetric[] }> = {};
  for (const kind of seriesKinds) {
    const title = countedTitle(kind);
    const condition =
      title === 'Streams' ? 'With `--enable-grpc-stream-metrics`.' : 'Each is shown once it has counted something.';
    titles[title] ??= { title, condition, atStart: false, metrics: [] };
    for (const metric of counted(kind)) {
      const same = titles[title].metrics.findIndex(({ name }) => name === metric.name);
      if (same < 0) titles[title].metrics.push(metric);
      else titles[title].metrics[same] = merged(titles[title].metrics[same]!, metric);
    }
  }
  return Object.values(titles);
}

/** Some names are shown by two kinds of series that differ in a fixed label. */
function merged(one: ShownMetric, other: ShownMetric): ShownMetric {
  return { ...one, labels: [...new Set([...one.labels, ...other.labels])] };
}

function countedTitle(kind: SeriesKind): string {
  if (kind === streamKind || kind === streamEndKind) return 'Streams';
  const { name } = kind.metrics[0]!;
  if (name.includes('flow_control')) return 'Waiting requests';
  return name.startsWith('llm_d_epp_request_') ? 'Requests' : 'Decisions';
}

function counted({ labels, metrics }: SeriesKind): ShownMetric[] {
  return metrics.map(({ name, type, help, fixed, older }) => ({
    name,
    type,
    labels: fixed === undefined ? labels : [...labels, fixed[0]],
    help,
    older: older === undefined ? [] : [older.name],
  }));
}

/** Puts metrics that are only an older name of another one behind that one. */
function withOlderNames(metrics: readonly ShownMetric[]): ShownMetric[] {
  const newer = (metric: ShownMetric) => /^Older name of (\w+)\./.exec(metric.help)?.[1];
  return metrics
    .filter((metric) => newer(metric) === undefined)
    .map((metric) => ({
      ...metric,
      older: metrics.filter((other) => newer(other) === metric.name).map(({ name }) => name),
    }));
}

/** Unit by the ending of the name; the help says the rest. */
function unitOf({ name, type }: ShownMetric): string {
  const units: readonly (readonly [RegExp, string])[] = [
    [/_utilization(_|$)/, 'share'],
    [/_seconds(_total)?$/, 'seconds'],
    [/_bytes(_total)?$/, 'bytes'],
    [/_tokens$/, 'tokens'],
    [/_blocks(_total)?$/, 'blocks'],
    [/(ratio|share|saturation|utilization\w*|correlation|agreement|risked|reclaim\w*)$/, 'share'],
    [/(requests|running|inflight|queue_size|ledger_entries)$/, 'requests'],
    [/(endpoints|subscribers)$/, 'endpoints'],
    [/objects$/, 'objects'],
  ];
  const found = units.find(([ending]) => ending.test(name))?.[1];
  return found ?? (type === 'counter' ? 'count' : '–');
}

/** The page of metrics. */
export function metricsPage(): string {
  const chapters = metricChapters().map(({ title, condition, metrics }) => {
    const rows = metrics.map((metric) => [
      [metric.name, ...metric.older].map((name) => `\`${name}\``).join('<br>'),
      metric.type,
      metric.labels.map((label) => `\`${label}\``).join(', '),
      unitOf(metric),
      metric.help,
    ]);
    return (
      `## ${title}\n\n${condition}\n` + `\n${table(['metric, older names', 'type', 'labels', 'unit', 'meaning'], rows)}`
    );
  });
  return `${[METRICS_HEAD, ...chapters].join('\n\n')}\n`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

if (process.argv[1] === import.meta.filename) {
  const write = (page: string, text: string) =>
    writeFileSync(new URL(`../docs/reference/${page}.md`, import.meta.url), text);
  write('flags', flagsPage());
  write('metrics', metricsPage());
}
