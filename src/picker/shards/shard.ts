import { threadId } from 'node:worker_threads';
import { LegacyAdmission } from '../../admission/legacy-admission.js';
import { saturation } from '../../admission/saturation.js';
import { Decider } from '../../core/decider.js';
import { EndpointTable } from '../../core/endpoint-table.js';
import { LateReleases } from '../../core/lock-retry.js';
import { attachCore, type CoreInstance } from '../../core/memory.js';
import { poolClockMs } from '../../core/pool-clock.js';
import { RequestScanner } from '../../core/request-scanner.js';
import { ResponseScanner } from '../../core/response-scanner.js';
import { seededRandom } from '../../core/seeded-random.js';
import { TokenChain } from '../../core/token-chain.js';
import { RevocableRequests } from '../../flow-control/evictable-requests.js';
import { WaitingLine } from '../../flow-control/waiting-line.js';
import { createStreamOpener } from '../../ingress/opener.js';
import { GrpcTransport } from '../../ingress/transports/grpc.js';
import { createLogger, type Logger } from '../../operations/log.js';
import { ShardRecorder } from '../../operations/telemetry/shard-recorder.js';
import { RequestRules } from '../../request/rules.js';
import type { TokenSource } from '../../request/tokens/token-source.js';
import { EndpointDirectory } from '../../scheduling/endpoint-directory.js';
import { requestedProfile } from '../../scheduling/profile-handlers/requested-profile.js';
import { CoreScheduler } from '../../scheduling/scheduler.js';
import type { FromShard, RulesMessage, ShardStart, ToShard } from '../messages.js';
import { ConfiguredServices } from './configured-services.js';
import { createLatencySource, servedBy } from './latency-source.js';
import { MirroredHealth } from './mirrored-health.js';
import { ShardPlugins, shardDefinitions } from './shard-plugins.js';
import { createTokenSource } from './token-sources.js';

/** Bytes that stand for one token (token-producer, estimate mode). */
const bytesPerToken = 4;
/** Tokens of a block when nothing produces prefix matches. */
const PLAIN_BLOCK_TOKENS = 64;
/** Plugins draw from a row of their own, so that they do not change the picks. */
const pluginSeed = 0x706c7567n;

/**
 * A shard: ext_proc connections in, decisions out. Runs until it is told to drain and its streams have ended.
 * Called by Piscina as a long-running task. Rejects with one line when the port cannot be bound, and with an exception
 * that nobody caught.
 */
export async function shard(start: ShardStart): Promise<void> {
  const { control, settings, snapshot } = start;
  const send = (message: FromShard) => control.postMessage(message);
  send({ kind: 'started', threadId });
  const core = attachCore(start.pool, start.thread);
  const directory = new EndpointDirectory();
  directory.apply(snapshot.assignments, []);
  const rules = new RequestRules(ruleState(snapshot.rules), settings.requireModelMatch);
  const configured = new ConfiguredServices(settings);
  const health = new MirroredHealth(snapshot.health);
  const transport = new GrpcTransport();
  const log = createLogger(settings.log);
  const recorder = new ShardRecorder(core, {
    endpointOf: (slot) => directory.at(slot)?.endpoint,
    prefixProducer: settings.prefixProducer,
    poolName: settings.poolName,
    prediction: settings.prediction,
  });
  const scanner = new RequestScanner(core);
  const plugins = new ShardPlugins(
    settings.plugins,
    settings.handler,
    await shardDefinitions(settings.plugins.modules),
    {
      core,
      directory,
      random: seededRandom(BigInt(start.seed) + pluginSeed),
      log,
      failed: (plugin) => recorder.pluginFailed(plugin),
      count: (plugin, counter, labels) => recorder.pluginCounted(plugin, counter, labels),
      observe: (plugin, histogram, value) => recorder.pluginObserved(plugin, histogram, value),
      prompts: {
        blockTokens: settings.prefix?.blockTokens ?? PLAIN_BLOCK_TOKENS,
        chainHashes: (scan, model) => scanner.chainHashes(scan, model),
      },
    },
  );
  const decider = new Decider(core, BigInt(start.seed));
  const late = new LateReleases();
  const line = waitingLine({ core, configured, decider, send, late });
  const revocable = new RevocableRequests();
  const tokens = await createTokenSource(settings.tokens, directory);
  const shared = services({
    core,
    start,
    directory,
    rules,
    configured,
    send,
    log,
    recorder,
    plugins,
    scanner,
    tokens,
    decider,
    late,
    line,
    revocable,
  });
  const open = createStreamOpener(shared);
  const drained = new Promise<void>((resolve, reject) => {
    control.on('message', (message: ToShard) => {
      if (message.kind === 'endpoints') {
        directory.apply(message.added, message.removed);
        send({ kind: 'applied', version: message.version });
      } else if (message.kind === 'rules') rules.replace(ruleState(message));
      else if (message.kind === 'health') health.replace(message.statuses);
      else if (message.kind === 'configured') configured.replace(message.settings);
      else if (message.kind === 'revoke') revocable.revoke(message.ticket, message.generation);
      else if (message.kind === 'certificate') transport.replaceCertificate(message.pair);
      else transport.drain(message.timeoutMs).then(resolve, reject);
    });
  });
  const failure = uncaughtFailure();
  const { host, port, reusePort, maxReceiveBytes, maxSendBytes, tls } = settings;
  try {
    const listening = { host, port, flag: 'grpc-port', reusePort, maxReceiveBytes, maxSendBytes, tls };
    const bound = await transport.listen(listening, open, health);
    send({ kind: 'applied', version: snapshot.version });
    send({ kind: 'listening', port: bound });
    await Promise.race([drained, failure]);
  } finally {
    await transport.close();
    plugins.close();
    line?.close();
    await tokens?.close();
    await shared.latency?.close();
    control.close();
  }
}

