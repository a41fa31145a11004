import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import type { KeyPair, ListenSettings } from '../../contract/listen-settings.js';
import { assertFree } from '../../ingress/transports/listener.js';
import type { ShardUse } from '../../operations/metrics/shard-metrics.js';
import { LOCK_RETRY_MS, LockRetry } from '../../runtime/lock-retry.js';
import type { ChoiceSettings, FromShard, HealthStatuses, RehearsalPool, ShardStart, ToShard } from '../messages.js';
import { PoolLink, type ServedPool, type Shards } from './pool-link.js';
import { Restarts } from './restarts.js';

export interface ShardPoolOptions {
  readonly shards: number;
  /** `startShardThreads(shards)`; the pool ends them. */
  readonly workers: Piscina;
  /** The process's own pool; its settings say where the shards listen. */
  readonly own: ServedPool;
  /** Made-up requests on which shards compile their code before they first listen; undefined = they listen at once. */
  readonly rehearsal?: RehearsalPool | undefined;
  /** How requests find their pool; undefined = the own pool is the only one. */
  readonly choice?: ChoiceSettings | undefined;
  /** Health of the process at the call. */
  readonly health: () => HealthStatuses;
  /** Called when a shard listens. */
  readonly listens: () => void;
  /** Called when a shard has died. Its locks and charges have been released, and a new shard is starting. */
  readonly died: (thread: number, reason: string, released: number) => void;
  /** Called when no shard listens any more and none can be started; the process should end. */
  readonly failed: (error: Error) => void;
}

interface Shard {
  readonly thread: number;
  readonly port: MessagePort;
  /** The Piscina task: settles when the shard ends. */
  readonly task: Promise<void>;
  /** Fires when the shard does not listen in time. */
  readonly starting: NodeJS.Timeout;
  /** Ends the task, also while it waits for a thread. */
  readonly giveUp: () => void;
  /** Set once the task runs. */
  worker: Worker | undefined;
  listening: boolean;
  /** Messages in a row without an answer. */
  unanswered: number;
  /** Last report of the shard about itself. */
  use: ShardUse | undefined;
  /** Reason why the control thread ended its thread. */
  ending?: Error;
}

/** Bound on restarts in a row while no other shard listens. More of them mean a permanent fault. */
const RESTARTS_MAX = 5;
/** Interval between two messages that ask the shards whether they go on. */
const LOOK_MS = 1_000;
/** Messages in a row that a shard may leave unanswered: it is taken for stalled then, and replaced. */
const UNANSWERED_MAX = 10;
/** Start timeout of a shard, which normally listens after 0.1 s. */
const START_MS_MAX = 30_000;
/** Time beyond the drain in which the shards close their connections and report it. */
const CLOSING_MS = 500;

/**
 * The shard threads: long-running Piscina tasks over one pool memory. After the death of a shard its state is reclaimed
 * and it is started again; the other shards continue.
 */
export class ShardPool implements Shards {
  readonly #options: ShardPoolOptions;
  readonly #shards = new Map<number, Shard>();
  /** Link of the process's own pool. */
  readonly own: PoolLink;
  /** Pools that shards serve, those too whose streams are ending. */
  readonly #pools = new Map<number, PoolLink>();
  /** Threads with open streams of a removed pool, and the callback after the last. */
  readonly #removals = new Map<number, { readonly threads: Set<number>; readonly done: () => void }>();
  #choice: ChoiceSettings | undefined;
  #lastPool = 0;
  /** Port of the shards; 0 before the first one listens, where any will do. */
  #port: number;
  #tls: ListenSettings['tls'];
  #stopping = false;
  readonly #restarts = new Restarts();
  #looks: NodeJS.Timeout | undefined;
  /** The first start: resolves when all shards listen, rejects when one cannot. */
  #start: PromiseWithResolvers<void> | undefined;

