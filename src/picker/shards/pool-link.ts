import type { CoreInstance, PoolMemory } from '../../core/memory.js';
import type { PoolRoute } from '../../ingress/pool-choice.js';
import type {
  FromPool,
  PoolSnapshot,
  PoolStart,
  ReloadableSettings,
  ShardSettings,
  ToPool,
  ToShard,
} from '../messages.js';

/** A pool that the shards serve. */
export interface ServedPool {
  readonly memory: PoolMemory;
  readonly control: CoreInstance;
  readonly settings: ShardSettings;
  readonly seed: bigint;
  /** Discovery as a shard needs it, at the call. */
  readonly snapshot: () => PoolSnapshot;
  /** How requests find the pool; undefined = they do not. */
  readonly route: PoolRoute | undefined;
  /** Port of the pool's own; undefined = none. */
  readonly port: number | undefined;
  /** Called when a shard cannot serve the pool. */
  readonly failed: (thread: number, reason: string) => void;
  readonly message: (message: FromPool) => void;
  /** Called when a shard listens. */
  readonly shardListens: () => void;
  /** Called when a shard has died and what it held in the pool has been released. */
  readonly shardDied: (thread: number) => void;
}

/** The shards, as the link of a pool uses them. */
export interface Shards {
  broadcast(message: ToShard): void;
  /** Sends a message to one shard. A shard that is being restarted does not get it. */
  tell(thread: number, message: ToShard): void;
  /** Whether every shard listens and fulfils a condition. @param fulfils is given the shard's thread number */
  everyListening(fulfils: (thread: number) => boolean): boolean;
}

/** One pool's way to the shards. */
export class PoolLink {
  /** Number of the pool in messages. */
  readonly number: number;
  readonly pool: ServedPool;
  /** Version of the endpoints that each shard has applied, by thread. */
  readonly applied = new Map<number, number>();
  readonly #shards: Shards;
  #settings: ShardSettings;
  #route: PoolRoute | undefined;

  constructor(number: number, pool: ServedPool, shards: Shards) {
    this.number = number;
    this.pool = pool;
    this.#shards = shards;
    this.#settings = pool.settings;
    this.#route = pool.route;
  }

  /** Settings of the pool for shards that start from now on. */
  get settings(): ShardSettings {
    return this.#settings;
  }

  broadcast(message: ToPool): void {
    this.#shards.broadcast({ kind: 'pool', pool: this.number, message });
  }

  /** Sends a message to one shard. A shard that is being restarted does not get it. */
  tell(thread: number, message: ToPool): void {
    this.#shards.tell(thread, { kind: 'pool', pool: this.number, message });
  }

  /** Whether every shard listens and has applied `version` of the endpoints. */
  hasApplied(version: number): boolean {
    return this.#shards.everyListening((thread) => (this.applied.get(thread) ?? 0) >= version);
  }

  /** Replaces the settings of the shards for later requests, also in shards that start later. */
  replaceConfigured(settings: ReloadableSettings): void {
    this.#settings = { ...this.#settings, reloadable: settings };
    this.broadcast({ kind: 'configured', settings });
  }

  /** Replaces how requests find the pool. */
  replaceRoute(route: PoolRoute): void {
    this.#route = route;
    this.#shards.broadcast({ kind: 'route', pool: this.number, route });
  }

  /** Start data of the pool in a shard. */
  startOf(thread: number): PoolStart {
    const { memory, seed, snapshot, port } = this.pool;
    return {
      pool: this.number,
      memory,
      settings: this.#settings,
      seed: String(BigInt.asUintN(64, seed + BigInt(thread))),
      snapshot: snapshot(),
      route: this.#route,
      port,
    };
  }

  take(thread: number, message: FromPool): void {
    if (message.kind === 'applied') {
      this.applied.set(thread, Math.max(this.applied.get(thread) ?? 0, message.version));
    }
    this.pool.message(message);
  }
}
