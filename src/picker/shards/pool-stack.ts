import { LegacyAdmission, saturation } from '../../admission/shedding.js';
import type { CurrentSettings } from '../../contract/current-settings.js';
import type { TokenSettings } from '../../contract/token-settings.js';
import type { CacheLoss } from '../../core/cache-loss.js';
import { Decider } from '../../core/decider.js';
import { DecisionTap, type TapCounts } from '../../core/decision-tap.js';
import { DecisionTrail } from '../../core/decision-trail.js';
import { EndpointTable } from '../../core/endpoint-table.js';
import { Hearings } from '../../core/hearings.js';
import { attachCore, type CoreInstance } from '../../core/memory.js';
import { ScanMemory } from '../../core/scan-memory.js';
import { TokenChain } from '../../core/token-chain.js';
import { EvictableRequests } from '../../flow-control/evictable-requests.js';
import { WaitingLine } from '../../flow-control/waiting-line.js';
import type { StreamServices, StreamSettings } from '../../ingress/exchange.js';
import { ColumnRequests } from '../../ingress/kept-columns.js';
import { UnreadAnswers, unusableModes } from '../../ingress/processing-modes.js';
import { RequestTracer } from '../../ingress/tracing/request-tracer.js';
import type { Logger } from '../../operations/log.js';
import { ShardRecorder } from '../../operations/telemetry/shard-recorder.js';
import { createDialects, type ParserName } from '../../request/dialects.js';
import { leftOutHints } from '../../request/engine-asks.js';
import { RequestRules } from '../../request/rules.js';
import type { TokenSource } from '../../request/tokens/token-source.js';
import { AnswerBodies } from '../../response/answer-bodies.js';
import { LockRetry } from '../../runtime/lock-retry.js';
import { poolClockMs, recentPoolClockMs, recentThreadClockMs, threadClockMs } from '../../runtime/pool-clock.js';
import { seededRandom } from '../../runtime/seeded-random.js';
import { EndpointDirectory } from '../../scheduling/endpoint-directory.js';
import { EndpointFactsTable } from '../../scheduling/endpoint-facts.js';
import type { PluginDefinition } from '../../scheduling/plugin.js';
import { requestedProfile } from '../../scheduling/profile-handlers/requested-profile.js';
import { PLAIN_BLOCK_TOKENS, TOKEN_BYTES } from '../../scheduling/prompt-sizes.js';
import type { RequestHeaders } from '../../scheduling/request-headers.js';
import { CoreScheduler } from '../../scheduling/scheduler.js';
import { TokenRatios } from '../../scheduling/token-ratios.js';
import { objectiveName } from '../../scheduling/wanted-times.js';
import type { FromPool, PoolStart, ReloadableSettings, RulesMessage, ShardFlowControl, ToPool } from '../messages.js';
import { createLatencySource, servedBy } from './latency-source.js';
import { type ShardPluginOptions, ShardPlugins } from './shard-plugins.js';
import { TraceOutbox } from './trace-outbox.js';

/**
 * Token source of a shard's prompts; undefined = tokens are estimated, and nothing of it is loaded.
 * @throws with one line when the tokeniser's files cannot be used
 */
async function createTokenSource(
  settings: TokenSettings | undefined,
  directory: EndpointDirectory,
  log: Logger,
): Promise<TokenSource | undefined> {
  if (settings === undefined) return undefined;
  const { ReportingSource } = await import('../../request/tokens/reporting-source.js');
  return new ReportingSource(await openTokenSource(settings, directory), log);
}

async function openTokenSource(settings: TokenSettings, directory: EndpointDirectory): Promise<TokenSource> {
  if (settings.kind === 'render') {
    const { RenderSource } = await import('../../request/tokens/render-source.js');
    return new RenderSource(settings, endpointsInTurn(directory), () => performance.now());
  }
  const [{ LocalSource }, { startTokeniserThreads }] = await Promise.all([
    import('../../request/tokens/local-source.js'),
    import('../jobs/job-pool.js'),
  ]);
  const source = new LocalSource(settings, startTokeniserThreads(settings.threads));
  await source.prepare();
  return source;
}

/** Base URLs of the endpoints in turn. */
function endpointsInTurn(directory: EndpointDirectory): () => string | undefined {
  let turn = 0;
  return () => {
    const slots = directory.slots();
    const endpoint = slots.length === 0 ? undefined : directory.at(slots[turn++ % slots.length]!);
    return endpoint && `http://${endpoint.address}`;
  };
}

/** Configured settings of a shard, with the stream settings derived from them. */
type ShardCurrent = ReloadableSettings & StreamSettings;

