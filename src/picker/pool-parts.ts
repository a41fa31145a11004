import { stringify } from 'yaml';
import { type LoadedConfiguration, runningWarnings } from '../config/load.js';
import type { CurrentSettings } from '../contract/current-settings.js';
import type { SlotUpdate } from '../contract/endpoint.js';
import { DecisionLog } from '../core/decision-log.js';
import type { EndpointTable } from '../core/endpoint-table.js';
import type { CoreInstance, PoolMemory } from '../core/memory.js';
import { SampleReader } from '../core/sample-reader.js';
import { SilenceTable } from '../core/silence-table.js';
import type { PoolRoute } from '../ingress/pool-choice.js';
import type { HealthState } from '../operations/health.js';
import { TenantUsage } from '../operations/usage/tenant-usage.js';
import { SlotTable } from '../pool/slots.js';
import type { SegmentsState } from '../request/tokens/token-source.js';
import { poolClockMs } from '../runtime/pool-clock.js';
import { AdaptationControl } from './control/adaptation-control.js';
import { ConfigurationReload } from './control/configuration-reload.js';
import { Deaths } from './control/deaths.js';
import { FactsBoard } from './control/endpoint-facts.js';
import { FlowControl } from './control/flow-control.js';
import { hashSeedOf } from './control/hash-seed.js';
import { createIndexKeeper, type IndexKeeper } from './control/index-keeper.js';
import { createInformers, type Informers } from './control/informers.js';
import { EngineEvents } from './control/kv-events.js';
import { LatencyLearning } from './control/latency-learning.js';
import { PoolController } from './control/pool-controller.js';
import { createDiscovery, PoolDiscovery } from './control/pool-discovery.js';
import type { PoolPageSources } from './control/pool-pages.js';
import { type PlacedPrograms, ProgramPublisher } from './control/program-publisher.js';
import { RecordingControl } from './control/recording-control.js';
import { ReplicationControl } from './control/replication-control.js';
import { requestStories } from './control/request-stories.js';
import { ReturnWatch } from './control/return-watch.js';
import { ShadowControl } from './control/shadow-control.js';
import { reloadableSettings, shardSettings } from './control/shard-settings.js';
import { outlivingState, sharedState } from './control/shared-state.js';
import { SilenceWatch, silenceLog } from './control/silence-watch.js';
import type { TracedPool, Traces } from './control/traces.js';
import { UsageFiles } from './control/usage-files.js';
import { VouchedLabels } from './control/vouched-labels.js';
import type { JobPool } from './jobs/job-pool.js';
import type { FromPool } from './messages.js';
import type { Part } from './part.js';
import type { PickerOptions } from './picker-options.js';
import { openMemory } from './pool-memory.js';
import type { PoolLink, ServedPool } from './shards/pool-link.js';

/** Services of the process for its pools. */
export interface ProcessServices {
  readonly jobs: JobPool;
  /** Called with the facts of the pool that readiness needs. */
  readonly health: Pick<HealthState, 'update'>;
  /** How requests find the pool; undefined = they do not. */
  readonly route: PoolRoute | undefined;
  /** Port of the pool's own; undefined = none. */
  readonly port: number | undefined;
  /** Called when a shard cannot serve the pool. */
  readonly failed: (thread: number, reason: string) => void;
  /** The way to the shards; asked for after the constructor only. */
  readonly link: () => PoolLink;
  /** Undefined = requests are not traced. */
  readonly traces: Traces | undefined;
  /** Seed of the process's block hashes; undefined = the pool is the process's own, which says it. */
  readonly hashSeed: bigint | undefined;
  /** Names that metrics of the pool show as label values. */
  readonly vouch: (names: VouchedLabels['names']) => void;
}