/**
 * Rejects with an exception that nobody caught. The shard then closes its connections itself: a thread that ends while
 * HTTP/2 is reading takes the whole process along (nodejs/node#38418), and so does closing in the middle of a read
 * (nodejs/node#64850), hence the wait for the next turn.
 */
function uncaughtFailure(): Promise<never> {
  return new Promise((_, reject) => {
    process.on('uncaughtException', (error) => setImmediate(reject, error));
  });
}

function ruleState(rules: RulesMessage) {
  return { objectives: new Map(rules.objectives), rewrites: rules.rewrites };
}

interface ShardParts {
  readonly core: CoreInstance;
  readonly start: ShardStart;
  readonly directory: EndpointDirectory;
  readonly rules: RequestRules;
  readonly configured: ConfiguredServices;
  readonly send: (message: FromShard) => void;
  readonly log: Logger;
  readonly recorder: ShardRecorder;
  readonly plugins: ShardPlugins;
  readonly scanner: RequestScanner;
  readonly tokens: TokenSource | undefined;
  readonly decider: Decider;
  readonly late: LateReleases;
  readonly line: WaitingLine | undefined;
  readonly revocable: RevocableRequests;
}

function services(parts: ShardParts) {
  const { core, start, directory, rules, configured, send, log, recorder, plugins, scanner } = parts;
  const { tokens, decider, late, line, revocable } = parts;
  const { settings } = start;
  const seed = BigInt(start.seed);
  const table = new EndpointTable(core);
  const chain = new TokenChain(core);
  const speculated = (slot: number, generation: number, from: number, blocks: number) =>
    send({ kind: 'speculated', slot, generation, hashes: chain.hashes(from, blocks) });
  const blockTokens = settings.prefix?.blockTokens ?? PLAIN_BLOCK_TOKENS;
  const scheduler = new CoreScheduler({
    decider,
    directory,
    get profiles() {
      return configured.settings.profiles;
    },
    handler: settings.allowProfileHeader ? requestedProfile(plugins.profileHandler) : plugins.profileHandler,
    hostColumns: plugins.fillColumns,
    staged: (stages, model) => recorder.staged(settings.handler, stages, model),
    prompts: scanner,
    tokens: chain,
    get speculated() {
      return configured.settings.prefix?.knownBy === 'events and decisions' ? speculated : undefined;
    },
    get prefix() {
      return configured.settings.prefix;
    },
    get estimateOutput() {
      return configured.settings.estimateOutput;
    },
    get objectiveTimes() {
      return configured.settings.objectiveTimes;
    },
    requestKeys: settings.requestKeys,
    baseModels: new Set(settings.baseModels),
    blockTokens,
    emitScores: settings.emitScores,
    predicts: settings.prediction !== undefined,
    served: servedBy(core, settings.prediction),
    nowMs: poolClockMs,
    later: (again) => late.add(again),
    ejected: ({ endpoint }) => send({ kind: 'ejected', endpoint: endpoint.id }),
  });
  return {
    scanner,
    responses: new ResponseScanner(core),
    scheduler: plugins.scheduler(scheduler),
    plugins: plugins.plugins,
    line,
    get revocable() {
      return configured.settings.flowControl?.revokes ? revocable : undefined;
    },
    tokens,
    latency: createLatencySource(settings.prediction, scheduler, recorder),
    get dialects() {
      return configured.dialects;
    },
    rules,
    admission: new LegacyAdmission(({ subset }) => {
      // With flow control nobody is turned away before the queues.
      if (line !== undefined) return 0;
      const slots = subset === undefined ? directory.slots() : directory.resolve(subset);
      return saturation(table, slots, configured.settings.saturation, poolClockMs());
    }),
    recorder,
    limits: settings,
    emitScores: settings.emitScores,
    ignoreSubset: settings.ignoreSubset,
    blockBytes: () => blockTokens * bytesPerToken,
    now: () => performance.now(),
    random: seededRandom(seed),
    log,
  };
}

/** Where requests wait; undefined while flow control is off, which only a restart changes. */
function waitingLine({
  core,
  configured,
  decider,
  send,
  late,
}: Pick<ShardParts, 'core' | 'configured' | 'decider' | 'send' | 'late'>) {
  if (configured.settings.flowControl === undefined) return undefined;
  const limited = () => configured.settings.flowControl?.limitedTenants ?? [];
  const largestBody = () => configured.settings.flowControl?.largestBody ?? Number.POSITIVE_INFINITY;
  return new WaitingLine({
    core,
    nowMs: poolClockMs,
    tell: (spent) => send({ kind: 'spent', ...spent }),
    release: ({ ticket, ticketGeneration }) => {
      if (!decider.release(ticket, ticketGeneration)) late.add(() => decider.release(ticket, ticketGeneration));
    },
    mustQueue: (fairnessId, bodyBytes) =>
      limited().includes(fairnessId) || limited().includes('*') || bodyBytes > largestBody(),
    later: (again) => late.add(again),
  });
}
