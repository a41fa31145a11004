import { shownAdaptation } from '../../adaptation/adaptation-report.js';
import type { LoadedConfiguration } from '../../config/load.js';
import { DecisionLog } from '../../core/decision-log.js';
import type { EndpointTable } from '../../core/endpoint-table.js';
import type { CoreInstance } from '../../core/memory.js';
import {
  adaptationRoute,
  decisionsRoute,
  flowControlRoute,
  pluginStateRoute,
  REQUESTS_PATH,
  replicasRoute,
  requestRoute,
} from '../../operations/debug-pages.js';
import { FOLLOWED_COUNTERS, healthRoute, TENANT_REFUSALS } from '../../operations/health-report.js';
import { addFlowMetrics } from '../../operations/metrics/flow-control-metrics.js';
import { addKeptFileMetrics, type UnsavedFiles, type UnusedFiles } from '../../operations/metrics/kept-file-metrics.js';
import { addKvEventMetrics } from '../../operations/metrics/kv-event-metrics.js';
import { addPoolsMetrics } from '../../operations/metrics/pools-metrics.js';
import { addReplicationMetrics, followedCount } from '../../operations/metrics/replication-metrics.js';
import { addRolloutShares } from '../../operations/metrics/rollout-shares.js';
import { addServedModels } from '../../operations/metrics/served-models.js';
import { addSessionMetrics } from '../../operations/metrics/session-metrics.js';
import { addShadowMetrics } from '../../operations/metrics/shadow-metrics.js';
import { addShardMetrics, type ShardUse } from '../../operations/metrics/shard-metrics.js';
import { addTokeniserMetrics } from '../../operations/metrics/tokeniser-metrics.js';
import { addTraceMetrics } from '../../operations/metrics/trace-metrics.js';
import { addUsageMetrics } from '../../operations/metrics/usage-metrics.js';
import { PageFeed } from '../../operations/page/page-feed.js';
import { configurationRoute, pageFiles } from '../../operations/page/page-files.js';
import type { ConfigurationShown } from '../../operations/page/snapshot.js';
import { CellFamilies } from '../../operations/telemetry/cell-families.js';
import type { MetricsExposition } from '../../operations/telemetry/exposition.js';
import { LastMinute } from '../../operations/telemetry/last-minute.js';
import type { Route } from '../../operations/telemetry/metrics-server.js';
import type { VouchedNames } from '../../operations/telemetry/shown-names.js';
import type { TenantUsage } from '../../operations/usage/tenant-usage.js';
import type { RequestStories, RequestStory } from '../../operations/why/request-story.js';
import type { SegmentsState } from '../../request/tokens/token-source.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import type { CompiledProfile } from '../../scheduling/program.js';
import type { ToPool } from '../messages.js';
import type { Part } from '../part.js';
import type { PickerOptions } from '../picker-options.js';
import type { AdaptationControl } from './adaptation-control.js';
import { type ConfigurationReload, NO_RELOADS } from './configuration-reload.js';
import type { FlowControl } from './flow-control.js';
import { HealthReports, scrapeTimes } from './health-reports.js';
import type { Informers } from './informers.js';
import { ColumnKeeper } from './kept-columns.js';
import type { EngineEvents } from './kv-events.js';
import type { LatencyLearning } from './latency-learning.js';
import { PageSnapshots } from './page-snapshots.js';
import { partStates } from './part-states.js';
import { pluginStates } from './plugin-states.js';
import type { PoolController } from './pool-controller.js';
import type { RecordingControl } from './recording-control.js';
import type { ReplicationControl } from './replication-control.js';
import { requestStories } from './request-stories.js';
import type { ShadowControl } from './shadow-control.js';
import type { Traces } from './traces.js';

/** A pool as a list of pools shows it. */
export interface PoolSummary {
  readonly name: string;
  readonly endpoints: number;
  /** Reasons why the pool is not ready; empty = it is. */
  readonly unready: readonly string[];
}

