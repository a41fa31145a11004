import { shownAdaptation } from '../../adaptation/adaptation-report.js';
import { DecisionLog } from '../../core/decision-log.js';
import type { EndpointTable } from '../../core/endpoint-table.js';
import type { CoreInstance } from '../../core/memory.js';
import {
  adaptationRoute,
  decisionsRoute,
  flowControlRoute,
  pluginStateRoute,
  REQUESTS_PATH,
  requestRoute,
  wallClockMs,
} from '../../operations/debug-pages.js';
import { healthRoute } from '../../operations/health-report.js';
import { addFlowMetrics } from '../../operations/metrics/flow-control-metrics.js';
import { addKvEventMetrics } from '../../operations/metrics/kv-event-metrics.js';
import { addRolloutShares } from '../../operations/metrics/rollout-shares.js';
import { addServedModels } from '../../operations/metrics/served-models.js';
import { addShadowMetrics } from '../../operations/metrics/shadow-metrics.js';
import { PageFeed } from '../../operations/page/page-feed.js';
import { configurationRoute, pageFiles } from '../../operations/page/page-files.js';
import type { ConfigurationShown } from '../../operations/page/snapshot.js';
import { CellFamilies } from '../../operations/telemetry/cell-families.js';
import type { MetricsExposition } from '../../operations/telemetry/exposition.js';
import { type MetricsServer, type Route, startMetricsServer } from '../../operations/telemetry/metrics-server.js';
import type { VouchedNames } from '../../operations/telemetry/shown-names.js';
import { RequestStories } from '../../operations/why/request-story.js';
import { SeriesLabels } from '../../operations/why/series-labels.js';
import type { CompiledProfile } from '../../scheduling/program.js';
import type { Part } from '../part.js';
import type { PickerOptions } from '../picker-options.js';
import type { AdaptationControl } from './adaptation-control.js';
import { type ConfigurationReload, NO_RELOADS } from './configuration-reload.js';
import type { FlowControl } from './flow-control.js';
import { healthReport } from './health-reports.js';
import type { Informers } from './informers.js';
import type { EngineEvents } from './kv-events.js';
import type { LatencyLearning } from './latency-learning.js';
import { PageSnapshots } from './page-snapshots.js';
import { partStates } from './part-states.js';
import { pluginStates } from './plugin-states.js';
import type { PoolController } from './pool-controller.js';
import type { ShadowControl } from './shadow-control.js';

/** Sources of the metrics page. */
export interface MetricsPageSources {
  readonly options: PickerOptions;
  readonly core: CoreInstance;
  readonly table: EndpointTable;
  readonly pool: PoolController;
  readonly informers: Informers;
  readonly adaptation: AdaptationControl;
  readonly events: EngineEvents;
  readonly flow: FlowControl | undefined;
  /** Names that are label values for as long as they are vouched for. */
  readonly names: () => VouchedNames;
  readonly learning: LatencyLearning | undefined;
  readonly reload: ConfigurationReload | undefined;
  /** Undefined = nothing decides in shadow. */
  readonly shadow: ShadowControl | undefined;
  /** Deaths of each shard by its thread. */
  readonly shardDeaths: () => ReadonlyMap<number, number>;
  /** Endpoints that were ejected since the start. */
  readonly ejections: () => number;
  /** The plugins that run, those added by default too. */
  readonly configured: () => readonly { readonly name: string; readonly type: string }[];
  /** Reasons why the picker is not ready; empty = ready. */
  readonly unready: () => readonly string[];
  /** The running configuration for the page. */
  readonly configuration: () => ConfigurationShown;
  /** The running profiles, by number. */
  readonly profiles: () => readonly CompiledProfile[];
}

/** The metrics port: `/metrics` and the debug pages. Starts after the parts that it shows. */
export class MetricsPage implements Part {
  readonly #sources: MetricsPageSources;
  #server: MetricsServer | undefined;
  /** From the first reader on. */
  #exposition: Promise<MetricsExposition> | undefined;
  #counts: CellFamilies | undefined;
  #feed: PageFeed | undefined;

  constructor(sources: MetricsPageSources) {
    this.#sources = sources;
  }

  /** The port; 0 before the start. */
  get port(): number {
    return this.#server?.port ?? 0;
  }

  /** Requests so far, answered and refused. */
  get requests(): number {
    this.#counts ??= new CellFamilies(this.#sources.core, false);
    return this.#counts.sum('llm_d_epp_request_total');
  }

