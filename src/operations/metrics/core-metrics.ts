import { CORE, type CoreConstant } from '../../core/core-names.js';
import type { EndpointReading, HeldBack } from '../../core/endpoint-table.js';
import { IndexAge } from '../../core/index-age.js';
import type { CoreInstance } from '../../core/memory.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import type { MetricsExposition } from '../telemetry/exposition.js';

/** Training counts of the latency model. */
export interface LatencyCounts {
  readonly observations: { readonly ttft: number; readonly tpot: number };
  readonly lost: number;
}

export interface SourceErrorCounts {
  readonly types: { readonly source: string; readonly extractors: readonly string[] };
  readonly polls: number;
  readonly extractions: number;
}

export interface SourceAge {
  /** Type of the source. */
  readonly source: string;
  readonly freshness: { readonly endpoints: number; readonly stale: number; readonly oldestMs: number };
}

/** Polls of an endpoint's metrics page. */
interface PolledShown {
  readonly isScraped: boolean;
  readonly ageMs: number;
  readonly intervalMs: number;
  readonly isFrozen: boolean;
}

/** Polls of metrics pages: intervals of endpoints with traffic and of others, and their share of a core. */
export interface PollsShown {
  readonly busyMs: number;
  readonly quietMs: number;
  readonly usedShare: number;
}

/** An endpoint with its columns and the polls of its metrics page. */
export interface EndpointShown {
  readonly name: string;
  readonly reading: EndpointReading;
  /** Undefined = metrics are not fetched. */
  readonly polled: PolledShown | undefined;
  /** Whether its engine sleeps. */
  readonly asleep: boolean;
  /** Requests per second that a limit of its engine's queue refused of late. */
  readonly refusedPerSecond: number;
  readonly heldBack: HeldBack;
}

/** Figures of the control thread. */
export interface CoreMetricsSources {
  /** By shard. */
  readonly shardDeaths: () => ReadonlyMap<number, number>;
  readonly ejections: () => number;
  /** How often an endpoint was found dead. */
  readonly deaths: () => number;
  readonly silences: () => number;
  /** Endpoints without a slot. */
  readonly leftOut: () => number;
  /** Engines that had a later start time than before, at the same address. */
  readonly restarts: () => number;
  readonly endpoints: () => readonly EndpointShown[];
  readonly scrapeErrors: () => number;
  /** Failed polls and extractions by the types of source and extractors. */
  readonly sourceErrors: () => readonly SourceErrorCounts[];
  /** Age of each source's last data on its endpoints. */
  readonly freshness: () => readonly SourceAge[];
  /** Undefined = metrics are not fetched. */
  readonly polls: () => PollsShown | undefined;
  /** Versions of the configuration file since the start, by outcome. */
  readonly configReloads: () => Readonly<Record<string, number>>;
  /** Undefined when nothing predicts latency. */
  readonly latencyTrainer: LatencyCounts | undefined;
  /** Samples that the training server did not accept; undefined = there is no server. */
  readonly samplesLost: (() => number) | undefined;
}

