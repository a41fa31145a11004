import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { LOCK_RETRY_MS, LockRetry } from '../../core/lock-retry.js';
import type { CoreInstance, PoolMemory } from '../../core/memory.js';
import type { KeyPair } from '../../ingress/transport.js';
import { assertFree } from '../../ingress/transports/listener.js';
import type {
  ConfiguredSettings,
  FromShard,
  PoolSnapshot,
  RehearsalPool,
  ShardSettings,
  ShardStart,
  ToShard,
} from '../messages.js';
import { Restarts } from './restarts.js';

export interface ShardPoolOptions {
  readonly shards: number;
  /** `startShardThreads(shards)`; the pool ends them. */
  readonly workers: Piscina;
  readonly pool: PoolMemory;
  readonly control: CoreInstance;
  readonly settings: ShardSettings;
  readonly seed: bigint;
  /** What shards compile their code on before they listen for the first time; undefined = they begin at once. */
  readonly rehearsal?: RehearsalPool | undefined;
  /** Start data of a shard, current at the call. */
  readonly snapshot: () => PoolSnapshot;
  readonly message: (thread: number, message: FromShard) => void;
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
  /** Messages in a row that it has not answered. */
  unanswered: number;
  /** Version of the endpoints that the shard has applied. */
  applied: number;
  /** Why its thread was ended from here. */
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
export class ShardPool {
  readonly #options: ShardPoolOptions;
  readonly #shards = new Map<number, Shard>();
  #settings: ShardSettings;
  #stopping = false;
  readonly #restarts = new Restarts();
  #looks: NodeJS.Timeout | undefined;
  /** The first start: resolves when all shards listen, rejects when one cannot. */
  #start: PromiseWithResolvers<void> | undefined;

  constructor(options: ShardPoolOptions) {
    this.#options = options;
    this.#settings = options.settings;
    options.workers.on('workerDestroy', () => setImmediate(() => this.#giveUpWaiting()));
  }

  /** Starts every shard. Resolves to the port when all of them listen, rejects with a clear message otherwise. */
  async start(): Promise<number> {
    const { host, port, reusePort } = this.#settings;
    // Sockets with SO_REUSEPORT would also share the port with another program.
    if (reusePort && port !== 0) await assertFree(host, port, 'grpc-port');
    const start = Promise.withResolvers<void>();
    this.#start = start;
    // The first shard binds alone: port 0 becomes one number for all, and a busy port is reported once.
    this.#spawn(1);
    await start.promise;
    this.#looks = setInterval(() => this.#lookForStalls(), LOOK_MS);
    this.#looks.unref();
    return this.#settings.port;
  }

  /** Whether every shard listens and has applied `version` of the endpoints. */
  hasApplied(version: number): boolean {
    for (const shard of this.#shards.values()) if (!shard.listening || shard.applied < version) return false;
    return this.#shards.size > 0;
  }

  get listening(): number {
    return [...this.#shards.values()].filter((shard) => shard.listening).length;
  }

  /** Worker threads, for tests that end one. */
  get workers(): Piscina {
    return this.#options.workers;
  }

  #spawn(thread: number): void {
    const { pool, seed, snapshot, workers } = this.#options;
    const { port1, port2 } = new MessageChannel();
    const start: ShardStart = {
      thread,
      pool,
      settings: this.#settings,
      control: port2,
      seed: String(BigInt.asUintN(64, seed + BigInt(thread))),
      snapshot: snapshot(),
      // A shard that is started again is missed meanwhile.
      rehearsal: this.#start === undefined ? undefined : this.#options.rehearsal,
    };
    const aborting = new AbortController();
    const giveUp = () => aborting.abort();
    const task = workers.run(start, { transferList: [port2], signal: aborting.signal }) as Promise<void>;
    const starting = setTimeout(giveUp, START_MS_MAX).unref();
    const state = { worker: undefined, listening: false, unanswered: 0, applied: 0 };
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
    else if (message.kind === 'going') shard.unanswered = 0;
    else if (message.kind === 'applied') shard.applied = Math.max(shard.applied, message.version);
    this.#options.message(shard.thread, message);
  }

  #listens(shard: Shard, port: number): void {
    shard.listening = true;
    clearTimeout(shard.starting);
    this.#restarts.listens(shard.thread);
    this.#settings = { ...this.#settings, port };
    if (this.#start === undefined) return;
    if (this.#shards.size < this.#options.shards) this.#spawn(this.#shards.size + 1);
    else {
      this.#start.resolve();
      this.#start = undefined;
    }
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
    const { call } = this.#options.control;
    let released = 0;
    // One retry per death: the lock in the way may belong to a shard that is reclaimed after this one.
    new LockRetry({ pauseMsMax: LOCK_RETRY_MS }).run(() => {
      if (this.#stopping) return true;
      released += call.reclaimThread(thread) >>> 0;
      if (call.threadCharges(thread) > 0) return false;
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
   * Ends shards that do not go on: their connections close, and proxies turn to the others. The looks are counted and not the
   * time, which passes as well while this thread or the whole process stands still.
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
   * Piscina does not replace a thread that dies while it loads, and the task would wait for ever. A new task makes a
   * thread.
   */
  #giveUpWaiting(): void {
    if (this.#stopping || this.workers.threads.length >= this.#options.shards) return;
    for (const shard of this.#shards.values()) if (shard.worker === undefined) shard.giveUp();
  }

  broadcast(message: ToShard): void {
    for (const shard of this.#shards.values()) shard.port.postMessage(message);
  }

  /** Sends a message to one shard. A shard that is being restarted does not get it. */
  tell(thread: number, message: ToShard): void {
    this.#shards.get(thread)?.port.postMessage(message);
  }

  /** Replaces the settings of the shards for later requests, also in shards that start later. */
  replaceConfigured(settings: ConfiguredSettings): void {
    this.#settings = { ...this.#settings, ...settings };
    this.broadcast({ kind: 'configured', settings });
  }

  /** Replaces the certificate of the shards for later connections, also in shards that start later. */
  replaceCertificate(pair: KeyPair): void {
    const { tls } = this.#settings;
    if (tls === undefined) return;
    this.#settings = { ...this.#settings, tls: { ...tls, ...pair } };
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
