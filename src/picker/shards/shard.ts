import { PerformanceObserver } from 'node:perf_hooks';
import { threadId } from 'node:worker_threads';
import { shareOf } from '../../contract/bounds.js';
import type { KeyPair } from '../../contract/listen-settings.js';
import type { ScanMemory } from '../../core/scan-memory.js';
import { ADDRESS_REFUSALS, ClientShares } from '../../ingress/client-shares.js';
import { ConnectionRefusals, EXT_PROC_REFUSALS } from '../../ingress/connection-refusals.js';
import type { PoolUse, StreamContext } from '../../ingress/exchange.js';
import { createStreamOpener, type StreamOpener } from '../../ingress/opener.js';
import { PoolChoice, type PoolRoute } from '../../ingress/pool-choice.js';
import type { HealthSource, ServingStatus, Transport, TransportOptions } from '../../ingress/transport.js';
import { createTransport } from '../../ingress/transports/create.js';
import { createLogger, type Logger } from '../../operations/log.js';
import type { ShardUse } from '../../operations/metrics/shard-metrics.js';
import { slotsInUse } from '../../request/body-memory.js';
import { errorMessage } from '../../runtime/error-message.js';
import { threadClockMs } from '../../runtime/pool-clock.js';
import type { PluginDefinition } from '../../scheduling/plugin.js';
import type { FromShard, PoolStart, ShardStart, ToShard } from '../messages.js';
import type { Traffic } from './play-when-quiet.js';
import { PoolStack } from './pool-stack.js';
import { shardDefinitions } from './shard-plugins.js';
import { rehearseBeforeStart, rehearseWhenIdle } from './shard-rehearsal.js';

/** A shard's copy of the process's health, updated by messages of the control thread. */
class MirroredHealth implements HealthSource {
  #statuses: ReadonlyMap<string, ServingStatus>;
  readonly #watchers = new Set<() => void>();

  constructor(statuses: readonly (readonly [string, ServingStatus])[]) {
    this.#statuses = new Map(statuses);
  }

  replace(statuses: readonly (readonly [string, ServingStatus])[]): void {
    this.#statuses = new Map(statuses);
    for (const changed of [...this.#watchers]) changed();
  }

  status(service: string): ServingStatus {
    return this.#statuses.get(service) ?? 'SERVICE_UNKNOWN';
  }

  services(): readonly string[] {
    return [...this.#statuses.keys()];
  }

  watch(changed: () => void): () => void {
    this.#watchers.add(changed);
    return () => this.#watchers.delete(changed);
  }
}

/** Time for which garbage collections hold this thread. */
class CollectionTime {
  #ms = 0;
  readonly #observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) this.#ms += duration;
  });

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  get seconds(): number {
    return this.#ms / 1_000;
  }

  stop(): void {
    this.#observer.disconnect();
  }
}

/**
 * A shard: takes ext_proc connections and makes decisions until it is drained and its streams have ended. Called by
 * Piscina as a long-running task. Rejects with one line when the port cannot be bound, and with any uncaught exception.
 */
export async function shard(start: ShardStart): Promise<void> {
  start.control.postMessage({ kind: 'started', threadId } satisfies FromShard);
  const [{ settings }] = start.pools;
  const definitions = await shardDefinitions(settings.restart);
  if (start.rehearsal !== undefined) await rehearseBeforeStart(start, start.rehearsal, definitions);
  await new Shard(start, definitions, await createTransport(settings.listen.transport)).run();
}

/** Time for the last answers to leave. */
const FAREWELL_MS = 100;

/** Handler for each kind of message. */
type MessageTable = { readonly [Kind in ToShard['kind']]: (message: Extract<ToShard, { kind: Kind }>) => void };

/** A pool beside the process's own, as the shard serves it. */
interface FurtherPool {
  readonly pool: number;
  readonly stack: PoolStack;
  readonly context: StreamContext;
  readonly use: PoolUse;
  /** Port of the pool; undefined = no port. */
  readonly transport: Transport | undefined;
  route: PoolRoute;
}

class Shard {
  readonly #start: ShardStart;
  readonly #definitions: ReadonlyMap<string, PluginDefinition>;
  readonly #health: MirroredHealth;
  readonly #transport: Transport;
  readonly #log: Logger;
  /** Stack of the process's own pool. */
  readonly #own: PoolStack;
  readonly #pools = new Map<number, PoolStack>();
  readonly #further = new Map<number, FurtherPool>();
  readonly #choice: PoolChoice<StreamContext> | undefined;
  readonly #refusals = new ConnectionRefusals(EXT_PROC_REFUSALS, (text, details) => this.#log.warn(details, text));
  readonly #addressRefusals = new ConnectionRefusals(ADDRESS_REFUSALS, (text, details) =>
    this.#log.warn(details, text),
  );
  readonly #shares: ClientShares;
  #opener: StreamOpener | undefined;
  #isEnding = false;
  #collections: CollectionTime | undefined;
  /** Certificate that has replaced the first one. */
  #pair: KeyPair | undefined;
  /** Ends when the pools added so far are open or have failed: they change one after the other. */
  #changes: Promise<void> = Promise.resolve();
  readonly #drained = Promise.withResolvers<void>();