/** Sources of the metrics and debug pages of a pool. */
export interface PoolPageSources {
  readonly options: PickerOptions;
  /** Names of all pools of the process; undefined = there is one only. */
  readonly pools: (() => readonly string[]) | undefined;
  /** Reason why the file of the pools is not in effect; undefined = it is, or there is none. */
  readonly poolsProblem: () => string | undefined;
  /** Whether the metrics of the process stand on this page too. */
  readonly isProcess: boolean;
  readonly core: CoreInstance;
  readonly table: EndpointTable;
  readonly pool: PoolController;
  readonly informers: Informers;
  readonly adaptation: AdaptationControl;
  readonly events: EngineEvents;
  readonly flow: FlowControl | undefined;
  readonly replication: ReplicationControl | undefined;
  /** Vouched names, which are label values as they are. */
  readonly names: () => VouchedNames;
  readonly learning: LatencyLearning | undefined;
  readonly traces: Traces | undefined;
  readonly usage: TenantUsage;
  readonly unsaved: () => UnsavedFiles;
  readonly unused: () => UnusedFiles;
  readonly reload: ConfigurationReload | undefined;
  readonly recording: RecordingControl;
  readonly broadcast: (message: ToPool) => void;
  /** Undefined = nothing decides in shadow. */
  readonly shadow: ShadowControl | undefined;
  /** Deaths of each shard by its thread. */
  readonly shardDeaths: () => ReadonlyMap<number, number>;
  /** Use of each shard by its thread; undefined = another page shows it. */
  readonly shardUse: (() => ReadonlyMap<number, ShardUse>) | undefined;
  /** What the tokeniser of each shard remembers, by its thread. */
  readonly segments: ReadonlyMap<number, SegmentsState>;
  /** Endpoints that were ejected since the start. */
  readonly ejections: () => number;
  /** Endpoints that were found dead since the start. */
  readonly deaths: () => number;
  readonly silences: () => number;
  /** The plugins that run, default ones included. */
  readonly configured: () => readonly { readonly name: string; readonly type: string }[];
  /** Reasons why the picker is not ready; empty = ready. */
  readonly unready: () => readonly string[];
  /** The running configuration for the page. */
  readonly configuration: () => ConfigurationShown;
  /** Warnings about the running configuration. */
  readonly warnings: () => readonly string[];
  /** The running profiles, by number. */
  readonly profiles: () => readonly CompiledProfile[];
  /** The running configuration. */
  readonly current: () => LoadedConfiguration;
}

/** Metrics and debug pages of one pool. Starts after the parts that it shows. */
export class PoolPages implements Part {
  readonly #sources: PoolPageSources;
  readonly #columns: ColumnKeeper;
  #stories: RequestStories | undefined;
  #routes: ReadonlyMap<string, Route> = new Map();
  /** Set from the first reader on. */
  #exposition: Promise<MetricsExposition> | undefined;
  #counts: CellFamilies | undefined;
  #feed: PageFeed | undefined;
  readonly #lastMinute = new LastMinute([...FOLLOWED_COUNTERS, TENANT_REFUSALS], (name) => this.#followed(name));

  constructor(sources: PoolPageSources) {
    this.#sources = sources;
    const { broadcast, core, options } = sources;
    const logged = (core.sizes.decisions ?? 0) > 0;
    this.#columns = new ColumnKeeper({ broadcast, logged, nowMs: poolClockMs, log: options.log });
  }

  /** Requests so far, answered and refused. */
  get requests(): number {
    return this.#count('llm_d_epp_request_total');
  }

