import { shownAdaptation } from '../adaptation/explained.js';
import type { LoadedConfiguration } from '../config/load.js';
import { DecisionLog } from '../core/decision-log.js';
import { EndpointTable } from '../core/endpoint-table.js';
import { attachCore, type CoreInstance, createPoolMemory, defaultPoolSizes, type PoolMemory } from '../core/memory.js';
import { poolClockMs } from '../core/pool-clock.js';
import type { HealthSource } from '../ingress/transport.js';
import { listenHealth } from '../ingress/transports/grpc.js';
import type { EventFeed } from '../kvevents/event-feed.js';
import { adaptationRoute } from '../operations/adaptation-page.js';
import { decisionsRoute } from '../operations/decisions-page.js';
import { flowControlRoute } from '../operations/flow-control-page.js';
import { HealthState } from '../operations/health.js';
import { addFlowMetrics } from '../operations/metrics/flow-control-metrics.js';
import { addKvEventMetrics } from '../operations/metrics/kv-event-metrics.js';
import { addRolloutShares } from '../operations/metrics/rollout-shares.js';
import { addServedModels } from '../operations/metrics/served-models.js';
import type { Route } from '../operations/telemetry/metrics-server.js';
import { createFileDiscovery } from '../pool/discovery/file.js';
import type { Discovery } from '../pool/endpoint.js';
import { SlotTable } from '../pool/slots.js';
import { LatencyTrainer } from '../prediction/latency-trainer.js';
import type { TrainingClient } from '../prediction/servers/training-client.js';
import { AdaptationControl } from './control/adaptation-control.js';
import { CertificateWatch } from './control/certificate-watch.js';
import { ConfigurationReload, NO_RELOADS } from './control/configuration-reload.js';
import { FlowControl } from './control/flow-control.js';
import { createInformers, type Informers } from './control/informers.js';
import { createEventFeed } from './control/kv-events.js';
import { PoolController } from './control/pool-controller.js';
import { ProgramPublisher } from './control/program-publisher.js';
import { configuredSettings, shardSettings } from './control/shard-settings.js';
import { JobPool } from './jobs/job-pool.js';
import type { FromShard } from './messages.js';
import type { PickerOptions } from './picker-options.js';
import { ShardPool } from './shards/shard-pool.js';

/** Thread numbers beyond the control thread and the shards, for job threads that attach. */
const jobThreads = 4;

/** Scans and parking slots of all threads together, most of them of no use to anyone: some 8 KB each, where they are used. */
const mostScans = 131_072;

/** As many for each shard as it may have streams, so that neither a scan nor a parking slot is what runs out first. */
function scansOf(maxStreams: number, shards: number): number {
  return Math.min(Math.ceil(maxStreams / shards), Math.floor(mostScans / (1 + shards + jobThreads)));
}

/** Between two rounds of learning: an answer counts for the requests a moment later. */
const learnEveryMs = 250;

/** A picker in this process: control thread here, shards as worker threads. */
export class Picker {
  readonly #options: PickerOptions;
  readonly memory: PoolMemory;
  readonly shards: ShardPool;
  readonly #core: CoreInstance;
  readonly #table: EndpointTable;
  readonly #controller: PoolController;
  readonly #programs: ProgramPublisher;
  readonly #adaptation: AdaptationControl;
  readonly #reload: ConfigurationReload | undefined;
  readonly #trainer: LatencyTrainer | undefined;
  #training: TrainingClient | undefined;
  readonly #informers: Informers;
  readonly #health = new HealthState();
  readonly #jobs = new JobPool();
  #events: EventFeed | undefined;
  readonly #discovery: Discovery;
  readonly #closers: (() => Promise<void> | void)[] = [];
  /** Names of the profiles that run, by their numbers. */
  #profiles: readonly string[];
  readonly #flow: FlowControl | undefined;
  #shardDeaths = 0;
  #ejections = 0;