/** The settings of a shard that a reload of the configuration replaces as a whole. */
class ReplaceableSettings implements CurrentSettings<ShardCurrent> {
  #current: ShardCurrent;

  constructor(settings: ReloadableSettings) {
    this.#current = withStreamSettings(settings);
  }

  get current(): ShardCurrent {
    return this.#current;
  }

  /** Takes effect for requests that begin later. Requests under way keep their dialect and their charges. */
  replace(settings: ReloadableSettings): void {
    this.#current = withStreamSettings(settings);
  }
}

function withStreamSettings(settings: ReloadableSettings): ShardCurrent {
  return {
    ...settings,
    dialects: createDialects(settings.parsers as readonly ParserName[]),
    evicts: settings.flowControl?.evicts ?? false,
  };
}

/**
 * Seed of the plugins' random generator. It is apart from the generator of the picks, which plugins must not change.
 */
const PLUGIN_SEED = 0x706c7567n;

export interface PoolStackOptions {
  readonly start: PoolStart;
  readonly thread: number;
  readonly definitions: ReadonlyMap<string, PluginDefinition>;
  readonly log: Logger;
  /**
   * Scans of the process's own pool, which this one uses too where the hashes agree; undefined = it is the own pool.
   */
  readonly scans?: ScanMemory | undefined;
  /** Sends a message of the pool to the control thread. */
  readonly send: (message: FromPool) => void;
}

/** Handler for each kind of message. */
type MessageTable = { readonly [Kind in ToPool['kind']]: (message: Extract<ToPool, { kind: Kind }>) => void };

/**
 * What one shard has of one pool: access to the pool's memory, and the parts that decide and watch the pool's requests.
 */
export class PoolStack {
  readonly #start: PoolStart;
  readonly #log: Logger;
  readonly #send: PoolStackOptions['send'];
  readonly #core: CoreInstance;
  readonly #directory = new EndpointDirectory();
  readonly #facts = new EndpointFactsTable();
  readonly #rules: RequestRules;
  readonly #settings: ReplaceableSettings;
  readonly #recorder: ShardRecorder;
  /** Where bodies of the pool's requests and answers are scanned. */
  readonly scans: ScanMemory;
  readonly #chain: TokenChain;
  readonly #blockTokens: number;
  readonly #ratios: TokenRatios;
  readonly #answerBodies = new AnswerBodies();
  readonly #plugins: ShardPlugins;
  readonly #decider: Decider;
  readonly #trail: DecisionTrail;
  readonly #tap: DecisionTap;
  readonly #reportedFilters = new Set<string>();
  readonly #traces: TraceOutbox;
  readonly #late = new LockRetry();
  /** Waiting requests; undefined while flow control is off, which only a restart changes. */
  readonly #line: WaitingLine | undefined;
  readonly #evictable = new EvictableRequests();
  readonly #columns = new ColumnRequests();
  #tokens: TokenSource | undefined;
  #latency: ReturnType<typeof createLatencySource>;