  #count(name: string, labels: Readonly<Record<string, string>> = {}): number {
    this.#counts ??= new CellFamilies(this.#sources.core, false);
    return this.#counts.sum(name, labels);
  }

  /** Present value of a counter that is followed for the last minute. */
  #followed(name: string): number {
    if (name === TENANT_REFUSALS)
      return this.#count('pointsman_flow_control_refusals_total', { cause: 'tenant-limit' });
    return followedCount(name, this.#sources.replication?.report().counts) ?? this.#count(name);
  }

  /** Replaces the vouched names, which are label values as they are. */
  vouch(names: VouchedNames): void {
    // A page that cannot be made is reported to its readers.
    this.#exposition?.then(
      (exposition) => exposition.vouch(names),
      () => undefined,
    );
  }

  /** The metrics of the pool. They are made for their first reader, so that no start waits for their library. */
  exposition(): Promise<MetricsExposition> {
    this.#exposition ??= this.#makeExposition();
    return this.#exposition;
  }

  /** Debug pages of the pool, by their path. */
  get routes(): ReadonlyMap<string, Route> {
    return this.#routes;
  }

  /** Paths with an effect on the pool. */
  get actions(): ReadonlyMap<string, Route> {
    return new Map([
      ['/debug/recording', this.#sources.recording.route],
      ['/debug/columns', this.#columns.route],
    ]);
  }

  /** The pool in a few words. */
  get summary(): PoolSummary {
    const { options, pool, unready } = this.#sources;
    return { name: options.observe.poolName, endpoints: pool.assignments.length, unready: unready() };
  }

  /** Reasons for the destination of a request; undefined = its decision is not kept here. */
  story(id: string): RequestStory | undefined {
    return this.#stories?.tell(id);
  }

  async start(): Promise<void> {
    // Flow control tells the page what it observes; everything else is read for each page.
    if (this.#sources.flow !== undefined) await this.exposition();
    this.#routes = this.#makeRoutes();
    this.#lastMinute.start();
  }

  stop(): void {
    this.#lastMinute.stop();
    this.#columns.stop();
    this.#feed?.close();
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
    if (this.#sources.isProcess) this.#sources.options.cluster.addMetrics(exposition);
    return exposition;
  }

  #expositionOptions(): ConstructorParameters<typeof MetricsExposition>[0] {
    const { options, core, pool, isProcess } = this.#sources;
    const build = { version: options.version, commit: options.commit, buildRef: `pointsman-${options.version}` };
    return {
      core,
      poolName: options.observe.poolName,
      endpointOf: (slot) => pool.endpointOf(slot),
      streamMetrics: options.observe.streamMetrics,
      prefixProducer: options.configuration.scheduling.prefixProducer,
      build: isProcess ? build : undefined,
      processMetrics: isProcess,
    };
  }

  #coreSources() {
    const { shardDeaths, ejections, deaths, silences, informers, reload, learning, pool, table } = this.#sources;
    return {
      shardDeaths,
      ejections,
      deaths,
      silences,
      leftOut: () => pool.leftOut,
      restarts: () => pool.restarts,
      scrapeErrors: () => informers.failures,
      sourceErrors: () => informers.errors,
      freshness: () => informers.freshness,
      polls: () => informers.use,
      configReloads: () => reload?.counts ?? NO_RELOADS,
      latencyTrainer: learning?.trainer,
      samplesLost: learning?.samplesLost === undefined ? undefined : () => learning.samplesLost ?? 0,
      endpoints: () =>
        pool.assignments.map(({ slot }) => ({
          name: pool.labelOf(slot)!,
          reading: table.read(slot),
          polled: informers.polled(slot),
          asleep: pool.isAsleep(slot),
          refusedPerSecond: pool.refusals.perSecond(slot),
          heldBack: table.heldBack(slot, poolClockMs()),
        })),
    };
  }

  #addPoolMetrics(exposition: MetricsExposition): void {
    const { options, pool, informers, flow, events, traces, shadow, usage, replication, isProcess } = this.#sources;
    const { shardUse, segments } = this.#sources;
    const endpoints = () => pool.assignments.map(({ endpoint }) => endpoint);
    addUsageMetrics(exposition, usage);
    addKeptFileMetrics(exposition, this.#sources);
    addServedModels(exposition, informers, endpoints);
    addRolloutShares(exposition, options.configuration.scheduling.host, endpoints);
    if (shardUse !== undefined) addShardMetrics(exposition, shardUse);
    if (options.configuration.scheduling.tokens?.kind === 'local')
      addTokeniserMetrics(exposition, segments, poolClockMs);
    if (traces !== undefined && isProcess) addTraceMetrics(exposition, () => traces.readings);
    if (isProcess && this.#sources.pools !== undefined) addPoolsMetrics(exposition, this.#sources.poolsProblem);
    if (flow !== undefined) {
      addFlowMetrics(exposition, flow, options.observe.poolName);
      addSessionMetrics(exposition, flow, (slot) => pool.labelOf(slot));
    }
    if (shadow !== undefined) addShadowMetrics(exposition, () => shadow.state);
    if (events.feed !== undefined) addKvEventMetrics(exposition, events.feed, (slot) => pool.labelOf(slot));
    if (replication !== undefined) addReplicationMetrics(exposition, () => replication.report());
  }

  #adaptation() {
    const { adaptation, pool } = this.#sources;
    return shownAdaptation(adaptation.report(), (slot) => pool.labelOf(slot) ?? `slot ${slot}`);
  }

  #makeRoutes(): ReadonlyMap<string, Route> {
    const { core, pool, profiles } = this.#sources;
    const log = new DecisionLog(core);
    const stories = requestStories(this.#sources, log);
    this.#stories = stories;
    const reports = new HealthReports({ ...this.#sources, log, stories, lastMinute: this.#lastMinute });
    const decisions = decisionsRoute(
      log,
      (slot) => pool.endpointOf(slot),
      (profile) => profiles()[profile]?.name,
    );
    return new Map([
      ...this.#flowRoutes(),
      ...this.#replicaRoutes(),
      ...this.#pageRoutes(),
      ['/debug/adaptation', adaptationRoute(() => this.#adaptation())],
      ['/debug/decisions', decisions],
      ['/debug/health', healthRoute(() => reports.read())],
      [REQUESTS_PATH, requestRoute(stories)],
      ['/debug/plugins/state', pluginStateRoute(() => pluginStates(this.#sources))],
    ]);
  }

  #pageRoutes(): (readonly [string, Route])[] {
    const { options, core, table, pool, flow, shadow, unready, configuration, informers } = this.#sources;
    if (!options.observe.ui) return [];
    const connected = () => this.#sources.replication?.report().connected;
    const snapshots = new PageSnapshots({
      core,
      table,
      pool,
      flow,
      poolName: options.observe.poolName,
      pools: this.#sources.pools,
      version: options.version,
      adaptation: () => this.#adaptation(),
      decided: this.#sources.adaptation,
      shadow,
      unready,
      parts: () => partStates({ ...this.#sources, ...scrapeTimes(options), connected }),
      polled: (slot) => informers.polled(slot),
    });
    const report = (problem: unknown) => options.log.error({ part: 'page', err: problem }, 'a snapshot failed');
    this.#feed = new PageFeed((first) => snapshots.read(first), report);
    return [
      ['/ui/events', this.#feed.route],
      ['/ui/configuration', configurationRoute(configuration)],
      ['/ui/', pageFiles],
    ];
  }

  #replicaRoutes(): (readonly [string, Route])[] {
    const { replication } = this.#sources;
    if (replication === undefined) return [];
    return [['/debug/replicas', replicasRoute(() => ({ ...replication.report(), endpoints: replication.loads() }))]];
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