/** Registers the counters and gauges in shared memory that llm-d-router does not have. */
export function addCoreMetrics(exposition: MetricsExposition, core: CoreInstance, sources: CoreMetricsSources): void {
  const { call, u32 } = core;
  const pool = CORE.HEADER + CORE.HEADER_POOL;
  const word = (address: number) => () => [{ labels: {}, value: u32[address >>> 2]! }];
  const value = (read: () => number) => () => [{ labels: {}, value: read() }];
  const gauge = (name: string, help: string, read: () => Iterable<{ labels: Record<string, string>; value: number }>) =>
    exposition.addGauge({ name: `pointsman_${name}`, help, read });
  const counter = (
    name: string,
    help: string,
    read: () => Iterable<{ labels: Record<string, string>; value: number }>,
  ) => exposition.addCounter({ name: `pointsman_${name}`, help, read });
  gauge(
    'ledger_entries',
    'Requests charged and not released yet.',
    value(() => call.ledgerUsed() >>> 0),
  );
  counter(
    'ledger_full_total',
    'Requests routed without a charge because the ledger was full.',
    value(() => call.ledgerFull() >>> 0),
  );
  gauge('ejected_endpoints', 'Endpoints taken out of the picks because they failed.', word(pool + CORE.POOL_EJECTED));
  counter('endpoint_ejections_total', 'How often an endpoint was taken out of the picks.', value(sources.ejections));
  gauge('dead_endpoints', 'Endpoints that take no connections: they get no requests while another one does.', () => [
    { labels: {}, value: [...sources.endpoints()].filter(({ reading }) => reading.death === CORE.DEATH_DEAD).length },
  ]);
  counter('endpoint_deaths_total', 'How often an endpoint was found to take no connections.', value(sources.deaths));
  counter(
    'endpoint_silences_total',
    'How often requests in flight on an endpoint got no byte for several times what they should take.',
    value(sources.silences),
  );
  counter(
    'engine_restarts_total',
    'Engines that started again at the same address, by process_start_time_seconds of their pages.',
    value(sources.restarts),
  );
  gauge('left_out_endpoints', 'Endpoints left out because the pool is full (--max-endpoints).', value(sources.leftOut));
  exposition.addCounter({
    name: 'pointsman_shard_deaths_total',
    help: 'Shard threads that died and were started again.',
    labels: ['shard'],
    read: () => [...sources.shardDeaths()].map(([shard, value]) => ({ labels: { shard: String(shard) }, value })),
  });
  counter('scrape_errors_total', 'Scrapes of model servers that failed.', value(sources.scrapeErrors));
  addSourceErrors(exposition, sources);
  exposition.addCounter({
    name: 'pointsman_config_reloads_total',
    help: 'Versions of the configuration file, by outcome.',
    labels: ['outcome'],
    read: () => Object.entries(sources.configReloads()).map(([outcome, value]) => ({ labels: { outcome }, value })),
  });
  addEndpointGauges(exposition, sources);
  addVetoes(exposition, sources);
  addSourceAges(exposition, sources);
  addPollGauges(exposition, sources);
  if (sources.latencyTrainer !== undefined) addLatencyCounters(exposition, sources.latencyTrainer);
  const { samplesLost } = sources;
  if (samplesLost !== undefined) {
    counter('prediction_samples_lost_total', 'Samples that the training server did not take.', value(samplesLost));
  }
  addPrefixCounters(exposition, core);
}

/** llm-d-router's names and labels; its older names too. */
const DATA_LAYER_PREFIXES = ['llm_d_epp_', 'llm_d_inference_scheduler_'] as const;

/** Sources of one type count together. A page that could not be read counts for every extractor of its source. */
function addSourceErrors(exposition: MetricsExposition, { sourceErrors }: CoreMetricsSources): void {
  for (const prefix of DATA_LAYER_PREFIXES) {
    exposition.addCounter({
      name: `${prefix}datalayer_poll_errors_total`,
      help: 'Data-source poll errors per source type.',
      labels: ['source_type'],
      read: () => sourceErrors().map(({ types, polls }) => ({ labels: { source_type: types.source }, value: polls })),
    });
    exposition.addCounter({
      name: `${prefix}datalayer_extract_errors_total`,
      help: 'Extract errors per source/extractor type.',
      labels: ['source_type', 'extractor_type'],
      read: () =>
        sourceErrors().flatMap(({ types, extractions }) =>
          types.extractors.map((extractor) => ({
            labels: { source_type: types.source, extractor_type: extractor },
            value: extractions,
          })),
        ),
    });
  }
}

