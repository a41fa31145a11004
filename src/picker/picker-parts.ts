import { stringify } from 'yaml';
import type { LoadedConfiguration } from '../config/load.js';
import type { CurrentSettings } from '../core/current-settings.js';
import { EndpointTable } from '../core/endpoint-table.js';
import { attachCore, type CoreInstance, createPoolMemory, defaultPoolSizes, type PoolMemory } from '../core/memory.js';
import { poolClockMs } from '../core/pool-clock.js';
import type { HealthListener, HealthSource } from '../ingress/transport.js';
import { listenHealth } from '../ingress/transports/create.js';
import { HealthState } from '../operations/health.js';
import type { SlotUpdate } from '../pool/endpoint.js';
import { SlotTable } from '../pool/slots.js';
import { AdaptationControl } from './control/adaptation-control.js';
import { CertificateWatch } from './control/certificate-watch.js';
import { ConfigurationReload } from './control/configuration-reload.js';
import { FlowControl } from './control/flow-control.js';
import { createInformers, type Informers } from './control/informers.js';
import { EngineEvents } from './control/kv-events.js';
import { LameDuck } from './control/lame-duck.js';
import { LatencyLearning } from './control/latency-learning.js';
import { MetricsPage } from './control/metrics-page.js';
import { PoolController } from './control/pool-controller.js';
import { createDiscovery, PoolDiscovery } from './control/pool-discovery.js';
import { type PlacedPrograms, ProgramPublisher } from './control/program-publisher.js';
import { rehearsalPool } from './control/rehearsal-pool.js';
import { ReturnWatch } from './control/return-watch.js';
import { ShadowControl } from './control/shadow-control.js';
import { configuredSettings, shardSettings } from './control/shard-settings.js';
import { VouchedLabels } from './control/vouched-labels.js';
import { JobPool } from './jobs/job-pool.js';
import type { FromShard } from './messages.js';
import { type Part, PartList } from './part.js';
import type { PickerOptions } from './picker-options.js';
import { ShardPool } from './shards/shard-pool.js';

/** Thread numbers after those of the control thread and the shards, for job threads that attach to the memory. */
const JOB_THREADS = 4;

/** Bound on scans and wait slots over all threads. Each takes about 8 KB once it is touched. */
const SCANS_MAX = 131_072;

/** One scan and one wait slot for each stream of a shard, so that the bound on streams is reached first. */
function scansOf(maxStreams: number, shards: number): number {
  return Math.min(Math.ceil(maxStreams / shards), Math.floor(SCANS_MAX / (1 + shards + JOB_THREADS)));
}

/** Ports that a picker listens on; 0 = not open yet. */
export interface PickerPorts {
  grpc: number;
  health: number;
}

/** Makes the parts of a picker and connects their reports. */
export class PickerParts {
  readonly memory: PoolMemory;
  readonly shards: ShardPool;
  readonly metrics: MetricsPage;
  readonly ports: PickerPorts = { grpc: 0, health: 0 };
  /** The parts in the order of their start. */
  readonly list: PartList;
  readonly #options: PickerOptions;
  readonly #configuration: { current: LoadedConfiguration };
  readonly #core: CoreInstance;
  readonly #table: EndpointTable;
  readonly #programs: ProgramPublisher;
  readonly #pool: PoolController;
  /** Undefined = nothing decides in shadow. */
  readonly #shadow: ShadowControl | undefined;
  readonly #adaptation: AdaptationControl;
  readonly #informers: Informers;
  readonly #events: EngineEvents;
  readonly #learning: LatencyLearning | undefined;
  readonly #flow: FlowControl | undefined;
  readonly #labels: VouchedLabels;
  readonly #reload: ConfigurationReload | undefined;
  #certificate: CertificateWatch | undefined;
  readonly #health = new HealthState();
  readonly #jobs = new JobPool();
  readonly #counts = { shardDeaths: new Map<number, number>(), ejections: 0 };