  /** Replaces the names that are label values for as long as they are vouched for. */
  vouch(names: VouchedNames): void {
    // A page that cannot be made is reported to its readers.
    this.#exposition?.then(
      (exposition) => exposition.vouch(names),
      () => undefined,
    );
  }

  async start(): Promise<void> {
    const { flow, options } = this.#sources;
    const { addresses, metricsPort, metricsTls, metricsAccess, kubernetes, log } = options;
    // Flow control tells the page what it observes; everything else is read for each page.
    if (flow !== undefined) await this.#read();
    this.#server = await startMetricsServer({
      host: addresses.metrics,
      port: metricsPort,
      exposition: () => this.#read(),
      tls: metricsTls,
      routes: this.#routes(),
      mayRead: metricsAccess ?? kubernetes?.mayRead,
      report: (problem) => log.error({ part: 'metrics' }, problem),
    });
  }

  async stop(): Promise<void> {
    this.#feed?.close();
    await this.#server?.close();
  }

  /** The page. It is made for its first reader, so that a start does not wait for its library. */
  #read(): Promise<MetricsExposition> {
    this.#exposition ??= this.#makeExposition();
    return this.#exposition;
  }

  async #makeExposition(): Promise<MetricsExposition> {
    const [{ MetricsExposition }, { addCoreMetrics }, { addAdaptationMetrics }] = await Promise.all([
      import('../../operations/telemetry/exposition.js'),
      import('../../operations/metrics/core-metrics.js'),
      import('../../operations/metrics/adaptation-metrics.js'),
    ]);
    const exposition = new MetricsExposition(this.#expositionOptions());
    exposition.vouch(this.#sources.names());
    addCoreMetrics(exposition, this.#sources.core, this.#coreSources());
    this.#addPoolMetrics(exposition);
    addAdaptationMetrics(exposition, () => this.#adaptation());
    this.#sources.options.kubernetes?.addMetrics(exposition);
    return exposition;
  }

  #expositionOptions(): ConstructorParameters<typeof MetricsExposition>[0] {
    const { options, core, pool } = this.#sources;
    return {
      core,
      poolName: options.poolName,
      endpointOf: (slot) => pool.endpointOf(slot),
      streamMetrics: options.streamMetrics,
      prefixProducer: options.configuration.scheduling.prefixProducer,
      build: { version: options.version, commit: options.commit, buildRef: `pointsman-${options.version}` },
    };
  }

  #coreSources() {
    const { shardDeaths, ejections, informers, reload, learning, pool, table } = this.#sources;
    return {
      shardDeaths,
      ejections,
      leftOut: () => pool.leftOut,
      scrapeErrors: () => informers.failures,
      sourceErrors: () => informers.errors,
      configReloads: () => reload?.counts ?? NO_RELOADS,
      latencyTrainer: learning?.trainer,
      samplesLost: learning?.samplesLost === undefined ? undefined : () => learning.samplesLost ?? 0,
      endpoints: () =>
        pool.assignments.map(({ slot, endpoint }) => ({ name: endpoint.name, reading: table.read(slot) })),
    };
  }

  #addPoolMetrics(exposition: MetricsExposition): void {
    const { options, pool, informers, flow, events, shadow } = this.#sources;
    const endpoints = () => pool.assignments.map(({ endpoint }) => endpoint);
    addServedModels(exposition, informers, endpoints);
    addRolloutShares(exposition, options.configuration.scheduling.host, endpoints);
    if (flow !== undefined) addFlowMetrics(exposition, flow, options.poolName);
    if (shadow !== undefined) addShadowMetrics(exposition, () => shadow.state);
    if (events.feed !== undefined) addKvEventMetrics(exposition, events.feed);
  }

  #adaptation() {
    const { adaptation, pool } = this.#sources;
    return shownAdaptation(adaptation.report(), (slot) => pool.endpointOf(slot)?.name ?? `slot ${slot}`);
  }

  #routes(): ReadonlyMap<string, Route> {
    const { core, pool, profiles } = this.#sources;
    const log = new DecisionLog(core);
    const stories = this.#stories(log);
    const decisions = decisionsRoute(
      log,
      (slot) => pool.endpointOf(slot),
      (profile) => profiles()[profile]?.name,
    );
    return new Map([
      ...this.#flowRoutes(),
      ...this.#pageRoutes(),
      ['/debug/adaptation', adaptationRoute(() => this.#adaptation())],
      ['/debug/decisions', decisions],
      ['/debug/health', healthRoute(() => healthReport({ ...this.#sources, log, stories }))],
      [REQUESTS_PATH, requestRoute(stories)],
      ['/debug/plugins/state', pluginStateRoute(() => pluginStates(this.#sources))],
    ]);
  }

  #stories(log: DecisionLog): RequestStories {
    const { core, pool, profiles } = this.#sources;
    return new RequestStories({
      log,
      labels: new SeriesLabels(core),
      endpointOf: (slot, generation) => pool.nameOf(slot, generation),
      profiles,
      wallMs: wallClockMs,
    });
  }

  #pageRoutes(): (readonly [string, Route])[] {
    const { options, core, table, pool, flow, unready, configuration } = this.#sources;
    if (!options.ui) return [];
    const snapshots = new PageSnapshots({
      core,
      table,
      pool,
      flow,
      poolName: options.poolName,
      version: options.version,
      adaptation: () => this.#adaptation(),
      unready,
      parts: () => partStates(this.#sources),
    });
    const report = (problem: unknown) => options.log.error({ part: 'page', err: problem }, 'a snapshot failed');
    this.#feed = new PageFeed((first) => snapshots.read(first), report);
    return [
      ['/ui/events', this.#feed.route],
      ['/ui/configuration', configurationRoute(configuration)],
      ['/ui/', pageFiles],
    ];
  }

  #flowRoutes(): (readonly [string, Route])[] {
    const { flow, pool, table } = this.#sources;
    if (flow === undefined) return [];
    const describe = (slot: number) => ({
      endpoint: pool.endpointOf(slot)?.id ?? `slot ${slot}`,
      inflight: table.read(slot).inflight,
    });
    return [['/debug/flow-control', flowControlRoute(() => flow.report(describe))]];
  }
}
