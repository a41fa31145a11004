// A proxy as a process of its own: `node generator.ts '{"port":…,"connections":4,"seconds":10,"rate":5000}'` sends
// requests at random times whether or not they are answered; `"concurrency":128` in the place of the rate begins one as
// another one ends. Prints one JSON line.
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, ProxyConnection, type ProxyOwner, type TokenPace } from './proxy-connection.ts';
import { streamedTemplates } from './templates.ts';

export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second (open loop). */
  readonly rate?: number;
  /** Requests under way at one time (closed loop). */
  readonly concurrency?: number;
  /** An answer that is older than this does not count as a good one. */
  readonly boundMs: number;
  /** Ages of an open loop count from when a request leaves, without the up to 1 ms that it waits for others. */
  readonly agesFromSent?: boolean;
  /** Seconds of an open loop whose requests are counted apart: code gets hot in them. */
  readonly coldSeconds?: number;
  /** Load that follows an open loop without a pause, on the same connections; its requests are counted apart. */
  readonly eased?: { readonly rate: number; readonly seconds: number };
  /** Prompts and answers; absent = chats of 4 KB, answered in one piece. */
  readonly streamed?: TokenPace & { readonly promptBytes: number };
  /** The same load on another picker before, in which the generator's own code gets hot. */
  readonly practice?: { readonly port: number; readonly seconds: number };
}

/** What a generator prints behind its practice. It then waits for a line with the port of the picker to measure. */
export const PRACTISED = 'practised';

/**
 * What came of the requests; `offered`, `goodput` and `refused` are requests a second. Ages are milliseconds from the
 * time at which a request was to be sent to its first reply.
 */
export interface LoadResult {
  readonly offered: number;
  /** Requests that were sent in all, and those of them that were refused. */
  readonly sent: number;
  readonly refusals: number;
  /** Placed within the bound and answered to their end, a second. */
  readonly goodput: number;
  readonly refused: number;
  readonly failed: number;
  readonly unanswered: number;
  readonly placedMs: Ages;
  /** Of the requests of the cold seconds, which `placedMs` leaves out. */
  readonly coldMs: Ages;
  readonly refusedMs: Ages;
  readonly lostConnections: number;
  /** Of the load that follows: requests that were sent and refused, and ages of those that were placed. */
  readonly eased?: { readonly sent: number; readonly refusals: number; readonly placedMs: Ages };
  /** Share of its core that the generator used while it sent. */
  readonly generatorCores: number;
}

export interface Ages {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** For answers to come after the last request. */
const REST_MS = 2_000;

/** Steps of a histogram in a millisecond, and its largest age in milliseconds. */
const STEPS = 100;
const AGE_MS_MAX = 20_000;

/** A histogram of milliseconds. */
class AgeCounts {
  readonly #counts = new Uint32Array(AGE_MS_MAX * STEPS + 1);
  #total = 0;
  max = 0;

  add(ms: number): void {
    this.#counts[Math.min(AGE_MS_MAX * STEPS, Math.max(0, Math.trunc(ms * STEPS)))]!++;
    this.#total++;
    this.max = Math.max(this.max, ms);
  }

  ages(): Ages {
    return { p50: this.#quantile(0.5), p99: this.#quantile(0.99), max: Number(this.max.toFixed(2)) };
  }

  #quantile(q: number): number {
    let left = q * this.#total;
    for (let i = 0; i < this.#counts.length; i++) {
      left -= this.#counts[i]!;
      if (left <= 0 && this.#total > 0) return (i + 1) / STEPS;
    }
    return 0;
  }
}

class Generator implements ProxyOwner {
  readonly #options: LoadOptions;
  readonly #connections: ProxyConnection[];
  readonly #placed = new AgeCounts();
  readonly #cold = new AgeCounts();
  readonly #refused = new AgeCounts();
  readonly #eased = { refusals: 0, placed: new AgeCounts() };
  readonly #counts = { sent: 0, good: 0, placed: 0, refused: 0, failed: 0 };
  #end = 0;
  /** End of the cold seconds, and begin of the load that follows. */
  #warmAt = 0;
  #easedAt = Number.POSITIVE_INFINITY;
  /** Milliseconds up to which tokens have been sent. */
  #tokensAt = 0;
  #flushes = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    const { port, streamed } = options;
    const templates = streamed && streamedTemplates(streamed.promptBytes, streamed.tokens);
    this.#connections = Array.from(
      { length: options.connections },
      () => new ProxyConnection(port, this, templates, streamed),
    );
  }

  now(): number {
    return performance.now();
  }

