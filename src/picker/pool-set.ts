import { HealthState } from '../operations/health.js';
import type { Logger } from '../operations/log.js';
import { FileWatch, readBoundedFile } from '../pool/discovery/file-watch.js';
import { errorMessage } from '../runtime/error-message.js';
import { ReportOnce } from '../runtime/report-once.js';
import type { ConfigurationReload } from './control/configuration-reload.js';
import { PoolPages } from './control/pool-pages.js';
import type { Traces } from './control/traces.js';
import type { JobPool } from './jobs/job-pool.js';
import { type Part, PartList } from './part.js';
import type { FollowedPools, PoolDefinition } from './picker-options.js';
import { PoolParts } from './pool-parts.js';
import type { PoolLink } from './shards/pool-link.js';
import type { ShardPool } from './shards/shard-pool.js';

export interface PoolSetOptions {
  readonly followed: FollowedPools;
  readonly shards: ShardPool;
  readonly jobs: JobPool;
  /** Undefined = requests are not traced. */
  readonly traces: Traces | undefined;
  /** Seed of the process's block hashes. */
  readonly hashSeed: bigint;
  readonly log: Logger;
  /** Names of all pools of the process. */
  readonly names: () => readonly string[];
  /** Milliseconds that the streams of a removed pool get to end. */
  readonly drainMs: number;
}

/** A pool that runs. */
interface RunningPool {
  readonly definition: PoolDefinition;
  readonly link: PoolLink;
  readonly pages: PoolPages;
  readonly parts: PartList;
  readonly reload: ConfigurationReload | undefined;
}

/** Deaths of shards concern the process and stand on its own page. */
const NO_DEATHS: ReadonlyMap<number, number> = new Map();

/** The pools beside the process's own: those of the file of `--pools`, which is followed. */
export class PoolSet implements Part {
  readonly #options: PoolSetOptions;
  readonly #running = new Map<string, RunningPool>();
  readonly #problems: ReportOnce;
  /** Why pools of the file could not be opened, by their names: at most as many as the file may have pools. */
  readonly #unopened = new Map<string, string>();
  #text: string | undefined;
  #watch: FileWatch | undefined;
  /** Parts of removed pools whose streams end. */
  readonly #ending = new Set<PartList>();
  #started = false;
  #turn: Promise<void> = Promise.resolve();