  constructor(options: ShardPoolOptions) {
    this.#options = options;
    const { settings } = options.own;
    this.#port = settings.listen.grpcPort;
    this.#tls = settings.listen.tls;
    this.#choice = options.choice;
    this.own = new PoolLink(0, options.own, this);
    this.#pools.set(0, this.own);
    options.workers.on('workerDestroy', () => setImmediate(() => this.#giveUpWaiting()));
  }

  /** Starts every shard. Resolves to the port when all of them listen, rejects with a clear message otherwise. */
  async start(): Promise<number> {
    const { listen, bounds } = this.#options.own.settings;
    // Sockets with SO_REUSEPORT would also share the port with another program.
    if (bounds.shards > 1 && this.#port !== 0) await assertFree(listen.addresses.grpc, this.#port, 'grpc-port');
    const start = Promise.withResolvers<void>();
    this.#start = start;
    // The first shard binds alone: port 0 becomes one number for all, and a busy port is reported once.
    this.#spawn(1);
    await start.promise;
    this.#looks = setInterval(() => this.#lookForStalls(), LOOK_MS);
    this.#looks.unref();
    return this.#port;
  }

  /** Whether every shard listens and fulfils a condition. @param fulfils is given the shard's thread number */
  everyListening(fulfils: (thread: number) => boolean): boolean {
    for (const { listening, thread } of this.#shards.values()) if (!listening || !fulfils(thread)) return false;
    return this.#shards.size > 0;
  }

  get listening(): number {
    return [...this.#shards.values()].filter((shard) => shard.listening).length;
  }

  /** Use of each shard by its thread, as told within the last second. */
  get use(): ReadonlyMap<number, ShardUse> {
    const told = [...this.#shards.values()].flatMap(({ thread, use }) =>
      use === undefined ? [] : [[thread, use] as const],
    );
    return new Map(told);
  }

  /** Worker threads, for tests that end one. */
  get workers(): Piscina {
    return this.#options.workers;
  }

  #spawn(thread: number): void {
    const { health, workers } = this.#options;
    const { port1, port2 } = new MessageChannel();
    for (const { applied } of this.#pools.values()) applied.delete(thread);
    const further = [...this.#pools.values()].filter(({ number }) => number !== 0 && !this.#removals.has(number));
    const own = this.own.startOf(thread);
    const listen = { ...own.settings.listen, grpcPort: this.#port, tls: this.#tls };
    const start: ShardStart = {
      thread,
      pools: [{ ...own, settings: { ...own.settings, listen } }, ...further.map((pool) => pool.startOf(thread))],
      choice: this.#choice,
      health: health(),
      control: port2,
      // A shard under restart is missing in it.
      rehearsal: this.#start === undefined ? undefined : this.#options.rehearsal,
    };
    const aborting = new AbortController();
    const giveUp = () => aborting.abort();
    const task = workers.run(start, { transferList: [port2], signal: aborting.signal }) as Promise<void>;
    const starting = setTimeout(giveUp, START_MS_MAX).unref();
    const state = { worker: undefined, listening: false, unanswered: 0, use: undefined };
    const shard: Shard = { thread, port: port1, task, starting, giveUp, ...state };
    this.#shards.set(thread, shard);
    port1.on('message', (message: FromShard) => this.#receive(shard, message));
    task.then(
      () => this.#ended(shard, new Error('it ended by itself')),
      (error: unknown) => this.#ended(shard, error instanceof Error ? error : new Error(String(error))),
    );
  }

  #receive(shard: Shard, message: FromShard): void {
    if (message.kind === 'started') shard.worker = this.workers.threads.find((t) => t.threadId === message.threadId);
    else if (message.kind === 'listening') this.#listens(shard, message.port);
    else if (message.kind === 'going') this.#goesOn(shard, message.use);
    else if (message.kind === 'pool') this.#pools.get(message.pool)?.take(shard.thread, message.message);
    else if (message.kind === 'poolFailed') this.#pools.get(message.pool)?.pool.failed(shard.thread, message.reason);
    else this.#poolEnded(message.pool, shard.thread);
  }

  #goesOn(shard: Shard, use: ShardUse): void {
    shard.unanswered = 0;
    shard.use = use;
  }

  #listens(shard: Shard, port: number): void {
    shard.listening = true;
    clearTimeout(shard.starting);
    this.#restarts.listens(shard.thread);
    this.#port = port;
    if (this.#start !== undefined) {
      if (this.#shards.size < this.#options.shards) this.#spawn(this.#shards.size + 1);
      else {
        this.#start.resolve();
        this.#start = undefined;
      }
    }
    for (const { pool } of this.#pools.values()) pool.shardListens();
    this.#options.listens();
  }

  async #ended(shard: Shard, reason: Error): Promise<void> {
    const { thread, worker } = shard;
    const why = shard.ending ?? reason;
    clearTimeout(shard.starting);
    shard.port.close();
    this.#shards.delete(thread);
    if (this.#stopping) return;
    if (this.#start !== undefined) {
      this.#start.reject(reason);
      return;
    }
    // The thread must not run any more when its locks are taken away.
    await worker?.terminate();
    if (this.#stopping) return;
    this.#reclaim(thread, why);
  }

  /**
   * Releases what a dead shard held, then starts it again. When another shard has died inside a lock, the release may
   * have to wait for that shard's repair. Until then some charges remain, and their thread number must not be used
   * again.
   */
  #reclaim(thread: number, reason: Error): void {
    const pools = [...this.#pools.values()];
    let released = 0;
    // One retry per death: the lock in the way may belong to a shard that is reclaimed after this one.
    new LockRetry({ pauseMsMax: LOCK_RETRY_MS }).run(() => {
      if (this.#stopping) return true;
      for (const { pool } of pools) released += pool.control.call.reclaimThread(thread) >>> 0;
      if (pools.some(({ pool }) => pool.control.call.threadCharges(thread) > 0)) return false;
      for (const { pool } of pools) pool.shardDied(thread);
      for (const pool of [...this.#removals.keys()]) this.#poolEnded(pool, thread);
      this.#options.died(thread, reason.message, released);
      this.#restart(thread, reason);
      return true;
    });
  }

  #restart(thread: number, reason: Error) {
    const pauseMs = this.#restarts.pauseOf(thread);
    if (this.#restarts.inARow(thread) > RESTARTS_MAX && this.listening === 0) {
      return this.#options.failed(new Error(`shard ${thread} cannot be started again: ${reason.message}`));
    }
    if (pauseMs === 0) return this.#spawn(thread);
    const again = setTimeout(() => {
      if (!this.#stopping) this.#spawn(thread);
    }, pauseMs);
    again.unref();
  }

  /**
   * Ends shards that do not go on: their connections close, and proxies turn to the others. The looks are counted and
   * not the time, which passes as well while this thread or the whole process stands still.
   */
  #lookForStalls(): void {
    for (const shard of this.#shards.values()) {
      if (!shard.listening) continue;
      if (++shard.unanswered <= UNANSWERED_MAX) shard.port.postMessage({ kind: 'look' } satisfies ToShard);
      else {
        const seconds = (UNANSWERED_MAX * LOOK_MS) / 1_000;
        this.#end(shard, new Error(`it has not gone on for ${seconds} s`));
      }
    }
  }

  /** Ends the thread of a shard, which cannot do so itself. */
  #end(shard: Shard, reason: Error): void {
    shard.ending = reason;
    shard.listening = false;
    shard.worker?.terminate();
  }

  /**
   * Ends the wait for a thread. Piscina does not replace one that dies while it loads, and its task would never end. A
   * new task makes a thread.
   */
  #giveUpWaiting(): void {
    if (this.#stopping || this.workers.threads.length >= this.#options.shards) return;
    for (const shard of this.#shards.values()) if (shard.worker === undefined) shard.giveUp();
  }

  broadcast(message: ToShard): void {
    for (const shard of this.#shards.values()) shard.port.postMessage(message);
  }

  /**
   * A pool beside the own one, under a number that was never used before. The shards do not serve it before `announce`.
   */
  link(pool: ServedPool): PoolLink {
    return new PoolLink(++this.#lastPool, pool, this);
  }

  /** Lets the shards serve a pool. */
  announce(link: PoolLink): void {
    this.#pools.set(link.number, link);
    for (const { thread, port } of this.#shards.values()) {
      port.postMessage({ kind: 'addPool', start: link.startOf(thread) } satisfies ToShard);
    }
  }

  /**
   * Lets no new request come to a pool. Resolves when its streams have ended in every shard, or `timeoutMs` has passed.
   */
  remove(link: PoolLink, timeoutMs: number): Promise<void> {
    const { number } = link;
    const threads = new Set(this.#shards.keys());
    return new Promise((resolve) => {
      const done = () => {
        this.#removals.delete(number);
        this.#pools.delete(number);
        resolve();
      };
      if (!this.#pools.has(number) || threads.size === 0) return done();
      this.#removals.set(number, { threads, done });
      this.broadcast({ kind: 'removePool', pool: number, timeoutMs });
    });
  }

  #poolEnded(pool: number, thread: number): void {
    const removal = this.#removals.get(pool);
    removal?.threads.delete(thread);
    if (removal?.threads.size === 0) removal.done();
  }

  /** Replaces the choice of the pool for later requests. */
  replaceChoice(choice: ChoiceSettings): void {
    this.#choice = choice;
    this.broadcast({ kind: 'choice', choice });
  }

  /** Sends a message to one shard. A shard that is being restarted does not get it. */
  tell(thread: number, message: ToShard): void {
    this.#shards.get(thread)?.port.postMessage(message);
  }

  /** Replaces the certificate of the shards for later connections, also in shards that start later. */
  replaceCertificate(pair: KeyPair): void {
    if (this.#tls === undefined) return;
    this.#tls = { ...this.#tls, ...pair };
    this.broadcast({ kind: 'certificate', pair });
  }

  /**
   * Waits up to `timeoutMs` for every shard to finish its streams, then ends the threads. The shards close their
   * connections themselves, because a thread that is terminated while HTTP/2 reads aborts the process
   * (nodejs/node#38418). A second call with a shorter time shortens the first.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#looks);
    const tasks = [...this.#shards.values()].map((shard) => shard.task.catch(() => {}));
    this.broadcast({ kind: 'drain', timeoutMs });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, timeoutMs + CLOSING_MS);
    });
    await Promise.race([Promise.all(tasks), late]);
    clearTimeout(timer);
    for (const shard of this.#shards.values()) shard.port.close();
    await this.workers.destroy();
  }
}