  answered(age: number, answer: Answer, connection: ProxyConnection): void {
    const dueAt = this.now() - age;
    if (dueAt >= this.#easedAt) {
      if (answer === 'placed') this.#eased.placed.add(age);
      else this.#eased.refusals++;
      return;
    }
    this.#counts[answer]++;
    if (answer === 'placed') (dueAt < this.#warmAt ? this.#cold : this.#placed).add(age);
    else if (answer === 'refused') this.#refused.add(age);
    if (answer !== 'placed') this.#next(connection);
  }

  ended(age: number, ok: boolean, connection: ProxyConnection): void {
    if (ok && age <= this.#options.boundMs && this.now() - age < this.#easedAt) this.#counts.good++;
    this.#next(connection);
  }

  async run(): Promise<LoadResult> {
    await pause(200);
    const { rate, concurrency = 0, seconds } = this.#options;
    const begin = this.now();
    const cpu = process.cpuUsage();
    this.#end = begin + seconds * 1_000;
    this.#warmAt = begin + (this.#options.coldSeconds ?? 0) * 1_000;
    if (rate === undefined) {
      for (let i = 0; i < concurrency; i++) this.#begin(begin);
      this.#flush();
      await pause(seconds * 1_000);
    } else await this.#sendAt(rate, begin);
    const elapsed = (this.now() - begin) / 1_000;
    const { good } = this.#counts;
    const { user, system } = process.cpuUsage(cpu);
    const easedSent = await this.#ease();
    if (rate !== undefined) await pause(REST_MS);
    const { refusals, placed } = this.#eased;
    const eased = easedSent === 0 ? {} : { eased: { sent: easedSent, refusals, placedMs: placed.ages() } };
    const { sent, refused, failed } = this.#counts;
    const unanswered = this.#connections.reduce((sum, { open }) => sum + open, 0);
    const lostConnections = this.#connections.filter(({ closed }) => closed).length;
    for (const connection of this.#connections) connection.destroy();
    const perSecond = (count: number): number => Math.round(count / elapsed);
    return {
      offered: perSecond(sent),
      sent,
      refusals: refused,
      goodput: perSecond(rate === undefined ? good : this.#counts.good),
      refused: perSecond(refused),
      failed,
      unanswered: rate === undefined ? 0 : unanswered,
      placedMs: this.#placed.ages(),
      coldMs: this.#cold.ages(),
      refusedMs: this.#refused.ages(),
      lostConnections,
      ...eased,
      generatorCores: Number(((user + system) / 1e6 / elapsed).toFixed(2)),
    };
  }

  /**
   * Poisson arrivals. Those of a millisecond leave together, so that the generator's core is busy only with its work.
   */
  async #sendAt(rate: number, begin: number): Promise<void> {
    let dueAt = begin;
    this.#tokensAt = begin;
    while (this.now() < this.#end) {
      const now = Math.min(this.now(), this.#end);
      while (dueAt <= now) {
        this.#begin(this.#options.agesFromSent === true ? now : dueAt);
        dueAt += (-Math.log(1 - Math.random()) / rate) * 1_000;
      }
      this.#flush();
      for (; this.#tokensAt <= now; this.#tokensAt++) for (const connection of this.#connections) connection.tick();
      await pause(1);
    }
  }

  /** Sends the load that follows. @returns its requests */
  async #ease(): Promise<number> {
    const { eased } = this.#options;
    if (eased === undefined) return 0;
    const before = this.#counts.sent;
    this.#easedAt = this.now();
    this.#end = this.#easedAt + eased.seconds * 1_000;
    await this.#sendAt(eased.rate, this.#easedAt);
    const { sent } = this.#counts;
    this.#counts.sent = before;
    return sent - before;
  }

  /** Begins a request where one has ended: a shard that is faster than another one gets more. */
  #next(connection: ProxyConnection): void {
    if (this.#options.rate !== undefined || this.now() >= this.#end) return;
    this.#begin(this.now(), connection);
    if (this.#flushes) return;
    this.#flushes = true;
    setImmediate(() => {
      this.#flushes = false;
      this.#flush();
    });
  }

  #begin(dueAt: number, connection = this.#connections[this.#counts.sent % this.#connections.length]!): void {
    this.#counts.sent++;
    connection.begin(dueAt);
  }

  #flush(): void {
    for (const connection of this.#connections) connection.flush();
  }
}

/** @returns the options for the picker that standard input names */
async function practise({ practice, ...options }: LoadOptions): Promise<LoadOptions> {
  if (practice === undefined) return options;
  await new Generator({ ...options, ...practice }).run();
  console.log(PRACTISED);
  const [line] = (await once(process.stdin, 'data')) as [Buffer];
  return { ...options, port: Number(line) };
}

if (process.argv[1] === import.meta.filename) {
  const options = await practise(JSON.parse(process.argv[2]!) as LoadOptions);
  console.log(JSON.stringify(await new Generator(options).run()));
  process.exit();
}