  constructor(options: PickerOptions) {
    this.#options = options;
    for (let shard = 1; shard <= options.shards; shard++) this.#counts.shardDeaths.set(shard, 0);
    this.#configuration = { current: options.configuration };
    this.memory = poolMemory(options);
    this.#core = attachCore(this.memory, 0);
    this.#table = new EndpointTable(this.#core);
    if (!options.ejection) this.#table.disableEjection();
    this.#programs = new ProgramPublisher(this.#core);
    const placed = this.#programs.place(options.configuration.scheduling);
    this.#programs.publish(placed);
    this.#adaptation = this.#makeAdaptation();
    this.#learning = this.#makeLearning();
    this.shards = this.#makeShards();
    this.#informers = this.#makeInformers();
    this.#events = new EngineEvents({
      scheduling: options.configuration.scheduling,
      core: this.#core,
      report: (problem) => options.log.warn({ part: 'KV events' }, problem),
    });
    this.#pool = this.#makePool(placed);
    this.#shadow = this.#makeShadow();
    this.#flow = this.#makeFlowControl();
    this.#labels = this.#makeLabels();
    this.#reload = this.#makeReload();
    this.metrics = this.#makeMetrics();
    if (options.kubernetes?.elects === true) this.#health.update({ leader: false });
    this.list = this.#inOrder();
  }

  /** Reads the configuration and the certificate again. */
  async reload(): Promise<void> {
    this.#certificate?.reload();
    await this.#reload?.reload();
    await this.#shadow?.reload();
  }

  /** Each part starts after those that it shows or is fed by. The shards come late because they open the serving port. */
  #inOrder(): PartList {
    const health = this.#health;
    return new PartList([
      { drain: () => health.update({ draining: true }) },
      this.#options.kubernetes?.election((leader) => health.update({ leader })),
      this.#options.kubernetes,
      new LameDuck({ timeMs: this.#options.lameDuckMs, requests: () => this.metrics.requests }),
      this.#flow,
      this.#jobs,
      this.#labels,
      this.#events,
      this.#makeDiscovery(),
      this.#makeReturnWatch(),
      { start: () => void health.watch(() => this.shards.broadcast({ kind: 'health', statuses: statuses(health) })) },
      this.#learning,
      this.metrics,
      this.#makeHealthListener(),
      {
        start: async () => {
          this.ports.grpc = await this.shards.start();
        },
        drain: (timeoutMs) => this.shards.stop(timeoutMs),
      },
      this.#adaptation,
      this.#makeCertificateWatch(),
      this.#reload,
      this.#shadow,
      this.#informers,
    ]);
  }

  /**
   * Replaces the running configuration by one that `planReload` accepts without a restart.
   * Masks and shards come first, so that every program finds what it needs. Each profile changes in one store.
   * @throws RangeError when the core's tables cannot hold both configurations at once; nothing has changed then
   */
  #reconfigure(next: LoadedConfiguration): void {
    const placed = this.#programs.place(next.scheduling);
    this.#flow?.configure(next);
    this.#pool.configure(placed);
    this.shards.replaceConfigured(configuredSettings(next));
    this.#programs.publish(placed);
    this.#adaptation.configure(next.adaptation);
    this.#configuration.current = next;
    this.#shadow?.check();
  }

  #makeAdaptation(): AdaptationControl {
    const { configuration, seed, log } = this.#options;
    return new AdaptationControl({
      core: this.#core,
      settings: configuration.adaptation,
      run: (variant) => this.#programs.run(variant),
      projected: () => this.#programs.projected,
      slots: () => this.#pool.assignments.map(({ slot }) => slot),
      seed,
      now: poolClockMs,
      log,
    });
  }

  #makeLearning(): LatencyLearning | undefined {
    const { configuration, log } = this.#options;
    const settings = configuration.scheduling.prediction;
    if (settings === undefined) return undefined;
    return new LatencyLearning({
      core: this.#core,
      settings,
      endpointOf: (slot) => this.#pool.endpointOf(slot),
      report: (problem) => log.error({ part: 'prediction' }, problem),
    });
  }

  #makeInformers(): Informers {
    return createInformers(this.#options, this.#core, {
      publish: (slot, generation, signals, now) => {
        this.#labels.hear(signals);
        return this.#pool.publish(slot, generation, signals, now);
      },
      stale: (slot, generation) => this.#pool.stale(slot, generation),
      attributes: (slot, generation, values) => this.#pool.publishAttributes(slot, generation, values),
      showAdapter: (name) => this.#table.showAdapter(name),
    });
  }

  #makePool(settings: PlacedPrograms): PoolController {
    const { configuration, log } = this.#options;
    return new PoolController({
      table: this.#table,
      slots: new SlotTable(this.#core.sizes.endpoints),
      settings,
      labels: configuration.scheduling.labels,
      broadcast: (message) => {
        this.shards.broadcast(message);
        if (message.kind === 'rules') this.#labels.collectSoon();
      },
      applied: (version) => this.shards.hasApplied(version),
      changed: (update) => this.#slotsChanged(update),
      report: (problem) => log.error({ part: 'pool' }, problem),
    });
  }

  #slotsChanged(update: SlotUpdate): void {
    this.#informers.changeEndpoints(update);
    this.#events.feed?.changeEndpoints(update);
    this.#adaptation.changeEndpoints(update);
    this.#flow?.controller.endpointsGone(update.removed.map(({ slot }) => slot));
  }

  #makeFlowControl(): FlowControl | undefined {
    const { configuration, shards } = this.#options;
    if (configuration.flowControl === undefined) return undefined;
    return new FlowControl({
      core: this.#core,
      configuration,
      shards,
      pool: () => this.#pool.assignments,
      signals: (slot) => this.#table.read(slot),
      evictRequest: ({ thread, ticket, ticketGeneration: generation }) =>
        this.shards.tell(thread, { kind: 'evictRequest', ticket, generation }),
    });
  }

  #makeLabels(): VouchedLabels {
    return new VouchedLabels({
      rules: () => this.#pool.rules,
      servedModels: () => this.#informers.models,
      configured: () => {
        const { scheduling, flowControl } = this.#configuration.current;
        const tenants = flowControl?.tenantLimits.map(({ fairnessId }) => fairnessId) ?? [];
        return { models: scheduling.baseModels, tenants };
      },
      changed: (names) => {
        this.shards.broadcast({ kind: 'names', names });
        this.metrics.vouch(names);
        this.#flow?.vouch(names);
      },
      now: poolClockMs,
    });
  }

  #makeReload(): ConfigurationReload | undefined {
    const { followed, configuration, log } = this.#options;
    if (followed === undefined) return undefined;
    const apply = (next: LoadedConfiguration) => this.#reconfigure(next);
    return new ConfigurationReload({ followed, running: configuration, apply, log });
  }

  #makeShadow(): ShadowControl | undefined {
    const { candidate, log } = this.#options;
    if (candidate === undefined) return undefined;
    const running = () => this.#configuration.current;
    return new ShadowControl({ candidate, running, programs: this.#programs, pool: this.#pool, log });
  }

  #makeDiscovery(): PoolDiscovery {
    return new PoolDiscovery({
      discovery: createDiscovery(this.#options, this.#jobs),
      apply: (update) => this.#pool.apply(update),
      health: this.#health,
      parsers: () => this.#configuration.current.parsers,
      report: (problem) => this.#options.log.error({ part: 'discovery' }, problem),
    });
  }

  #makeReturnWatch(): ReturnWatch | undefined {
    if (!this.#options.ejection) return undefined;
    const assignments = () => this.#pool.assignments;
    return new ReturnWatch({ table: this.#table, assignments, now: poolClockMs });
  }

  #makeMetrics(): MetricsPage {
    const configuration: CurrentSettings<LoadedConfiguration> = this.#configuration;
    return new MetricsPage({
      options: this.#options,
      core: this.#core,
      table: this.#table,
      pool: this.#pool,
      informers: this.#informers,
      adaptation: this.#adaptation,
      events: this.#events,
      flow: this.#flow,
      names: () => this.#labels.names,
      learning: this.#learning,
      reload: this.#reload,
      shadow: this.#shadow,
      counts: this.#counts,
      configured: () => configuration.current.plugins,
      unready: () => this.#health.unreadyReasons(),
      configuration: () => ({
        effective: stringify(configuration.current.effective),
        warnings: configuration.current.warnings,
      }),
      profiles: () => configuration.current.scheduling.profiles,
    });
  }

  #makeHealthListener(): Part {
    const { addresses, healthPort: port, transport } = this.#options;
    let listener: HealthListener | undefined;
    return {
      start: async () => {
        const options = { host: addresses.health, port, flag: 'grpc-health-port', tls: undefined };
        listener = await listenHealth(transport, options, this.#health);
        this.ports.health = listener.port;
      },
      stop: () => listener?.close(),
    };
  }

  #makeCertificateWatch(): Part | undefined {
    const { tls, certificate, log } = this.#options;
    if (tls === undefined || certificate === undefined) return undefined;
    return {
      start: () => {
        this.#certificate = new CertificateWatch({
          ...certificate,
          flag: 'cert-path',
          pair: tls,
          changed: (pair) => {
            this.shards.replaceCertificate(pair);
            log.info({ part: 'certificate' }, 'new connections get the new certificate');
          },
          report: (problem) => log.error({ part: 'certificate' }, problem),
        });
      },
      stop: () => this.#certificate?.stop(),
    };
  }

  #makeShards(): ShardPool {
    const { shards, shardThreads, seed, failed, warmUpMs, configuration } = this.#options;
    return new ShardPool({
      rehearsal: warmUpMs === 0 ? undefined : rehearsalPool(configuration.scheduling, shards, warmUpMs),
      shards,
      workers: shardThreads,
      pool: this.memory,
      control: this.#core,
      settings: shardSettings(this.#options),
      seed,
      snapshot: () => ({
        version: this.#pool.version,
        assignments: this.#pool.known,
        rules: this.#pool.rules,
        health: statuses(this.#health),
        names: this.#labels.names,
      }),
      message: (_thread, message) => this.#receive(message),
      died: (thread, reason, released) => this.#shardDied(thread, reason, released),
      failed,
    });
  }

  #receive(message: FromShard): void {
    if (message.kind === 'applied') this.#pool.acknowledged();
    else if (message.kind === 'listening') {
      this.#pool.acknowledged();
      this.#health.update({ shardsReady: this.shards.listening === this.#options.shards });
    } else if (message.kind === 'usage') this.#flow?.controller.report(message);
    else if (message.kind === 'speculated') {
      this.#events.feed?.speculated(message.slot, message.generation, message.hashes);
    } else if (message.kind === 'ejected') {
      this.#counts.ejections++;
      const { endpoint } = message;
      this.#options.log.warn({ endpoint }, 'endpoint ejected: its answers failed repeatedly');
    }
  }

  #shardDied(thread: number, reason: string, released: number): void {
    const { shardDeaths } = this.#counts;
    shardDeaths.set(thread, (shardDeaths.get(thread) ?? 0) + 1);
    this.#flow?.controller.shardDied(thread);
    const text = 'a shard died: its charges were released, it starts again';
    this.#options.log.error({ thread, reason, released }, text);
    this.#health.update({ shardsReady: this.shards.listening > 0 });
  }
}

/** Bytes for the columns of decisions, over all shards. Decisions about 8 endpoints take 1.2 KB, about 256 some 33 KB. */
const DECISION_COLUMN_BYTES = 16 << 20;

function poolMemory({ maxEndpoints, indexBlocks, shards, maxStreams, decisions }: PickerOptions): PoolMemory {
  return createPoolMemory({
    ...defaultPoolSizes,
    endpoints: maxEndpoints,
    indexBlocks,
    threads: 1 + shards + JOB_THREADS,
    scans: scansOf(maxStreams, shards),
    decisions: Math.ceil(decisions / shards),
    decisionThreads: 1 + shards,
    decisionColumnBytes: decisions === 0 ? 0 : Math.ceil(DECISION_COLUMN_BYTES / shards),
  });
}

function statuses(health: HealthSource) {
  return health.services().map((service) => [service, health.status(service)] as const);
}