  readonly #messages: MessageTable = {
    endpoints: ({ version, added, removed }) => {
      this.#directory.apply(added, removed);
      this.#send({ kind: 'applied', version });
    },
    rules: (message) => this.#rules.replace(ruleState(message)),
    facts: ({ changed }) => this.#facts.apply(changed),
    names: ({ names }) => this.#recorder.vouch(names),
    configured: ({ settings }) => this.#settings.replace(settings),
    evictRequest: ({ ticket, generation }) => this.#evictable.evictRequest(ticket, generation),
    tracesTaken: () => this.#traces.taken(),
    keepColumns: ({ wanted }) => this.#columns.replace(wanted),
    record: ({ recording, bytesMax }) => this.#record(recording, bytesMax),
  };

  /** @throws with one line when a plugin does not start */
  constructor({ start, thread, definitions, log, scans, send }: PoolStackOptions) {
    const { settings, snapshot } = start;
    const { bounds, decide, observe, restart, reloadable } = settings;
    this.#start = start;
    this.#log = log;
    this.#send = send;
    this.#core = attachCore(start.memory, thread);
    this.#directory.apply(snapshot.assignments, []);
    this.#facts.apply(snapshot.facts);
    this.#rules = new RequestRules(ruleState(snapshot.rules), decide.models);
    this.#settings = new ReplaceableSettings(reloadable);
    this.#recorder = new ShardRecorder(this.#core, {
      endpointOf: (slot) => this.#directory.at(slot)?.endpoint,
      prefixProducer: restart.prefixProducer,
      poolName: observe.poolName,
      prediction: restart.prediction,
      shards: bounds.shards,
      fairnessIds: observe.fairnessIds,
    });
    this.#recorder.vouch(snapshot.names);
    this.scans = scans?.serves(this.#core) ? scans : new ScanMemory(this.#core);
    this.#chain = new TokenChain(this.#core);
    this.#blockTokens = reloadable.prefix?.blockTokens ?? PLAIN_BLOCK_TOKENS;
    this.#ratios = new TokenRatios(this.#blockTokens);
    this.#plugins = new ShardPlugins(restart.plugins, restart.handler, definitions, this.#pluginOptions());
    this.#decider = new Decider(this.#core, BigInt(start.seed));
    this.#decider.shadowEvery(decide.shadowEvery);
    this.#tap = new DecisionTap(this.#core, restart.requestKeys.length);
    const lost = (loss: CacheLoss) => this.#recorder.decisions.cacheLost(loss);
    this.#trail = new DecisionTrail(this.#core, observe.columnsEvery, lost, this.#tap);
    this.#line = this.#settings.current.flowControl && this.#waitingLine();
    this.#traces = new TraceOutbox((batch) => send({ kind: 'traces', thread, batch }));
  }

  /** Services of the pool's streams, with nothing that asks other servers. */
  rehearsalServices(): StreamServices {
    return this.#services(this.#scheduler(), undefined, undefined);
  }

  /**
   * Services of the pool's streams. To be called once.
   * @throws with one line when the tokeniser's files cannot be used
   */
  async open(): Promise<StreamServices> {
    const { tokens, prediction } = this.#start.settings.restart;
    this.#tokens = await createTokenSource(tokens, this.#directory, this.#log);
    const scheduler = this.#scheduler();
    this.#latency = createLatencySource(prediction, scheduler, this.#recorder);
    return this.#services(scheduler, this.#tokens, this.#latency);
  }

  /** Tells the control thread that the pool's requests can come. */
  opened(): void {
    this.#send({ kind: 'applied', version: this.#start.snapshot.version });
  }

  receive(message: ToPool): void {
    // The table has one entry for each kind; TypeScript does not relate the entry to the message that selected it.
    const handle = this.#messages[message.kind] as (message: ToPool) => void;
    handle(message);
  }

  /** Tells what changes without a request. */
  tellSegments(): void {
    const state = this.#tokens?.segments;
    if (state !== undefined) this.#send({ kind: 'segments', thread: this.#core.thread, state });
  }

  /** Answers the requests in the queues. */
  turnAllAway(): void {
    this.#line?.turnAllAway();
  }

  async close(): Promise<void> {
    this.#plugins.close();
    this.#line?.close();
    await this.#tokens?.close();
    await this.#latency?.close();
    await this.#traces.close();
  }

  /** Begins or ends a recording. */
  #record(recording: number, bytesMax: number | undefined): void {
    const send = (frames: Uint8Array<ArrayBuffer>, counts?: TapCounts) =>
      this.#send({ kind: 'recorded', recording, frames, counts });
    if (bytesMax === undefined) {
      send(new Uint8Array(0), this.#tap.stop());
      return;
    }
    this.#tap.start({ bytesMax, take: (frames) => send(frames) });
    this.#send({ kind: 'records', recording });
  }

  #pluginOptions(): ShardPluginOptions {
    return {
      core: this.#core,
      directory: this.#directory,
      facts: this.#facts,
      random: seededRandom(BigInt(this.#start.seed) + PLUGIN_SEED),
      log: this.#log,
      failed: (plugin) => this.#recorder.pluginFailed(plugin),
      count: (plugin, counter, labels) => this.#recorder.pluginCounted(plugin, counter, labels),
      observe: (plugin, histogram, value) => this.#recorder.pluginObserved(plugin, histogram, value),
      prompts: {
        blockTokens: this.#blockTokens,
        chainHashes: (scan, model) => this.scans.requests.chainHashes(scan, model),
      },
    };
  }

  #scheduler(): CoreScheduler {
    const { decide, restart } = this.#start.settings;
    const { profileHandler } = this.#plugins;
    return new CoreScheduler({
      settings: this.#settings,
      decider: this.#decider,
      trail: this.#trail,
      directory: this.#directory,
      hearings: new Hearings(this.#core),
      handler: decide.allowProfileHeader ? requestedProfile(profileHandler) : profileHandler,
      hookColumns: this.#plugins.fillColumns,
      tap: this.#tap,
      shadowed: (input, picked, shadow) =>
        this.#recorder.decisions.shadowed(this.#objectiveOf(input.headers), picked, shadow),
      filteredOut: (filter) => this.#reportFilter(filter),
      filtered: (filter, note) => this.#recorder.filtered(filter, note),
      staged: (stages, model) => this.#recorder.staged(restart.handler, stages, model),
      prompts: this.scans.chainsFor(this.#core),
      tokens: this.#chain,
      speculated: (slot, generation, from, blocks) =>
        this.#send({ kind: 'speculated', slot, generation, hashes: this.#chain.hashes(from, blocks) }),
      requestKeys: restart.requestKeys,
      baseModels: new Set(restart.baseModels),
      blockTokens: this.#blockTokens,
      ratios: this.#ratios,
      decide,
      predicts: restart.prediction !== undefined,
      served: servedBy(this.#core, restart.prediction),
      nowMs: recentPoolClockMs,
      later: (again) => this.#late.add(again),
      doubted: (slot, generation) => this.#send({ kind: 'doubted', slot, generation }),
      ejected: ({ endpoint }) => this.#send({ kind: 'ejected', endpoint: endpoint.id }),
    });
  }

  /** Name of the request's objective; undefined = none, or an unknown one. */
  #objectiveOf(headers: RequestHeaders): string | undefined {
    const name = objectiveName(headers);
    return name !== undefined && this.#rules.hasObjective(name) ? name : undefined;
  }

  /** Logs once for each filter: a filter that leaves none usually leaves none for many requests. */
  #reportFilter(filter: string): void {
    if (this.#reportedFilters.has(filter)) return;
    this.#reportedFilters.add(filter);
    this.#log.warn({ filter }, 'a filter leaves no endpoint: its requests get 503; check its labels and headers');
  }

  #services(
    scheduler: CoreScheduler,
    tokens: TokenSource | undefined,
    latency: StreamServices['latency'],
  ): StreamServices {
    const { settings, seed } = this.#start;
    const { bounds, decide, observe } = settings;
    return {
      settings: this.#settings,
      scanner: this.scans.requests,
      responses: this.scans.responses,
      scheduler: this.#plugins.scheduler(scheduler),
      plugins: this.#plugins.plugins,
      line: this.#line,
      evictable: this.#evictable,
      columns: this.#columns,
      trail: this.#trail,
      tracer: observe.sampler && new RequestTracer(observe.sampler, this.#traces.add, threadClockMs),
      unreadAnswers: new UnreadAnswers(this.#recorder, this.#log),
      unusableModes: unusableModes(this.#log),
      leftOutHints: leftOutHints(this.#log),
      tokens,
      latency,
      rules: this.#rules,
      admission: this.#admission(),
      recorder: this.#recorder,
      ratios: this.#ratios,
      answerBodies: this.#answerBodies,
      bounds,
      decide,
      observe,
      blockBytes: () => this.#blockTokens * TOKEN_BYTES,
      now: threadClockMs,
      recent: recentThreadClockMs,
      random: seededRandom(BigInt(seed)),
      log: this.#log,
    };
  }

  #admission(): LegacyAdmission {
    const table = new EndpointTable(this.#core);
    return new LegacyAdmission(({ subset }) => {
      // With flow control the queues decide about every request.
      if (this.#line !== undefined) return 0;
      const slots = subset === undefined ? this.#directory.slots() : this.#directory.resolve(subset);
      return saturation(table, slots, this.#settings.current.saturation, poolClockMs());
    });
  }

  #waitingLine(): WaitingLine {
    return new WaitingLine({
      core: this.#core,
      nowMs: poolClockMs,
      tell: (report) => this.#send({ kind: 'usage', ...report }),
      release: ({ ticket, ticketGeneration }) => {
        const release = () => this.#decider.release(ticket, ticketGeneration);
        if (!release()) this.#late.add(release);
      },
      mustQueue: (fairnessId, bodyBytes) => {
        const { limitedTenants, largestBody } = this.#settings.current.flowControl ?? NO_LIMITS;
        return limitedTenants.includes(fairnessId) || limitedTenants.includes('*') || bodyBytes > largestBody;
      },
      later: (again) => this.#late.add(again),
    });
  }
}

/** Limits of a configuration without flow control. */
const NO_LIMITS: Omit<ShardFlowControl, 'evicts'> = {
  limitedTenants: [],
  largestBody: Number.POSITIVE_INFINITY,
};

function ruleState(rules: RulesMessage) {
  return { objectives: new Map(rules.objectives), rewrites: rules.rewrites, models: new Map(rules.models) };
}