  readonly #messages: MessageTable = {
    pool: ({ pool, message }) => this.#pools.get(pool)?.receive(message),
    addPool: ({ start }) => this.#change(() => this.#add(start)),
    route: ({ pool, route }) => this.#change(() => this.#replaceRoute(pool, route)),
    removePool: ({ pool, timeoutMs }) => this.#change(() => this.#remove(pool, timeoutMs)),
    choice: ({ choice }) => this.#choice?.setDefault(choice.defaultPool),
    health: ({ statuses }) => this.#health.replace(statuses),
    certificate: ({ pair }) => {
      this.#pair = pair;
      for (const transport of this.#transports) transport.replaceCertificate(pair);
    },
    rehearse: ({ rehearsal }) => {
      void rehearseWhenIdle(this.#start, rehearsal, this.#definitions, this.#traffic);
    },
    look: () => {
      this.#send({ kind: 'going', use: this.#use });
      for (const stack of this.#pools.values()) stack.tellSegments();
    },
    drain: ({ timeoutMs }) => this.#drain(timeoutMs).then(this.#drained.resolve, this.#drained.reject),
  };

  /** @throws with one line when a plugin does not start */
  constructor(start: ShardStart, definitions: ReadonlyMap<string, PluginDefinition>, transport: Transport) {
    this.#start = start;
    this.#definitions = definitions;
    this.#transport = transport;
    this.#health = new MirroredHealth(start.health);
    const [own] = start.pools;
    this.#log = createLogger(own.settings.observe.log);
    const { bounds, listen } = own.settings;
    this.#shares = new ClientShares({
      streamsMax: shareOf(bounds.maxStreams, bounds),
      trusted: listen.trustedProxies,
      refusals: this.#addressRefusals,
    });
    this.#own = this.#stack(own, definitions, undefined);
    if (start.choice !== undefined) this.#choice = new PoolChoice();
    this.#choice?.setDefault(start.choice?.defaultPool);
  }

