import { MessageChannel, threadId } from 'node:worker_threads';
import { LegacyAdmission, saturation } from '../../admission/shedding.js';
import { Decider } from '../../core/decider.js';
import { DecisionTrail } from '../../core/decision-trail.js';
import { EndpointTable } from '../../core/endpoint-table.js';
import { LockRetry } from '../../core/lock-retry.js';
import { attachCore, type CoreInstance } from '../../core/memory.js';
import { poolClockMs } from '../../core/pool-clock.js';
import { RequestScanner } from '../../core/request-scanner.js';
import { ResponseScanner } from '../../core/response-scanner.js';
import { seededRandom } from '../../core/seeded-random.js';
import { TokenChain } from '../../core/token-chain.js';
import { EvictableRequests } from '../../flow-control/evictable-requests.js';
import { WaitingLine } from '../../flow-control/waiting-line.js';
import type { StreamServices } from '../../ingress/exchange.js';
import { createStreamOpener } from '../../ingress/opener.js';
import { rehearse } from '../../ingress/rehearsal.js';
import type { ByteBudget, Transport, TransportOptions } from '../../ingress/transport.js';
import { createTransport } from '../../ingress/transports/create.js';
import { UnreadAnswers } from '../../ingress/unread-answers.js';
import { createLogger, type Logger } from '../../operations/log.js';
import { ShardRecorder } from '../../operations/telemetry/shard-recorder.js';
import { RequestRules } from '../../request/rules.js';
import type { TokenSource } from '../../request/tokens/token-source.js';
import { EndpointDirectory } from '../../scheduling/endpoint-directory.js';
import type { PluginDefinition } from '../../scheduling/plugin.js';
import { requestedProfile } from '../../scheduling/profile-handlers/requested-profile.js';
import { PLAIN_BLOCK_TOKENS, TOKEN_BYTES } from '../../scheduling/prompt-sizes.js';
import type { RequestHeaders } from '../../scheduling/request-headers.js';
import { CoreScheduler } from '../../scheduling/scheduler.js';
import { objectiveName } from '../../scheduling/wanted-times.js';
import type { FromShard, RehearsalPool, RulesMessage, ShardFlowControl, ShardStart, ToShard } from '../messages.js';
import { createLatencySource, servedBy } from './latency-source.js';
import { MirroredHealth } from './mirrored-health.js';
import { ReplaceableSettings } from './replaceable-settings.js';
import { type ShardPluginOptions, ShardPlugins, shardDefinitions } from './shard-plugins.js';
import { createTokenSource } from './token-sources.js';

/** Seed of the plugins' random generator. It is apart from the generator of the picks, which plugins must not change. */
const PLUGIN_SEED = 0x706c7567n;

/**
 * A shard: takes ext_proc connections and makes decisions until it is drained and its streams have ended. Called by
 * Piscina as a long-running task. Rejects with one line when the port cannot be bound, and with any uncaught exception.
 */
export async function shard(start: ShardStart): Promise<void> {
  start.control.postMessage({ kind: 'started', threadId } satisfies FromShard);
  const definitions = await shardDefinitions(start.settings.plugins.modules);
  if (start.rehearsal !== undefined) await warmUp(start, start.rehearsal, definitions);
  await new Shard(start, definitions, await createTransport(start.settings.transport)).run();
}

/** Time for the last answers to leave. */
const FAREWELL_MS = 100;

/**
 * Compiles the code of a request on memory that is thrown away: nothing of it is seen in the index, the charges, the metrics or
 * what is learned. Hook plugins would see it, so there is none with them.
 */
async function warmUp(
  start: ShardStart,
  { pool, timeMs, assignments }: RehearsalPool,
  definitions: ReadonlyMap<string, PluginDefinition>,
): Promise<void> {
  if (start.settings.plugins.configured.length > 0) return;
  const { port1, port2 } = new MessageChannel();
  const settings = { ...start.settings, flowControl: undefined, requireModelMatch: false };
  const snapshot = { ...start.snapshot, assignments };
  const transport = await createTransport(start.settings.transport);
  const shard = new Shard({ ...start, pool, settings, snapshot, control: port2 }, definitions, transport);
  const begin = performance.now();
  const exchanges = await shard.rehearse(timeMs);
  const log = createLogger(start.settings.log);
  log.info({ exchanges, ms: Math.round(performance.now() - begin) }, 'a shard has compiled its code (--warm-up)');
  port1.close();
}

/** Handler for each kind of message. */
type MessageTable = { readonly [Kind in ToShard['kind']]: (message: Extract<ToShard, { kind: Kind }>) => void };

