import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { LOCK_RETRY_MS, LockRetry } from '../../core/lock-retry.js';
import type { CoreInstance, PoolMemory } from '../../core/memory.js';
import type { KeyPair } from '../../ingress/transport.js';
import { assertFree } from '../../ingress/transports/listener.js';
import type { ConfiguredSettings, FromShard, PoolSnapshot, ShardSettings, ShardStart, ToShard } from '../messages.js';

export interface ShardPoolOptions {
  readonly shards: number;
  /** `startShardThreads(shards)`; the pool ends them. */
  readonly workers: Piscina;
  readonly pool: PoolMemory;
  readonly control: CoreInstance;
  readonly settings: ShardSettings;
  readonly seed: bigint;
  /** What a shard is started with at any time. */
  readonly snapshot: () => PoolSnapshot;
  readonly message: (thread: number, message: FromShard) => void;
  /** A shard died: its locks and charges have been reclaimed, a new one is on its way. */
  readonly died: (thread: number, reason: string, released: number) => void;
  /** A shard that had listened cannot be started again: the process had better end. */
  readonly failed: (error: Error) => void;
}

interface Shard {
  readonly thread: number;
  readonly port: MessagePort;
  /** The Piscina task: settles when the shard ends. */
  readonly task: Promise<void>;
  /** Runs out when the shard does not listen in time. */
  readonly starting: NodeJS.Timeout;
  /** Ends the task, also while it waits for a thread. */
  readonly giveUp: () => void;
  /** Known when the task runs. */
  worker: Worker | undefined;
  listening: boolean;
  /** Version of the endpoints that it has applied. */
  applied: number;
}

/** Restarts in a row without a shard that listened in between: then something is broken for good. */
const RESTARTS_MAX = 5;
/** Before the second restart in a row, doubled with each that follows: whoever holds the port may let it go. */
const RESTART_PAUSE_MS = 100;
/** A thread takes about 0.1 s to listen; a thread that takes this long will not. */
const START_MS_MAX = 30_000;
/** Beyond the drain's own time: for the shards to close their connections and say so. */
const CLOSING_MS = 500;

/**
 * The shard threads: long-running Piscina tasks over one pool memory. A shard that dies is cleaned up after and started
 * again; the others go on.
 */
export class ShardPool {
  readonly #options: ShardPoolOptions;
  readonly #shards = new Map<number, Shard>();
  #settings: ShardSettings;
  #stopping = false;
  #restarts = 0;
  /** The first start: settled when all listen or one cannot. */
  #start: PromiseWithResolvers<void> | undefined;

  constructor(options: ShardPoolOptions) {
    this.#options = options;
    this.#settings = options.settings;
    options.workers.on('workerDestroy', () => setImmediate(() => this.#giveUpWaiting()));
  }

  /** Start every shard; resolves to the port when all of them listen, rejects with a clear message otherwise. */
  async start(): Promise<number> {
    const { host, port, reusePort } = this.#settings;
    // Sockets that share a port would share it with a stranger's, too.
    if (reusePort && port !== 0) await assertFree(host, port, 'grpc-port');
    const start = Promise.withResolvers<void>();
    this.#start = start;
    // The first one binds, so that port 0 becomes one number for all and a busy port is told once.
    this.#spawn(1);
    await start.promise;
    return this.#settings.port;
  }

  /** Whether every shard listens and has applied version `version` of the endpoints. */
  hasApplied(version: number): boolean {
    for (const shard of this.#shards.values()) if (!shard.listening || shard.applied < version) return false;
    return this.#shards.size > 0;
  }

  get listening(): number {
    return [...this.#shards.values()].filter((shard) => shard.listening).length;
  }

  /** Worker threads, for tests that kill one. */
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
    };
    const aborting = new AbortController();
    const giveUp = () => aborting.abort();
    const task = workers.run(start, { transferList: [port2], signal: aborting.signal }) as Promise<void>;
    const starting = setTimeout(giveUp, START_MS_MAX).unref();
    const state = { worker: undefined, listening: false, applied: 0 };
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
    else if (message.kind === 'applied') shard.applied = Math.max(shard.applied, message.version);
    this.#options.message(shard.thread, message);
  }

  #listens(shard: Shard, port: number): void {
    shard.listening = true;
    clearTimeout(shard.starting);
    this.#restarts = 0;
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
    clearTimeout(shard.starting);
    shard.port.close();
    this.#shards.delete(thread);
    if (this.#stopping) return;
    if (this.#start !== undefined) {
      this.#start.reject(reason);
      return;
    }
    // Nothing of it may run any more when its locks are taken away.
    await worker?.terminate();
    if (this.#stopping) return;
    this.#reclaim(thread, reason);
  }

  /**
   * Release what a dead shard held, then start it again. Another shard that died inside a lock may have to be cleaned up
   * after first: then some charges are left, and their thread number must not be used again before they are gone.
   */
  #reclaim(thread: number, reason: Error): void {
    const { call } = this.#options.control;
    let released = 0;
    // One of its own for each death: the lock in the way may be that of a shard that is cleaned up after this one.
    new LockRetry({ pauseMsMax: LOCK_RETRY_MS }).run(() => {
      if (this.#stopping) return true;
      released += call.reclaimThread(thread) >>> 0;
      if (call.threadCharges(thread) > 0) return false;
      this.#options.died(thread, reason.message, released);
      this.#restart(thread, reason);
      return true;
    });
  }

  #restart(thread: number, reason: Error): void {
    const before = this.#restarts++;
    if (before === 0) this.#spawn(thread);
    else if (before < RESTARTS_MAX) {
      setTimeout(
        () => {
          if (!this.#stopping) this.#spawn(thread);
        },
        RESTART_PAUSE_MS * 2 ** before,
      );
    } else this.#options.failed(new Error(`shard ${thread} cannot be started again: ${reason.message}`));
  }

  /** Piscina does not replace a thread that dies while it loads: its task would wait for ever, a new one makes a thread. */
  #giveUpWaiting(): void {
    if (this.#stopping || this.workers.threads.length >= this.#options.shards) return;
    for (const shard of this.#shards.values()) if (shard.worker === undefined) shard.giveUp();
  }

  broadcast(message: ToShard): void {
    for (const shard of this.#shards.values()) shard.port.postMessage(message);
  }

  /** Tell one shard something; one that is just being started again hears nothing. */
  tell(thread: number, message: ToShard): void {
    this.#shards.get(thread)?.port.postMessage(message);
  }

  /** Read and decide requests from now on by other settings, also in shards that start later. */
  replaceConfigured(settings: ConfiguredSettings): void {
    this.#settings = { ...this.#settings, ...settings };
    this.broadcast({ kind: 'configured', settings });
  }

  /** Serve connections from now on with another certificate, also in shards that start later. */
  replaceCertificate(pair: KeyPair): void {
    const { tls } = this.#settings;
    if (tls === undefined) return;
    this.#settings = { ...this.#settings, tls: { ...tls, ...pair } };
    this.broadcast({ kind: 'certificate', pair });
  }

  /**
   * Let every shard finish its streams, at most `timeoutMs`; then end the threads. They close their connections
   * themselves, because a thread that is terminated while HTTP/2 reads aborts the process (nodejs/node#38418). A second
   * call with a shorter time cuts the first one short.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping = true;
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