  get #use(): ShardUse {
    return {
      streams: this.#transports.reduce((sum, { streams }) => sum + streams, 0),
      handshakes: this.#transports.reduce((sum, { handshakes }) => sum + handshakes, 0),
      refusals: this.#refusals.counts,
      addressRefusals: this.#addressRefusals.counts,
      bodySlots: slotsInUse(),
      heldBytes: this.#opener?.held.bytes ?? 0,
      busySeconds: performance.eventLoopUtilization().active / 1_000,
      collectionSeconds: this.#collections?.seconds ?? 0,
    };
  }

  /** Streams that come at present: a rehearsal gives way to them. What sets a connection up or keeps it is none. */
  readonly #traffic = (): Traffic => {
    if (this.#isEnding) return 'ended';
    const transports = this.#transports;
    if (transports.some(({ streams }) => streams > 0)) return 'busy';
    return transports.reduce((sum, { opened }) => sum + opened, 0);
  };

  get #transports(): readonly Transport[] {
    const further = [...this.#further.values()].map(({ transport }) => transport);
    return [this.#transport, ...further.filter((transport) => transport !== undefined)];
  }

  /**
   * @param definitions `shardDefinitions` of the pool's settings
   * @param scans of the own pool; undefined = this is the own pool
   */
  #stack(
    start: PoolStart,
    definitions: ReadonlyMap<string, PluginDefinition>,
    scans: ScanMemory | undefined,
  ): PoolStack {
    const { pool } = start;
    const stack = new PoolStack({
      start,
      thread: this.#start.thread,
      definitions,
      log: this.#log,
      scans,
      send: (message) => this.#send({ kind: 'pool', pool, message }),
    });
    this.#pools.set(pool, stack);
    return stack;
  }

  /** Serves until the shard has drained. */
  async run(): Promise<void> {
    const { control, pools } = this.#start;
    const [own, ...further] = pools;
    this.#collections = new CollectionTime();
    const services = await this.#own.open();
    const open = createStreamOpener(services, this.#choice, this.#shares);
    this.#opener = open;
    if (own.route !== undefined) this.#choice?.add(own.route, open.contextOf(services, undefined));
    for (const start of further) await this.#add(start);
    control.on('message', (message: ToShard) => this.#receive(message));
    const failure = uncaughtFailure();
    try {
      const bound = await this.#transport.listen(this.#listening(), open, this.#health);
      this.#own.opened();
      this.#send({ kind: 'listening', port: bound });
      await Promise.race([this.#drained.promise, failure]);
    } finally {
      await this.#changes;
      this.#collections.stop();
      await Promise.all(this.#transports.map((transport) => transport.close()));
      for (const pool of this.#pools.values()) await pool.close();
      control.close();
    }
  }

  /** Lets the streams end. Without time for that, requests in the queues are answered, and their answers leave. */
  async #drain(timeoutMs: number): Promise<void> {
    this.#isEnding = true;
    if (timeoutMs < FAREWELL_MS) for (const pool of this.#pools.values()) pool.turnAllAway();
    await Promise.all(this.#transports.map((transport) => transport.drain(Math.max(timeoutMs, FAREWELL_MS))));
  }

  #change(change: () => Promise<void> | void): void {
    this.#changes = this.#changes.then(change);
  }

  /** Serves a pool beside the own one. A pool that cannot be served is reported, and nothing else changes. */
  async #add(start: PoolStart): Promise<void> {
    const { pool } = start;
    let transport: Transport | undefined;
    try {
      const stack = this.#stack(start, await shardDefinitions(start.settings.restart), this.#own.scans);
      const use: PoolUse = { streams: 0, idle: undefined };
      const context = this.#opener!.contextOf(await stack.open(), use);
      if (start.port !== undefined) {
        transport = await createTransport(start.settings.listen.transport);
        await transport.listen(
          { ...this.#listening(), ...portOf(start.port), socket: undefined },
          this.#opener!.entryOf(context),
          this.#health,
        );
      }
      this.#further.set(pool, { pool, stack, context, use, transport, route: start.route! });
      this.#choice?.add(start.route!, context);
      stack.opened();
    } catch (error) {
      await transport?.close();
      await this.#pools.get(pool)?.close();
      this.#pools.delete(pool);
      this.#send({ kind: 'poolFailed', pool, reason: errorMessage(error) });
    }
  }

  #listening(): TransportOptions {
    const options = transportOptions(this.#start, {
      budget: this.#opener!.held,
      refusals: this.#refusals,
      shares: this.#shares,
    });
    return options.tls === undefined ? options : { ...options, tls: { ...options.tls, ...this.#pair } };
  }

  #replaceRoute(pool: number, route: PoolRoute): void {
    const further = this.#further.get(pool);
    if (further === undefined) return;
    further.route = route;
    this.#choice?.add(route, further.context);
  }

  /** Takes a pool out of the choice for new streams. The pool ends with its last open stream. */
  #remove(pool: number, timeoutMs: number): void {
    const further = this.#further.get(pool);
    if (further === undefined) {
      this.#send({ kind: 'poolEnded', pool });
      return;
    }
    const { route, context, use, stack, transport } = further;
    this.#choice?.remove(route.name, context);
    void transport?.drain(timeoutMs);
    const late = setTimeout(() => {
      stack.turnAllAway();
      this.#send({ kind: 'poolEnded', pool });
    }, timeoutMs).unref();
    // The last stream ends inside a read of its connection, where nothing may be closed (nodejs/node#64850).
    const end = () =>
      setImmediate(() => {
        clearTimeout(late);
        this.#change(() => this.#end(further));
      });
    use.idle = end;
    if (use.streams === 0) end();
  }

  async #end({ pool, stack, transport, use }: FurtherPool): Promise<void> {
    if (use.streams > 0 || !this.#further.delete(pool)) return;
    this.#pools.delete(pool);
    await transport?.close();
    await stack.close();
    this.#send({ kind: 'poolEnded', pool });
  }

  #send(message: FromShard): void {
    this.#start.control.postMessage(message);
  }

  #receive(message: ToShard): void {
    // A message that ends a request, as an eviction does, gets the time of this reading.
    threadClockMs();
    // The table has one entry for each kind; TypeScript does not relate the entry to the message that selected it.
    const handle = this.#messages[message.kind] as (message: ToShard) => void;
    handle(message);
  }
}

/** A port of a pool is opened beside that of the pool which it replaces. */
function portOf(port: number): Pick<TransportOptions, 'port' | 'flag' | 'reusePort'> {
  return { port, flag: 'pools', reusePort: true };
}

function transportOptions(
  { pools: [{ settings }], thread }: ShardStart,
  own: Pick<TransportOptions, 'budget' | 'refusals' | 'shares'>,
): TransportOptions {
  const { listen, bounds } = settings;
  return {
    host: listen.addresses.grpc,
    port: listen.grpcPort,
    flag: 'grpc-port',
    reusePort: bounds.shards > 1,
    tls: listen.tls,
    maxReceiveBytes: bounds.maxReceiveBytes,
    maxSendBytes: bounds.maxSendBytes,
    // A socket in the file system cannot be shared as a port can: the connections of one proxy beside the picker fit
    // one shard.
    socket: thread === 1 ? listen.socket : undefined,
    connectionsMax: shareOf(bounds.maxConnections, bounds),
    streamsMax: shareOf(bounds.maxStreams, bounds),
    stallMs: bounds.requestIdleMs,
    ...own,
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