class Shard {
  readonly #start: ShardStart;
  readonly #core: CoreInstance;
  readonly #directory = new EndpointDirectory();
  readonly #rules: RequestRules;
  readonly #settings: ReplaceableSettings;
  readonly #health: MirroredHealth;
  readonly #transport: Transport;
  readonly #log: Logger;
  readonly #recorder: ShardRecorder;
  readonly #scanner: RequestScanner;
  readonly #chain: TokenChain;
  readonly #blockTokens: number;
  readonly #plugins: ShardPlugins;
  readonly #decider: Decider;
  readonly #trail: DecisionTrail;
  readonly #reportedFilters = new Set<string>();
  readonly #late = new LockRetry();
  /** Waiting requests; undefined while flow control is off, which only a restart changes. */
  readonly #line: WaitingLine | undefined;
  readonly #evictable = new EvictableRequests();
  readonly #drained = Promise.withResolvers<void>();

  readonly #messages: MessageTable = {
    endpoints: ({ version, added, removed }) => {
      this.#directory.apply(added, removed);
      this.#send({ kind: 'applied', version });
    },
    rules: (message) => this.#rules.replace(ruleState(message)),
    names: ({ names }) => this.#recorder.vouch(names),
    health: ({ statuses }) => this.#health.replace(statuses),
    configured: ({ settings }) => this.#settings.replace(settings),
    evictRequest: ({ ticket, generation }) => this.#evictable.evictRequest(ticket, generation),
    certificate: ({ pair }) => this.#transport.replaceCertificate(pair),
    look: () => this.#send({ kind: 'going' }),
    drain: ({ timeoutMs }) => this.#drain(timeoutMs).then(this.#drained.resolve, this.#drained.reject),
  };

  /** @throws with one line when a plugin does not start */
  constructor(start: ShardStart, definitions: ReadonlyMap<string, PluginDefinition>, transport: Transport) {
    this.#transport = transport;
    const { settings, snapshot } = start;
    this.#start = start;
    this.#core = attachCore(start.pool, start.thread);
    this.#directory.apply(snapshot.assignments, []);
    this.#rules = new RequestRules(ruleState(snapshot.rules), settings.models);
    this.#settings = new ReplaceableSettings(settings);
    this.#health = new MirroredHealth(snapshot.health);
    this.#log = createLogger(settings.log);
    this.#recorder = new ShardRecorder(this.#core, {
      endpointOf: (slot) => this.#directory.at(slot)?.endpoint,
      prefixProducer: settings.prefixProducer,
      poolName: settings.poolName,
      prediction: settings.prediction,
      shards: settings.shards,
    });
    this.#recorder.vouch(snapshot.names);
    this.#scanner = new RequestScanner(this.#core);
    this.#chain = new TokenChain(this.#core);
    this.#blockTokens = settings.prefix?.blockTokens ?? PLAIN_BLOCK_TOKENS;
    this.#plugins = new ShardPlugins(settings.plugins, settings.handler, definitions, this.#pluginOptions());
    this.#decider = new Decider(this.#core, BigInt(start.seed));
    this.#decider.shadowEvery(settings.shadowEvery);
    this.#trail = new DecisionTrail(this.#core, settings.columnsEvery, (loss) => this.#recorder.cacheLost(loss));
    this.#line = this.#settings.current.flowControl && this.#waitingLine();
  }

  /** Plays requests that nobody has sent. @returns their number */
  rehearse(timeMs: number): Promise<number> {
    return rehearse(createStreamOpener(this.#services(this.#scheduler(), undefined, undefined)), timeMs);
  }

  /** Serves until the shard has drained. */
  async run(): Promise<void> {
    const { control, settings, snapshot } = this.#start;
    const tokens = await createTokenSource(settings.tokens, this.#directory);
    const scheduler = this.#scheduler();
    const latency = createLatencySource(settings.prediction, scheduler, this.#recorder);
    const open = createStreamOpener(this.#services(scheduler, tokens, latency));
    control.on('message', (message: ToShard) => this.#receive(message));
    const failure = uncaughtFailure();
    try {
      const bound = await this.#transport.listen(transportOptions(this.#start, open.held), open, this.#health);
      this.#send({ kind: 'applied', version: snapshot.version });
      this.#send({ kind: 'listening', port: bound });
      await Promise.race([this.#drained.promise, failure]);
    } finally {
      await this.#transport.close();
      this.#plugins.close();
      this.#line?.close();
      await tokens?.close();
      await latency?.close();
      control.close();
    }
  }

  /** Lets the streams end. Without time for that, requests in the queues are answered, and their answers leave. */
  async #drain(timeoutMs: number): Promise<void> {
    if (timeoutMs < FAREWELL_MS) this.#line?.turnAllAway();
    await this.#transport.drain(Math.max(timeoutMs, FAREWELL_MS));
  }

  #send(message: FromShard): void {
    this.#start.control.postMessage(message);
  }

  #receive(message: ToShard): void {
    // The table has one entry for each kind; TypeScript does not relate the entry to the message that selected it.
    const handle = this.#messages[message.kind] as (message: ToShard) => void;
    handle(message);
  }

  #pluginOptions(): ShardPluginOptions {
    return {
      core: this.#core,
      directory: this.#directory,
      random: seededRandom(BigInt(this.#start.seed) + PLUGIN_SEED),
      log: this.#log,
      failed: (plugin) => this.#recorder.pluginFailed(plugin),
      count: (plugin, counter, labels) => this.#recorder.pluginCounted(plugin, counter, labels),
      observe: (plugin, histogram, value) => this.#recorder.pluginObserved(plugin, histogram, value),
      prompts: {
        blockTokens: this.#blockTokens,
        chainHashes: (scan, model) => this.#scanner.chainHashes(scan, model),
      },
    };
  }

  #scheduler(): CoreScheduler {
    const { settings } = this.#start;
    const { profileHandler } = this.#plugins;
    return new CoreScheduler({
      settings: this.#settings,
      decider: this.#decider,
      trail: this.#trail,
      directory: this.#directory,
      handler: settings.allowProfileHeader ? requestedProfile(profileHandler) : profileHandler,
      hookColumns: this.#plugins.fillColumns,
      shadowed: (input, picked, shadow) => this.#recorder.shadowed(this.#objectiveOf(input.headers), picked, shadow),
      filteredOut: (filter) => this.#reportFilter(filter),
      staged: (stages, model) => this.#recorder.staged(settings.handler, stages, model),
      prompts: this.#scanner,
      tokens: this.#chain,
      speculated: (slot, generation, from, blocks) =>
        this.#send({ kind: 'speculated', slot, generation, hashes: this.#chain.hashes(from, blocks) }),
      requestKeys: settings.requestKeys,
      baseModels: new Set(settings.baseModels),
      blockTokens: this.#blockTokens,
      emitScores: settings.emitScores,
      predicts: settings.prediction !== undefined,
      served: servedBy(this.#core, settings.prediction),
      nowMs: poolClockMs,
      later: (again) => this.#late.add(again),
      ejected: ({ endpoint }) => this.#send({ kind: 'ejected', endpoint: endpoint.id }),
    });
  }

  /** Name of the request's objective; undefined = it names none that the pool has. */
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
    return {
      settings: this.#settings,
      scanner: this.#scanner,
      responses: new ResponseScanner(this.#core),
      scheduler: this.#plugins.scheduler(scheduler),
      plugins: this.#plugins.plugins,
      line: this.#line,
      evictable: this.#evictable,
      trail: this.#trail,
      allowExplain: settings.allowExplain,
      unreadAnswers: new UnreadAnswers(this.#recorder, this.#log),
      tokens,
      latency,
      rules: this.#rules,
      admission: this.#admission(),
      recorder: this.#recorder,
      limits: settings,
      emitScores: settings.emitScores,
      ignoreSubset: settings.ignoreSubset,
      blockBytes: () => this.#blockTokens * TOKEN_BYTES,
      now: () => performance.now(),
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

function transportOptions({ settings, thread }: ShardStart, budget: ByteBudget): TransportOptions {
  const { host, port, reusePort, tls, maxReceiveBytes, maxSendBytes } = settings;
  return {
    host,
    port,
    flag: 'grpc-port',
    reusePort,
    tls,
    maxReceiveBytes,
    maxSendBytes,
    // A socket in the file system cannot be shared as a port can: the connections of one proxy beside the picker fit one shard.
    socket: thread === 1 ? settings.socket : undefined,
    connectionsMax: settings.maxConnections,
    streamsMax: settings.maxStreams,
    stallMs: settings.requestIdleMs,
    budget,
  };
}

/**
 * Rejects with an uncaught exception. The shard then closes its connections itself, because a thread that ends while
 * HTTP/2 is reading ends the whole process (nodejs/node#38418). Closing in the middle of a read does so too
 * (nodejs/node#64850), hence the wait for the next turn.
 */
function uncaughtFailure(): Promise<never> {
  return new Promise((_, reject) => {
    process.on('uncaughtException', (error) => setImmediate(reject, error));
  });
}

function ruleState(rules: RulesMessage) {
  return { objectives: new Map(rules.objectives), rewrites: rules.rewrites, models: new Map(rules.models) };
}