/** Parts of one pool on the control thread: memory, programs, endpoints and their watches. */
export class PoolParts {
  readonly memory: PoolMemory;
  readonly hashSeed: bigint;
  /** Data of the pool for the shards. */
  readonly served: ServedPool;
  readonly flow: FlowControl | undefined;
  readonly labels: VouchedLabels;
  readonly facts: FactsBoard;
  readonly events: EngineEvents;
  readonly learning: LatencyLearning | undefined;
  readonly discovery: PoolDiscovery;
  readonly returnWatch: Part | undefined;
  readonly deaths: Deaths | undefined;
  readonly silence: SilenceWatch;
  readonly adaptation: AdaptationControl;
  readonly reload: ConfigurationReload | undefined;
  readonly recording: RecordingControl;
  /** Undefined = nothing decides in shadow. */
  readonly shadow: ShadowControl | undefined;
  readonly informers: Informers;
  readonly keeper: IndexKeeper | undefined;
  readonly replication: ReplicationControl | undefined;
  readonly #options: PickerOptions;
  readonly #process: ProcessServices;
  readonly #configuration: { current: LoadedConfiguration };
  readonly #core: CoreInstance;
  readonly #table: EndpointTable;
  readonly #programs: ProgramPublisher;
  readonly #pool: PoolController;
  readonly usageFiles: UsageFiles | undefined;
  readonly #usage: TenantUsage;
  readonly #traced: TracedPool | undefined;
  #ejections = 0;
  /** What the tokeniser of each shard remembers, by its thread. */
  readonly #segments = new Map<number, SegmentsState>();