  constructor(options: PoolSetOptions) {
    this.#options = options;
    this.#problems = new ReportOnce((problem) =>
      options.log.error({ part: 'pools' }, `${problem}; the pools stay as they were`),
    );
  }

  /** Pages of the pools, by name in the order of the names. */
  get pages(): ReadonlyMap<string, PoolPages> {
    const running = [...this.#running].sort(([a], [b]) => (a < b ? -1 : 1));
    return new Map(running.map(([name, { pages }]) => [name, pages]));
  }

  /** Reason why the file is not in effect, or a pool of it is not; undefined = all of it is. */
  get problem(): string | undefined {
    const present = this.#problems.present;
    if (present !== undefined) return `${present}; the pools stay as they were`;
    return this.#unopened.size === 0 ? undefined : [...this.#unopened.values()].join('; ');
  }

  /** Requests so far of the pools that run. */
  get requests(): number {
    return [...this.#running.values()].reduce((sum, { pages }) => sum + pages.requests, 0);
  }

  /** @throws with one line when the file, or a pool of it, cannot be used */
  async start(): Promise<void> {
    const { followed } = this.#options;
    const text = await readBoundedFile(followed.file);
    await this.#apply(text);
    this.#started = true;
    if (followed.watched) this.#watch = new FileWatch(followed.file, followed, () => this.#readInTurn());
  }

  /** Reads the file and the configurations of all pools again. Entries that failed to open are tried again. */
  async reload(): Promise<void> {
    this.#text = undefined;
    await this.#readInTurn();
    for (const { reload } of this.#running.values()) await reload?.reload();
  }

  /** Reads the file again, after the reads before. */
  #readInTurn(): Promise<void> {
    this.#turn = this.#turn.then(() => this.#readFile());
    return this.#turn;
  }

  async #readFile(): Promise<void> {
    try {
      const text = await readBoundedFile(this.#options.followed.file);
      if (text !== this.#text) await this.#apply(text);
      this.#problems.over();
    } catch (error) {
      this.#problems.problem(error);
    }
  }

  async drain(timeoutMs: number): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ parts }) => parts.drain(timeoutMs)));
  }

  async stop(): Promise<void> {
    await this.#watch?.stop();
    const running = [...this.#running.values()].map(({ parts }) => parts);
    await Promise.all([...running, ...this.#ending].map((parts) => parts.stop(0)));
    this.#running.clear();
  }

  /** Adds, replaces and removes pools until they are those of the text. At the start the first problem ends it. */
  async #apply(text: string): Promise<void> {
    const { followed, shards } = this.#options;
    const { pools, defaultPool } = followed.read(text);
    this.#text = text;
    this.#unopened.clear();
    const before = new Set(this.#running.keys());
    for (const definition of pools) {
      before.delete(definition.route.name);
      await this.#place(definition);
    }
    shards.replaceChoice({ defaultPool });
    for (const name of before) this.#remove(name);
  }

  async #place(definition: PoolDefinition): Promise<void> {
    const { name } = definition.route;
    const running = this.#running.get(name);
    if (running?.definition.identity === definition.identity) {
      running.link.replaceRoute(definition.route);
      return;
    }
    try {
      const next = await this.#open(definition);
      this.#running.set(name, next);
      if (running !== undefined) this.#end(running);
      if (this.#started) this.#options.log.info({ pool: name }, running === undefined ? 'pool added' : 'pool replaced');
    } catch (error) {
      if (!this.#started) throw error;
      const stays = running === undefined ? 'it is not served' : 'it stays as it was';
      const problem = errorMessage(error);
      this.#unopened.set(name, `pool "${name}" cannot be opened, ${stays}: ${problem}`);
      this.#options.log.error({ pool: name, problem }, `pool cannot be opened: ${stays}`);
    }
  }

  async #open(definition: PoolDefinition): Promise<RunningPool> {
    const { jobs, shards, traces, hashSeed, log, names } = this.#options;
    const { route, port } = definition;
    const options = await definition.options();
    const health = new HealthState();
    health.update({ shardsReady: true });
    const own: PoolParts = new PoolParts(options, {
      jobs,
      health,
      route,
      port,
      traces,
      hashSeed,
      link: () => link,
      vouch: (names) => pages.vouch(names),
      failed: (thread, reason) => {
        log.error({ pool: route.name, thread, reason }, 'a shard cannot serve the pool: it is closed');
        if (this.#running.get(route.name)?.link === link) this.#remove(route.name);
      },
    });
    const link: PoolLink = shards.link(own.served);
    const pages = new PoolPages(
      own.pageSources({
        isProcess: false,
        pools: names,
        poolsProblem: () => this.problem,
        shardDeaths: () => NO_DEATHS,
        shardUse: undefined,
        unready: () => health.unreadyReasons(),
      }),
    );
    const parts = new PartList([
      options.kubernetes,
      own.flow,
      own.labels,
      own.events,
      own.discovery,
      own.keeper,
      own.replication,
      own.returnWatch,
      own.deaths?.watch,
      own.silence,
      own.learning,
      own.usageFiles,
      pages,
      own.adaptation,
      own.reload,
      own.informers,
    ]);
    await parts.start();
    shards.announce(link);
    return { definition, link, pages, parts, reload: own.reload };
  }

  #remove(name: string): void {
    const running = this.#running.get(name)!;
    this.#running.delete(name);
    this.#end(running);
    this.#options.log.info({ pool: name }, 'pool removed: its streams end');
  }

  #end({ link, parts }: RunningPool): void {
    const { shards, drainMs, log } = this.#options;
    void parts.drain(drainMs);
    this.#ending.add(parts);
    void shards
      .remove(link, drainMs)
      .then(() => parts.stop(0))
      .catch((error: unknown) => log.error({ part: 'pools', problem: errorMessage(error) }, 'a pool did not end'))
      .finally(() => this.#ending.delete(parts));
  }
}