  constructor(options: PickerOptions) {
    this.#options = options;
    const { configuration, log } = options;
    this.memory = createPoolMemory({
      ...defaultPoolSizes,
      endpoints: options.maxEndpoints,
      indexBlocks: options.indexBlocks,
      threads: 1 + options.shards + jobThreads,
      scans: scansOf(options.maxStreams, options.shards),
    });
    this.#core = attachCore(this.memory, 0);
    this.#table = new EndpointTable(this.#core);
    if (!options.ejection) this.#table.disableEjection();
    this.#programs = new ProgramPublisher(this.#core);
    const first = this.#programs.place(configuration.scheduling);
    this.#programs.publish(first);
    this.#adaptation = new AdaptationControl({
      core: this.#core,
      settings: configuration.adaptation,
      run: (variant) => this.#programs.run(variant),
      projected: () => this.#programs.projected,
      slots: () => this.#controller.assignments.map(({ slot }) => slot),
      seed: options.seed,
      now: poolClockMs,
      log,
    });
    this.#profiles = profileNames(configuration);
    this.#trainer = this.#learnLatency();
    this.#discovery = createFileDiscovery({
      ...configuration.discovery!,
      read: (text, path) => this.#jobs.readEndpoints(text, path),
    });
    this.#closers.push(() => this.#jobs.stop());
    this.shards = this.#makeShards();
    this.#informers = createInformers(options, this.#core, {
      publish: (slot, generation, signals, now) => this.#controller.publish(slot, generation, signals, now),
      stale: (slot, generation) => this.#controller.stale(slot, generation),
      attributes: (slot, generation, values) => this.#controller.publishAttributes(slot, generation, values),
    });
    this.#controller = new PoolController({
      table: this.#table,
      slots: new SlotTable(this.#core.sizes.endpoints),
      settings: first,
      labels: configuration.scheduling.labels,
      broadcast: (message) => this.shards.broadcast(message),
      applied: (version) => this.shards.hasApplied(version),
      changed: (assignments, gone) => {
        this.#informers.setEndpoints(assignments);
        this.#events?.setEndpoints(assignments);
        this.#adaptation.meet(assignments);
        this.#flow?.controller.endpointsGone(gone);
      },
      report: (problem) => log.error({ part: 'pool' }, problem),
    });
    this.#flow = this.#startFlowControl();
    this.#reload = this.#followConfiguration();
  }

  #startFlowControl(): FlowControl | undefined {
    const { configuration, shards } = this.#options;
    if (configuration.flowControl === undefined) return undefined;
    const flow = new FlowControl({
      core: this.#core,
      configuration,
      shards,
      pool: () => this.#controller.assignments,
      signals: (slot) => this.#table.read(slot),
      revoke: ({ thread, ticket, ticketGeneration: generation }) =>
        this.shards.tell(thread, { kind: 'revoke', ticket, generation }),
    });
    this.#closers.push(() => flow.stop());
    return flow;
  }

  /** Before the first endpoint is opened, so that it is predicted from its first request on. */
  #learnLatency(): LatencyTrainer | undefined {
    const settings = this.#options.configuration.scheduling.prediction;
    if (settings === undefined) return undefined;
    const trainer = new LatencyTrainer({ core: this.#core, settings });
    const rounds = setInterval(() => trainer.learn(), learnEveryMs);
    rounds.unref();
    this.#closers.push(() => clearInterval(rounds));
    return trainer;
  }

  async #sendSamples(): Promise<TrainingClient | undefined> {
    const settings = this.#options.configuration.scheduling.prediction;
    const servers = settings?.servers;
    if (settings === undefined || servers?.training === undefined) return undefined;
    const { streaming, roleLabel } = settings;
    const { TrainingClient } = await import('../prediction/servers/training-client.js');
    const training = new TrainingClient({
      core: this.#core,
      servers: { ...servers, training: servers.training },
      streaming,
      roleLabel,
      endpointOf: (slot) => this.#controller.endpointOf(slot),
      random: Math.random,
      report: (problem) => this.#options.log.error({ part: 'prediction' }, problem),
    });
    this.#closers.push(() => training.stop());
    return training;
  }

  #followConfiguration(): ConfigurationReload | undefined {
    const { followed, configuration, log } = this.#options;
    if (followed === undefined) return undefined;
    const reload = new ConfigurationReload({
      followed,
      running: configuration,
      apply: (next) => this.reconfigure(next),
      log,
    });
    this.#closers.push(() => reload.stop());
    return reload;
  }

  /**
   * Put a configuration in the place of the running one, which it must follow by `planReload` without a restart.
   * Masks and shards come first, so that a program never runs without what it needs; each profile changes in one store.
   * @throws RangeError when the core's tables cannot hold both for a moment; nothing has changed then
   */
  reconfigure(next: LoadedConfiguration): void {
    const placed = this.#programs.place(next.scheduling);
    this.#flow?.configure(next);
    this.#controller.configure(placed);
    this.shards.replaceConfigured(configuredSettings(next));
    this.#programs.publish(placed);
    this.#adaptation.configure(next.adaptation);
    this.#profiles = profileNames(next);
  }

  #makeShards(): ShardPool {
    return new ShardPool({
      shards: this.#options.shards,
      workers: this.#options.shardThreads,
      pool: this.memory,
      control: this.#core,
      settings: shardSettings(this.#options),
      seed: this.#options.seed,
      snapshot: () => ({
        version: this.#controller.version,
        assignments: this.#controller.assignments,
        rules: this.#controller.rules,
        health: statuses(this.#health),
      }),
      message: (_thread, message) => this.#receive(message),
      died: (thread, reason, released) => {
        this.#shardDeaths++;
        this.#flow?.controller.shardDied(thread);
        this.#options.log.error(
          { thread, reason, released },
          'a shard died: its charges were released, it starts again',
        );
        this.#health.update({ shardsReady: this.shards.listening > 0 });
      },
      failed: (error) => this.#options.failed(error),
    });
  }

  #receive(message: FromShard): void {
    const { log } = this.#options;
    if (message.kind === 'applied') this.#controller.acknowledged();
    else if (message.kind === 'listening') {
      this.#controller.acknowledged();
      this.#health.update({ shardsReady: this.shards.listening === this.#options.shards });
    } else if (message.kind === 'spent') this.#flow?.controller.spent(message);
    else if (message.kind === 'speculated') {
      this.#events?.speculated(message.slot, message.generation, message.hashes);
    } else if (message.kind === 'ejected') {
      this.#ejections++;
      log.warn({ endpoint: message.endpoint }, 'endpoint ejected: its answers failed repeatedly');
    }
  }

  /**
   * Load the endpoints, open the ports, start the shards.
   * @returns the ports
   * @throws with one clear line when a port is busy or discovery has nothing usable to start with
   */
  async start(): Promise<{ grpcPort: number; healthPort: number; metricsPort: number }> {
    const { log, host, options } = { ...this.#options, options: this.#options };
    try {
      await this.#followEvents();
      const state = await this.#discovery.start(
        (next) => this.#controller.apply(next),
        (problem) => log.error({ part: 'discovery' }, problem),
      );
      this.#closers.push(() => this.#discovery.stop());
      this.#controller.apply(state);
      this.#health.update({ discoveryLoaded: true });
      this.#health.watch(() => this.shards.broadcast({ kind: 'health', statuses: statuses(this.#health) }));
      this.#training = await this.#sendSamples();
      const metrics = await this.#startMetrics();
      const health = await listenHealth(
        { host, port: options.healthPort, flag: 'grpc-health-port', tls: undefined },
        this.#health,
      );
      this.#closers.push(() => health.close());
      const grpcPort = await this.shards.start();
      await this.#adaptation.start();
      this.#closers.push(() => this.#adaptation.stop());
      this.#followCertificate();
      await this.#reload?.start();
      return { grpcPort, healthPort: health.port, metricsPort: metrics };
    } catch (error) {
      await this.stop(0);
      throw error;
    }
  }

  async #followEvents(): Promise<void> {
    const { configuration, log } = this.#options;
    const events = await createEventFeed({
      scheduling: configuration.scheduling,
      core: this.#core,
      report: (problem) => log.warn({ part: 'KV events' }, problem),
    });
    if (events === undefined) return;
    this.#events = events;
    this.#closers.push(() => events.close());
    await events.start();
  }

  #followCertificate(): void {
    const { tls, certificateFolder, log } = this.#options;
    if (tls === undefined || certificateFolder === undefined) return;
    const watch = new CertificateWatch({
      folder: certificateFolder,
      flag: 'cert-path',
      pair: tls,
      changed: (pair) => {
        this.shards.replaceCertificate(pair);
        log.info({ part: 'certificate' }, 'new connections get the new certificate');
      },
      report: (problem) => log.error({ part: 'certificate' }, problem),
    });
    this.#closers.push(() => watch.stop());
  }

  async #startMetrics(): Promise<number> {
    const { options, host, log } = { ...this.#options, options: this.#options };
    // The page's library loads while the first shard starts.
    const [{ MetricsExposition }, { startMetricsServer }, { addCoreMetrics }, { addAdaptationMetrics }] =
      await Promise.all([
        import('../operations/telemetry/exposition.js'),
        import('../operations/telemetry/metrics-server.js'),
        import('../operations/metrics/core-metrics.js'),
        import('../operations/metrics/adaptation-metrics.js'),
      ]);
    const exposition = new MetricsExposition({
      core: this.#core,
      poolName: options.poolName,
      endpointOf: (slot) => this.#controller.endpointOf(slot),
      streamMetrics: options.streamMetrics,
      prefixProducer: options.configuration.scheduling.prefixProducer,
      build: { version: options.version, commit: options.commit, buildRef: `pointsman-${options.version}` },
    });
    addCoreMetrics(exposition, this.#core, {
      shardDeaths: () => this.#shardDeaths,
      ejections: () => this.#ejections,
      scrapeErrors: () => this.#informers.failures,
      configReloads: () => this.#reload?.counts ?? NO_RELOADS,
      latencyTrainer: this.#trainer,
      samplesLost: this.#training && (() => this.#training!.lost),
      endpoints: () =>
        this.#controller.assignments.map(({ slot, endpoint }) => ({
          name: endpoint.name,
          reading: this.#table.read(slot),
        })),
    });
    addServedModels(exposition, this.#informers, () => this.#controller.assignments.map(({ endpoint }) => endpoint));
    addRolloutShares(exposition, options.configuration.scheduling.host, () =>
      this.#controller.assignments.map(({ endpoint }) => endpoint),
    );
    if (this.#flow !== undefined) addFlowMetrics(exposition, this.#flow, options.poolName);
    if (this.#events !== undefined) addKvEventMetrics(exposition, this.#events);
    const adaptation = () =>
      shownAdaptation(this.#adaptation.report(), (slot) => this.#controller.endpointOf(slot)?.name ?? `slot ${slot}`);
    addAdaptationMetrics(exposition, adaptation);
    const server = await startMetricsServer({
      host,
      port: options.metricsPort,
      exposition,
      tls: options.metricsTls,
      routes: new Map([
        ...this.#flowRoutes(),
        ['/debug/adaptation', adaptationRoute(adaptation)],
        [
          '/debug/decisions',
          decisionsRoute(
            new DecisionLog(this.#core),
            (slot) => this.#controller.endpointOf(slot),
            (profile) => this.#profiles[profile],
          ),
        ],
      ]),
      report: (problem) => log.error({ part: 'metrics' }, problem),
    });
    this.#closers.push(() => server.close());
    return server.port;
  }

  #flowRoutes(): (readonly [string, Route])[] {
    const flow = this.#flow;
    if (flow === undefined) return [];
    const describe = (slot: number) => ({
      endpoint: this.#controller.endpointOf(slot)?.id ?? `slot ${slot}`,
      inflight: this.#table.read(slot).inflight,
    });
    return [['/debug/flow-control', flowControlRoute(() => flow.report(describe))]];
  }

  /** Not ready at once; streams finish within `drainMs`; then everything is closed. May be called again to hurry. */
  async stop(drainMs: number): Promise<void> {
    this.#health.update({ draining: true });
    this.#flow?.drain(drainMs);
    await this.shards.stop(drainMs);
    this.#informers.stop();
    for (const close of this.#closers.splice(0).reverse()) await close();
  }
}

function statuses(health: HealthSource) {
  return health.services().map((service) => [service, health.status(service)] as const);
}

function profileNames({ scheduling }: LoadedConfiguration): readonly string[] {
  return scheduling.profiles.map(({ name }) => name);
}