  constructor(options: PickerOptions, process: ProcessServices) {
    this.#options = options;
    this.#process = process;
    this.#configuration = { current: options.configuration };
    this.hashSeed = hashSeedOf(options, process.hashSeed);
    const { memory, core, table } = openMemory(options, this.hashSeed);
    this.memory = memory;
    this.#core = core;
    this.#table = table;
    this.#programs = new ProgramPublisher(this.#core);
    const placed = this.#programs.place(options.configuration.scheduling);
    this.#programs.publish(placed);
    this.adaptation = this.#makeAdaptation();
    this.learning = this.#makeLearning();
    this.facts = new FactsBoard({
      adapters: options.configuration.scheduling.readsLoadedAdapters,
      tell: (changed) => process.link().broadcast({ kind: 'facts', changed }),
    });
    this.informers = this.#makeInformers();
    this.events = new EngineEvents({
      table: this.#table,
      scheduling: options.configuration.scheduling,
      core: this.#core,
      report: (problem) => options.log.warn({ part: 'KV events' }, problem),
    });
    this.#pool = this.#makePool(placed);
    this.shadow = this.#makeShadow();
    this.recording = this.#makeRecording();
    this.flow = this.#makeFlowControl();
    const { hashSeed } = this;
    this.keeper = createIndexKeeper(options, { core: this.#core, hashSeed, assignments: () => this.#pool.known });
    this.replication = this.#makeReplication();
    this.labels = this.#makeLabels();
    this.reload = this.#makeReload();
    this.discovery = this.#makeDiscovery();
    this.returnWatch = this.#makeReturnWatch();
    this.deaths = this.#makeDeaths();
    this.silence = this.#makeSilenceWatch();
    this.#traced = this.#makeTraced();
    this.#usage = new TenantUsage(this.#core);
    this.usageFiles = this.#makeUsageFiles();
    this.served = this.#makeServed();
  }

  /** Sources of the pool's metrics and debug pages. @param others those of the process */
  pageSources(
    others: Pick<PoolPageSources, 'isProcess' | 'pools' | 'poolsProblem' | 'shardDeaths' | 'shardUse' | 'unready'>,
  ): PoolPageSources {
    const configuration: CurrentSettings<LoadedConfiguration> = this.#configuration;
    return {
      options: this.#options,
      core: this.#core,
      table: this.#table,
      pool: this.#pool,
      informers: this.informers,
      adaptation: this.adaptation,
      events: this.events,
      flow: this.flow,
      replication: this.replication,
      names: () => this.labels.names,
      learning: this.learning,
      traces: this.#process.traces,
      usage: this.#usage,
      unsaved: () => ({
        learned: this.adaptation.isUnsaved,
        'prefix-index': this.keeper?.isUnsaved,
        usage: this.usageFiles?.isUnsaved,
      }),
      unused: () => ({ learned: this.adaptation.isUnused, 'prefix-index': this.keeper?.isUnused }),
      reload: this.reload,
      shadow: this.shadow,
      recording: this.recording,
      broadcast: (message) => this.#process.link().broadcast(message),
      ejections: () => this.#ejections,
      deaths: () => this.deaths?.count ?? 0,
      silences: () => this.silence.silences,
      segments: this.#segments,
      configured: () => configuration.current.plugins,
      ...others,
      configuration: () => ({
        effective: stringify(configuration.current.effective),
        warnings: runningWarnings(configuration.current),
      }),
      warnings: () => runningWarnings(configuration.current),
      profiles: () => configuration.current.scheduling.profiles,
      current: () => configuration.current,
    };
  }

  /**
   * Replaces the running configuration by one that `planReload` accepts without a restart.
   * Masks and shards come first, so that every program finds what it needs. Each profile changes in one store.
   * @throws RangeError when the core's tables cannot hold both configurations at once; nothing has changed then
   */
  #reconfigure(next: LoadedConfiguration): void {
    const placed = this.#programs.place(next.scheduling);
    this.flow?.configure(next);
    this.#pool.configure(placed);
    this.#process.link().replaceConfigured(reloadableSettings(next));
    this.#programs.publish(placed);
    this.adaptation.configure(next.adaptation);
    this.#configuration.current = next;
    this.shadow?.check();
  }

  #makeAdaptation(): AdaptationControl {
    const { configuration, decide, stateDir, log, replica } = this.#options;
    const { kvEvents } = configuration.scheduling;
    return new AdaptationControl({
      core: this.#core,
      stateDir,
      settings: configuration.adaptation,
      run: (variant) => this.#programs.run(variant),
      projected: () => this.#programs.projected,
      slots: () => this.#pool.assignments.map(({ slot }) => slot),
      seed: decide.seed,
      now: poolClockMs,
      log,
      replica: replica?.replica,
      tiers: kvEvents && { prices: kvEvents.tierPrices, given: kvEvents.givenTiers },
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
      publish: (slot, generation, signals, now, agesFromMs) => {
        this.labels.hear(signals);
        this.facts.scraped(this.#pool.endpointOf(slot)?.id, signals);
        this.deaths?.watch.scraped(slot, generation);
        return this.#pool.publish(slot, generation, signals, now, agesFromMs);
      },
      stale: (slot, generation) => this.#pool.stale(slot, generation),
      failed: (slot, generation) => this.deaths?.watch.scrapeFailed(slot, generation),
      attributes: (slot, generation, values) => this.#pool.publishAttributes(slot, generation, values),
      showAdapter: (name) => this.#table.showAdapter(name),
      listed: (id, models) => this.facts.models(id, models),
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
        this.#process.link().broadcast(message);
        if (message.kind !== 'rules') return;
        this.labels.collectSoon();
        this.flow?.setObjectives(message.objectives.map(([, priority]) => priority));
      },
      applied: (version) => this.#process.link().hasApplied(version),
      changed: (update) => this.#slotsChanged(update),
      slept: ({ id: endpoint }, asleep) => {
        if (asleep) log.warn({ endpoint }, 'the engine sleeps: it gets no requests until it is woken (POST /wake_up)');
        else log.info({ endpoint }, 'the engine is awake again');
      },
      refusing: ({ id: endpoint }, perSecond) =>
        log.warn({ endpoint, perSecond }, 'the engine refuses requests: a limit of its queue is reached'),
      heldBack: ({ id: endpoint }, { by, details }) => {
        if (details === undefined) log.info({ endpoint }, `${by} holds the endpoint back no longer`);
        else if (by === 'warm-up-filter') log.info({ endpoint, ...details }, 'the cache of the endpoint stays cold');
        else log.warn({ endpoint, ...details }, 'overload-filter vetoes the endpoint in every decision');
      },
      restarted: (slot, generation, sign) => this.events.feed?.restarted(slot, generation, sign),
      report: (problem) => log.error({ part: 'pool' }, problem),
    });
  }