/** Registers how often metrics pages are polled, and what that takes. */
function addPollGauges(exposition: MetricsExposition, { polls }: CoreMetricsSources): void {
  exposition.addGauge({
    name: 'pointsman_scrape_interval_seconds',
    help:
      'Time between two scrapes of an endpoint: of those with traffic (busy), and of the others (quiet); longer ' +
      'while scrapes take their share of a core (--scrape-cpu-percent).',
    labels: ['endpoints'],
    read: () => {
      const use = polls();
      if (use === undefined) return [];
      const row = (endpoints: string, ms: number) => ({ labels: { endpoints }, value: ms / 1_000 });
      return [row('busy', use.busyMs), row('quiet', use.quietMs)];
    },
  });
  exposition.addGauge({
    name: 'pointsman_scrape_cpu_share',
    help: 'Share of one core that scrapes of metrics pages take.',
    read: () => [{ labels: {}, value: polls()?.usedShare ?? 0 }],
  });
}

/** Registers the largest age and the number of stale endpoints over the sources of each type. */
function addSourceAges(exposition: MetricsExposition, { freshness }: CoreMetricsSources): void {
  const byType =
    (pick: (age: SourceAge['freshness']) => number, join: (one: number, other: number) => number) => () => {
      const values = new Map<string, number>();
      for (const { source, freshness: age } of freshness()) {
        if (age.endpoints > 0) values.set(source, join(values.get(source) ?? 0, pick(age)));
      }
      return [...values].map(([source_type, value]) => ({ labels: { source_type }, value }));
    };
  const labels = ['source_type'];
  exposition.addGauge({
    name: 'pointsman_source_age_seconds',
    help: 'Largest time since the last good page of an endpoint of a source.',
    labels,
    read: byType(({ oldestMs }) => oldestMs / 1_000, Math.max),
  });
  exposition.addGauge({
    name: 'pointsman_source_stale_endpoints',
    help: 'Endpoints whose values of a source are unknown: too old (--metrics-staleness-threshold), or never read.',
    labels,
    read: byType(
      ({ stale }) => stale,
      (one, other) => one + other,
    ),
  });
}

function addLatencyCounters(exposition: MetricsExposition, trainer: LatencyCounts): void {
  exposition.addCounter({
    name: 'pointsman_prediction_observations_total',
    help: 'Answers that the latency model has learned from.',
    labels: ['time'],
    read: () => Object.entries(trainer.observations).map(([time, value]) => ({ labels: { time }, value })),
  });
  exposition.addCounter({
    name: 'pointsman_prediction_labels_lost_total',
    help: 'Answers that the latency model could not learn from: overwritten before they were read, or no latency.',
    read: () => [{ labels: {}, value: trainer.lost }],
  });
}

/** Without a value an endpoint has no series. */
const endpointGauges: readonly (readonly [
  string,
  string,
  (reading: EndpointReading, shown: EndpointShown) => number | undefined,
])[] = [
  [
    'active_blocks',
    'Unique blocks in use by running requests.',
    (r) => r.activeBlocks + r.outputBlocks - r.peerOutputBlocks,
  ],
  ['prefix_blocks', 'Blocks that the prefix index believes the endpoint to hold.', (r) => r.prefixBlocks],
  ['inflight_requests', 'Requests in flight from here.', (r) => r.inflight - r.peerRequests],
  ['inflight_tokens', 'Uncached prompt tokens in flight from here.', (r) => r.inflightTokens - r.peerTokens],
  ['peer_requests', 'Requests in flight from other replicas, as they have told.', (r) => r.peerRequests],
  [
    'ejection_state',
    '0 in, 1 out, 2 out with a probe under way, 3 dead: it takes no connections.',
    (r) => (r.death === CORE.DEATH_DEAD ? 3 : r.ejection),
  ],
  [
    'silent',
    '1 while its requests in flight get no byte for several times what they should take.',
    (r) => Number(r.silent),
  ],
  [
    'asleep',
    '1 while its engine sleeps and gets no requests, as its metrics page tells.',
    (_, { asleep }) => Number(asleep),
  ],
  [
    'engine_refused_per_second',
    "Requests per second that a limit of its engine's queue refused over the last seconds; they count as waiting.",
    (_, { refusedPerSecond }) => refusedPerSecond,
  ],
  [
    'warming_seconds',
    'Time for which warm-up-filter has taken its cache for cold; no series while it is warm, or without the filter.',
    (_, { heldBack }) => heldBack.warming?.seconds,
  ],
  [
    'warming_share',
    'Share of the mean requests in flight of the others that warm-up-filter gives it; no series while it is warm.',
    (_, { heldBack }) => heldBack.warming?.share,
  ],
  [
    'signal_age_seconds',
    'Time since the last good scrape, or since the endpoint joined when there was none; no series where metrics ' +
      'are not fetched.',
    (_, { polled }) => (polled === undefined ? undefined : Math.max(0, polled.ageMs) / 1000),
  ],
  [
    'scrape_interval_seconds',
    'Time from its last good scrape to the next one, as planned; no series where metrics are not fetched.',
    (_, { polled }) => (polled === undefined ? undefined : polled.intervalMs / 1000),
  ],
  [
    'scraped',
    '1 = its metrics page has been read since it joined, 0 = never; no series where metrics are not fetched.',
    (_, { polled }) => (polled === undefined ? undefined : Number(polled.isScraped)),
  ],
  [
    'metrics_frozen',
    '1 while its metrics page stands still although requests end there; no series where metrics are not fetched.',
    (_, { polled }) => (polled === undefined ? undefined : Number(polled.isFrozen)),
  ],
];

