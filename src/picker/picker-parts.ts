import type { PoolMemory } from '../core/memory.js';
import type { HealthListener, HealthSource } from '../ingress/transport.js';
import { listenHealth } from '../ingress/transports/create.js';
import { HealthState } from '../operations/health.js';
import { CertificateWatch } from './control/certificate-watch.js';
import { IdleWarmUp } from './control/idle-warm-up.js';
import { LameDuck } from './control/lame-duck.js';
import { MetricsPage } from './control/metrics-page.js';
import { PoolPages } from './control/pool-pages.js';
import { rehearsalPool } from './control/rehearsal-pool.js';
import { Traces } from './control/traces.js';
import { JobPool } from './jobs/job-pool.js';
import { type Part, PartList } from './part.js';
import type { PickerOptions } from './picker-options.js';
import { PoolParts } from './pool-parts.js';
import { PoolSet } from './pool-set.js';
import { ShardPool } from './shards/shard-pool.js';

/** Ports that a picker listens on; 0 = not open yet. */
export interface PickerPorts {
  grpc: number;
  health: number;
}

/** Makes the parts of a picker, those of the process and those of its pool, and connects their reports. */
export class PickerParts {
  readonly shards: ShardPool;
  readonly metrics: MetricsPage;
  readonly ports: PickerPorts = { grpc: 0, health: 0 };
  /** The parts in the order of their start. */
  readonly list: PartList;
  readonly #options: PickerOptions;
  readonly #own: PoolParts;
  readonly #pages: PoolPages;
  /** The other pools; undefined = there are none, and none will be. */
  readonly #further: PoolSet | undefined;
  readonly #traces: Traces | undefined;
  #certificate: CertificateWatch | undefined;
  readonly #health = new HealthState();
  readonly #jobs = new JobPool();
  readonly #shardDeaths = new Map<number, number>();

  constructor(options: PickerOptions) {
    this.#options = options;
    for (let shard = 1; shard <= options.bounds.shards; shard++) this.#shardDeaths.set(shard, 0);
    this.#traces = options.traces && new Traces(options.traces, options.version, options.log);
    this.#own = new PoolParts(options, {
      jobs: this.#jobs,
      health: this.#health,
      route: options.hasOwnPool ? { name: options.observe.poolName, models: [] } : undefined,
      port: undefined,
      failed: () => undefined,
      link: () => this.shards.own,
      traces: this.#traces,
      hashSeed: undefined,
      vouch: (names) => this.metrics.vouch(names),
    });
    this.shards = this.#makeShards();
    this.#pages = new PoolPages(
      this.#own.pageSources({
        isProcess: true,
        pools: options.pools && (() => this.#poolNames()),
        poolsProblem: () => this.#further?.problem,
        shardDeaths: () => this.#shardDeaths,
        shardUse: () => this.shards.use,
        unready: () => this.#health.unreadyReasons(),
      }),
    );
    this.#further = this.#makeFurther();
    this.metrics = new MetricsPage({
      options,
      poolsProblem: () => this.#further?.problem,
      own: this.#pages,
      further: this.#further && (() => this.#further!.pages),
    });
    if (options.kubernetes?.elects === true) this.#health.update({ leader: false });
    this.list = this.#inOrder();
  }

  get memory(): PoolMemory {
    return this.#own.memory;
  }

  /** Requests so far of all pools, answered and refused. */
  get requests(): number {
    return this.#pages.requests + (this.#further?.requests ?? 0);
  }

  /** Reads the configuration and the certificate again. */
  async reload(): Promise<void> {
    this.#certificate?.reload();
    await this.#own.reload?.reload();
    await this.#own.shadow?.reload();
    await this.#further?.reload();
  }

  /**
   * Each part starts after the parts that feed it, and after those that it shows. The shards come late because they
   * open the serving port.
   */
  #inOrder(): PartList {
    const health = this.#health;
    const own = this.#own;
    return new PartList([
      { drain: () => health.update({ draining: true }) },
      this.#options.cluster,
      this.#options.kubernetes?.election((leader) => health.update({ leader })),
      this.#options.kubernetes,
      new LameDuck({
        timeMs: this.#options.lameDuckMs,
        requests: () => this.requests,
      }),
      own.flow,
      this.#jobs,
      own.labels,
      own.events,
      own.discovery,
      own.keeper,
      own.replication,
      own.returnWatch,
      own.deaths?.watch,
      own.silence,
      { start: () => void health.watch(() => this.shards.broadcast({ kind: 'health', statuses: statuses(health) })) },
      own.learning,
      this.#traces,
      own.usageFiles,
      this.#further,
      this.metrics,
      this.#makeHealthListener(),
      {
        start: async () => {
          this.ports.grpc = await this.shards.start();
        },
        drain: (timeoutMs) => this.shards.stop(timeoutMs),
      },
      this.#makeIdleWarmUp(),
      own.adaptation,
      this.#makeCertificateWatch(),
      own.reload,
      own.shadow,
      own.informers,
    ]);
  }

  #makeHealthListener(): Part {
    const { addresses, healthPort: port, transport } = this.#options.listen;
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

  #makeIdleWarmUp(): Part | undefined {
    const { bounds, idleWarmUpMs, configuration } = this.#options;
    if (idleWarmUpMs === 0) return undefined;
    return new IdleWarmUp(this.#health, () => {
      const rehearsal = rehearsalPool(configuration.scheduling, bounds.shards, idleWarmUpMs);
      this.shards.broadcast({ kind: 'rehearse', rehearsal });
    });
  }

  #makeCertificateWatch(): Part | undefined {
    const { listen, log } = this.#options;
    const { tls, certificate } = listen;
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

  #poolNames(): readonly string[] {
    const { hasOwnPool, observe } = this.#options;
    const { poolName } = observe;
    return [...(hasOwnPool ? [poolName] : []), ...(this.#further?.pages.keys() ?? [])];
  }

  #makeFurther(): PoolSet | undefined {
    const { pools, log, poolDrainMs: drainMs } = this.#options;
    const names = () => this.#poolNames();
    if (pools === undefined) return undefined;
    const { hashSeed } = this.#own;
    return new PoolSet({
      ...{ followed: pools, shards: this.shards, jobs: this.#jobs, traces: this.#traces, hashSeed },
      ...{ log, drainMs, names },
    });
  }

  #makeShards(): ShardPool {
    const { bounds, shardThreads, failed, warmUpMs, configuration } = this.#options;
    const { shards } = bounds;
    return new ShardPool({
      rehearsal: warmUpMs === 0 ? undefined : rehearsalPool(configuration.scheduling, shards, warmUpMs),
      shards,
      workers: shardThreads,
      own: this.#own.served,
      choice: this.#options.pools && { defaultPool: undefined },
      health: () => statuses(this.#health),
      listens: () => this.#health.update({ shardsReady: this.shards.listening === shards }),
      died: (thread, reason, released) => this.#shardDied(thread, reason, released),
      failed,
    });
  }

  #shardDied(thread: number, reason: string, released: number): void {
    this.#shardDeaths.set(thread, (this.#shardDeaths.get(thread) ?? 0) + 1);
    const text = 'a shard died: its charges were released, it starts again';
    this.#options.log.error({ thread, reason, released }, text);
    this.#health.update({ shardsReady: this.shards.listening > 0 });
  }
}

function statuses(health: HealthSource) {
  return health.services().map((service) => [service, health.status(service)] as const);
}