  #slotsChanged(update: SlotUpdate): void {
    this.deaths?.watch.changeEndpoints(update);
    for (const { slot, endpoint } of update.removed) {
      if (this.#pool.endpointOf(slot)?.id !== endpoint.id) this.facts.forget(endpoint.id);
    }
    this.informers.changeEndpoints(update);
    this.recording.changeEndpoints(update);
    this.events.feed?.changeEndpoints(update);
    this.adaptation.changeEndpoints(update);
    this.flow?.controller.endpointsGone(update.removed.map(({ slot }) => slot));
    this.flow?.endpointsChanged(update.set.map(({ slot }) => slot));
    this.replication?.endpointsChanged();
    if (update.set.length > 0) void this.keeper?.endpointsChanged();
  }

  #makeFlowControl(): FlowControl | undefined {
    const { configuration, bounds, observe } = this.#options;
    if (configuration.flowControl === undefined) return undefined;
    return new FlowControl({
      core: this.#core,
      configuration,
      shards: bounds.shards,
      pool: () => this.#pool.assignments,
      signals: (slot) => this.#table.read(slot),
      fairnessIds: observe.fairnessIds,
      evictRequest: ({ thread, ticket, ticketGeneration: generation }) =>
        this.#process.link().tell(thread, { kind: 'evictRequest', ticket, generation }),
    });
  }

  #makeReplication(): ReplicationControl | undefined {
    const { replica: settings, configuration, log } = this.#options;
    if (settings === undefined) return undefined;
    const { prefix } = configuration.scheduling;
    return new ReplicationControl({
      settings,
      core: this.#core,
      assignments: () => this.#pool.known,
      hashSeed: this.hashSeed,
      sharesIndex: prefix !== undefined && (prefix.knownBy ?? 'decisions') === 'decisions',
      state: sharedState(this.adaptation, () => this.flow, settings.hashKey !== ''),
      outliving: outlivingState(this.adaptation, () => this.flow),
      hinted: (slot, generation) => this.deaths?.watch.check(slot, generation),
      log,
    });
  }

  #makeLabels(): VouchedLabels {
    return new VouchedLabels({
      rules: () => this.#pool.rules,
      servedModels: () => this.informers.models,
      configured: () => {
        const { scheduling, flowControl } = this.#configuration.current;
        const tenants = flowControl?.tenantLimits.map(({ fairnessId }) => fairnessId) ?? [];
        return { models: scheduling.baseModels, tenants };
      },
      changed: (names) => {
        this.#process.link().broadcast({ kind: 'names', names });
        this.#process.vouch(names);
        this.flow?.vouch(names);
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
    const { candidate, decide, log } = this.#options;
    if (candidate === undefined) return undefined;
    const running = () => this.#configuration.current;
    const [core, programs, pool, every] = [this.#core, this.#programs, this.#pool, decide.shadowEvery] as const;
    return new ShadowControl({ candidate, every, running, core, programs, pool, log });
  }

  #makeRecording(): RecordingControl {
    const { version, observe, bounds, allowExperimental } = this.#options;
    return new RecordingControl({
      facts: () => {
        const { effective, scheduling } = this.#configuration.current;
        return {
          version,
          pool: observe.poolName,
          slots: this.#core.sizes.endpoints,
          wallMs: Date.now(),
          configuration: stringify(effective),
          allowExperimental,
          profiles: scheduling.profiles.map(({ name }) => name),
          requestKeys: scheduling.requestKeys,
        };
      },
      assignments: () => this.#pool.known,
      shards: bounds.shards,
      broadcast: (message) => this.#process.link().broadcast(message),
      logged: bounds.decisions > 0,
      nowMs: poolClockMs,
    });
  }

  #makeDiscovery(): PoolDiscovery {
    return new PoolDiscovery({
      discovery: createDiscovery(this.#options, this.#process.jobs),
      apply: (update) => this.#pool.apply(update),
      health: this.#process.health,
      parsers: () => this.#configuration.current.parsers,
      report: (problem) => this.#options.log.error({ part: 'discovery' }, problem),
    });
  }

  #makeReturnWatch(): ReturnWatch | undefined {
    if (!this.#options.decide.ejection) return undefined;
    const assignments = () => this.#pool.assignments;
    return new ReturnWatch({ table: this.#table, assignments, now: poolClockMs });
  }

  #makeDeaths(): Deaths | undefined {
    if (!this.#options.decide.ejection) return undefined;
    return new Deaths({
      table: this.#table,
      log: this.#options.log,
      forgetPrompts: (assignment, isGone) => this.#pool.forgetPrompts(assignment, isGone),
    });
  }

  #makeSilenceWatch(): SilenceWatch {
    return new SilenceWatch({
      table: this.#table,
      silences: new SilenceTable(this.#core),
      samples: new SampleReader(this.#core),
      assignments: () => this.#pool.assignments,
      now: poolClockMs,
      report: silenceLog(this.#options.log),
    });
  }

  #makeUsageFiles(): UsageFiles | undefined {
    const { observe, log } = this.#options;
    const { usage, poolName } = observe;
    if (usage === undefined) return undefined;
    return new UsageFiles({ ...usage, poolName, read: () => this.#usage.read(), now: Date.now, log });
  }

  #makeTraced(): TracedPool | undefined {
    if (this.#process.traces === undefined) return undefined;
    const current = () => this.#configuration.current;
    const profiles = () => current().scheduling.profiles;
    const sources = { core: this.#core, pool: this.#pool, flow: this.flow, profiles, current };
    const stories = requestStories(sources, new DecisionLog(this.#core));
    return { name: this.#options.observe.poolName, stories };
  }

  #makeServed(): ServedPool {
    return {
      memory: this.memory,
      control: this.#core,
      settings: shardSettings(this.#options),
      seed: this.#options.decide.seed,
      snapshot: () => ({
        version: this.#pool.version,
        assignments: this.#pool.known,
        rules: this.#pool.rules,
        names: this.labels.names,
        facts: this.facts.known,
      }),
      route: this.#process.route,
      port: this.#process.port,
      failed: this.#process.failed,
      message: (message) => this.#receive(message),
      shardListens: () => this.#pool.acknowledged(),
      shardDied: (thread) => this.flow?.controller.shardDied(thread),
    };
  }

  #trace({ thread, batch }: Extract<FromPool, { kind: 'traces' }>): void {
    if (this.#traced !== undefined) this.#process.traces?.take(this.#traced, thread, batch);
    this.#process.link().tell(thread, { kind: 'tracesTaken' });
  }

  #receive(message: FromPool): void {
    if (message.kind === 'applied') this.#pool.acknowledged();
    else if (message.kind === 'records') this.recording.began(message.recording);
    else if (message.kind === 'recorded') this.recording.receive(message);
    else if (message.kind === 'usage') this.flow?.controller.report(message);
    else if (message.kind === 'traces') this.#trace(message);
    else if (message.kind === 'segments') this.#segments.set(message.thread, message.state);
    else if (message.kind === 'speculated') {
      this.events.feed?.speculated(message.slot, message.generation, message.hashes);
    } else if (message.kind === 'doubted') this.deaths?.watch.check(message.slot, message.generation);
    else {
      this.#ejections++;
      const { endpoint } = message;
      this.#options.log.warn({ endpoint }, 'endpoint ejected: its answers failed repeatedly');
    }
  }
}