function addEndpointGauges(exposition: MetricsExposition, sources: CoreMetricsSources): void {
  for (const [name, help, pick] of endpointGauges) {
    exposition.addGauge({
      name: `pointsman_endpoint_${name}`,
      help,
      labels: ['endpoint'],
      read: () =>
        sources.endpoints().flatMap((shown) => {
          const value = pick(shown.reading, shown);
          return value === undefined ? [] : [{ labels: { endpoint: shown.name }, value }];
        }),
    });
  }
}

/** Vetoes of overload-filter, by the limit that the endpoint is over. */
function addVetoes(exposition: MetricsExposition, { endpoints }: CoreMetricsSources): void {
  const gauge = (name: string, help: string, pick: (veto: NonNullable<HeldBack['veto']>) => number) =>
    exposition.addGauge({
      name: `pointsman_endpoint_${name}`,
      help,
      labels: ['endpoint', 'limit'],
      read: () =>
        endpoints().flatMap(({ name: endpoint, heldBack: { veto } }) =>
          veto === undefined ? [] : [{ labels: { endpoint, limit: veto.limit }, value: pick(veto) }],
        ),
    });
  gauge(
    'vetoed_seconds',
    'Time over which overload-filter vetoed the endpoint in every decision; no series when it did not in the last one.',
    ({ seconds }) => seconds,
  );
  gauge(
    'veto_limit',
    'Limit that a vetoed endpoint is over: waiting requests, or a share of the KV cache; no series as above.',
    ({ at }) => at,
  );
}

type PrefixCounter = Extract<CoreConstant, `PREFIX_COUNTER_${string}`>;

const isPrefixCounter = (name: string): name is PrefixCounter => name.startsWith('PREFIX_COUNTER_');

/** One series per counter of the prefix index (PREFIX_COUNTER_* of the core). */
function addPrefixCounters(exposition: MetricsExposition, core: CoreInstance): void {
  const age = new IndexAge(core, poolClockMs());
  exposition.addGauge({
    name: 'pointsman_prefix_index_age_seconds',
    help:
      'Time since the least recently used blocks of the prefix index were looked up or stored, rounded up to a ' +
      'reading of the metrics; no series while it is empty.',
    labels: [],
    read: () => {
      const ageMs = age.read(poolClockMs());
      return ageMs === undefined ? [] : [{ labels: {}, value: ageMs / 1_000 }];
    },
  });
  const counters = Object.keys(CORE).filter(isPrefixCounter);
  exposition.addGauge({
    name: 'pointsman_prefix_index',
    help: 'Counters and sizes of the prefix index.',
    labels: ['what'],
    read: () =>
      counters.map((name) => ({
        labels: { what: name.slice('PREFIX_COUNTER_'.length).toLowerCase() },
        value: core.call.prefixCounter(CORE[name]) >>> 0,
      })),
  });
}
