import { setTimeout as pause } from 'node:timers/promises';
import { decodeReply } from '../../ingress/envoy-messages.ts';
import type { Call } from '../../ingress/proxy-client.ts';
import { ask, askAndEnd } from '../../picker/serving.ts';
import { NatsServer } from '../nats-server.ts';
import { BOUND_MS, differences, type Observation, outlived } from './checker.ts';
import { FairClock, ROUND_MS_MAX } from './fair-clock.ts';
import { FAULTS } from './fault-kinds.ts';
import { NatsProbe } from './nats-probe.ts';
import { ReplicaProcess } from './replica-process.ts';
import { type Life, RequestBook } from './request-book.ts';

export interface FaultRunOptions {
  readonly replicas: number;
  readonly seed: number;
  /** Whether another cycle of faults and quiet follows. @param cycles those that have been */
  readonly more: (cycles: number) => boolean;
  readonly report: (line: string) => void;
}

/** Result of a run. */
export interface FaultReport {
  readonly cycles: number;
  readonly requests: number;
  readonly observations: number;
  /** Faults by their kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** Empty = everything held. */
  readonly violations: readonly string[];
}

/** Requests of one picker that are open at most. */
const OPEN_MAX = 25;
/** Fair time after which the replicas of a quiet group must hear each other. */
const REUNION_MS_MAX = 60_000;
/** Bound on the violations of one report. */
const VIOLATIONS_MAX = 100;

/** Random numbers from a seed (Park and Miller). */
function seeded(seed: number): (min: number, max: number) => number {
  let state = (seed % 2_147_483_646) + 1;
  return (min, max) => {
    state = (state * 48_271) % 2_147_483_647;
    return min + Math.floor((state / 2_147_483_647) * (max - min + 1));
  };
}

/**
 * Real pickers behind proxies to a real nats-server, with requests, under faults. After each cycle of faults the
 * requests stay as they are, and the views must be equal. Every other view is held against the requests of the last
 * second.
 */
export class FaultRun {
  readonly #options: FaultRunOptions;
  readonly #between: (min: number, max: number) => number;
  readonly #clock = new FairClock();
  readonly #book = new RequestBook(() => this.#clock.ms, BOUND_MS + 5_000);
  readonly #replicas: ReplicaProcess[] = [];
  readonly #natsState = { up: true };
  readonly #faults = Object.fromEntries(Object.keys(FAULTS).map((kind) => [kind, 0]));
  readonly #violations: string[] = [];
  readonly #open = new Map<string, number>();
  #nats: NatsServer | undefined;
  #probe: NatsProbe | undefined;
  #observations = 0;
  #round = Promise.withResolvers<readonly Observation[]>();
  #over = false;
  /** Set while requests neither begin nor end. */
  #quiet: PromiseWithResolvers<void> | undefined;
  /** Requests that are about to end. */
  #ending = 0;
  #prompts = 0;
  #active: readonly string[] = [];

  constructor(options: FaultRunOptions) {
    this.#options = options;
    this.#between = seeded(options.seed);
  }

  async run(): Promise<FaultReport> {
    try {
      await this.#start();
      const rounds = this.#rounds();
      const traffic = this.#replicas.map((replica) => this.#traffic(replica));
      await Promise.race([this.#cycles(), rounds, ...traffic]);
      this.#over = true;
      await Promise.all([rounds, ...traffic]);
    } finally {
      this.#over = true;
      await this.#close();
    }
    return {
      cycles: this.#cycle,
      requests: this.#book.begun,
      observations: this.#observations,
      faults: this.#faults,
      violations: this.#violations,
    };
  }

  #cycle = 0;

  async #start(): Promise<void> {
    this.#nats = await NatsServer.start();
    this.#probe = new NatsProbe(this.#nats.port);
    for (let i = 0; i < this.#options.replicas; i++) {
      const replica = await ReplicaProcess.create(`picker-${i}`, this.#nats.port, 'faults', i % 2 === 0);
      this.#replicas.push(replica);
      await replica.start();
    }
  }

  async #close(): Promise<void> {
    this.#probe?.close();
    for (const replica of this.#replicas) await replica.close();
    await this.#nats?.stop();
  }

  #violated(text: string): void {
    const line =
      `cycle ${this.#cycle} at ${Math.round(this.#clock.ms)} ms, ` + `after ${this.#active.join(' and ')}: ${text}`;
    if (this.#violations.length < VIOLATIONS_MAX) this.#violations.push(line);
    this.#options.report(line);
  }

  // ---- observation

  async #rounds(): Promise<void> {
    while (!this.#over) {
      const began = performance.now();
      const askedMs = this.#clock.ms;
      const up = this.#replicas.filter(({ state }) => state === 'up');
      const answers = await Promise.all(up.map((replica) => replica.observe(askedMs)));
      if (this.#natsState.up) await this.#probe!.ping();
      const observations = answers.filter((answer) => answer !== undefined);
      for (const observation of observations) {
        for (const problem of outlived(observation, this.#book)) this.#violated(problem);
      }
      this.#observations += observations.length;
      await pause(Math.max(1, ROUND_MS_MAX - (performance.now() - began)));
      this.#clock.roundEnded();
      this.#book.forget();
      const { resolve } = this.#round;
      this.#round = Promise.withResolvers();
      resolve(observations);
    }
    this.#round.resolve([]);
  }

  // ---- requests

  async #traffic(replica: ReplicaProcess): Promise<void> {
    while (!this.#over) {
      await pause(this.#between(50, 250));
      await this.#quiet?.promise;
      if (replica.state !== 'up' || (this.#open.get(replica.name) ?? 0) >= OPEN_MAX) continue;
      this.#request(replica).catch((error: unknown) => this.#violated(String(error)));
    }
  }

  /** One request with its life: mostly short, some over several cycles. */
  async #request(replica: ReplicaProcess): Promise<void> {
    const { name } = replica;
    this.#open.set(name, (this.#open.get(name) ?? 0) + 1);
    const life = this.#book.begin(name);
    const call = ask(replica.client, `${this.#prompts++ % 200} tells a story of its own. `.repeat(20));
    const ended = new Promise<undefined>((resolve) => call.once('status', () => resolve(undefined)));
    const first = new Promise<Buffer>((resolve) => call.once('data', resolve));
    const reply = await Promise.race([first, ended]);
    if (reply === undefined) this.#unanswered(replica, life);
    else {
      life.endpoint = decodeReply(reply).headers['x-gateway-destination-endpoint'];
      await Promise.race([
        ended,
        pause(this.#between(0, 9) === 0 ? this.#between(2_000, 8_000) : this.#between(20, 900)),
      ]);
      await this.#quiet?.promise;
      this.#ending++;
      await this.#end(replica, call, ended);
      this.#book.end(life);
      this.#ending--;
    }
    this.#open.set(name, this.#open.get(name)! - 1);
  }

  #unanswered({ state, name }: ReplicaProcess, life: Life): void {
    // A killed picker answers nothing; its requests end with it.
    if (life.endedMs === undefined && state === 'up') this.#violated(`${name} has not answered a request`);
    this.#book.end(life);
  }

  /** Ends a request; resolves when the picker has seen its end. */
  async #end(replica: ReplicaProcess, call: Call, ended: Promise<undefined>): Promise<void> {
    if (this.#between(0, 2) > 0) {
      call.end();
      return ended;
    }
    call.cancel();
    // A request behind it on the same connection: its answer comes after the cancellation was read.
    if (replica.state === 'down') return;
    const behind = this.#book.begin(replica.name);
    await askAndEnd(replica.client, 'behind');
    this.#book.end(behind);
  }

  // ---- faults and quiet

  async #cycles(): Promise<void> {
    for (; this.#options.more(this.#cycle) && !this.#over; this.#cycle++) {
      this.#quiet?.resolve();
      this.#quiet = undefined;
      await this.#faultsOfCycle();
      await this.#becomeQuiet();
      await this.#equalViews();
    }
    this.#quiet?.resolve();
    this.#quiet = undefined;
  }

  async #faultsOfCycle(): Promise<void> {
    const kinds = this.#kindsOfCycle();
    this.#active = kinds;
    const replicas = [...this.#replicas];
    const faulty = { nats: this.#nats!, natsState: this.#natsState, book: this.#book, between: this.#between };
    await pause(this.#between(100, 400));
    await Promise.all(
      kinds.map((kind) => {
        const [replica] = replicas.splice(this.#between(0, replicas.length - 1), 1);
        this.#faults[kind]!++;
        return FAULTS[kind]!(replica!, faulty);
      }),
    );
  }

  /** Two or three different kinds, in turn over all, so that a short run has all of them too. */
  #kindsOfCycle(): readonly string[] {
    const kinds = Object.keys(FAULTS);
    const first = 2 * this.#cycle;
    const chosen = [kinds[first % kinds.length]!, kinds[(first + 1) % kinds.length]!];
    if (this.#between(0, 1) === 0) chosen.push(kinds[this.#between(0, kinds.length - 1)]!);
    return [...new Set(chosen)];
  }

  async #becomeQuiet(): Promise<void> {
    this.#quiet = Promise.withResolvers();
    while (this.#ending > 0 || this.#book.undecided > 0) await this.#round.promise;
  }

  /**
   * Compares each view one second after all replicas are connected. A replica whose process could not run for the time
   * of silence forgets its peers for a moment, so a difference counts once it has heard all of them for a second.
   */
  async #equalViews(): Promise<void> {
    const beganMs = this.#clock.ms;
    let quietMs = beganMs;
    const heardSinceMs = new Map<string, number>();
    const left = new Set(this.#replicas.map(({ name }) => name));
    while (!this.#over && left.size > 0) {
      const observations = await this.#round.promise;
      const isComplete = observations.length === this.#replicas.length;
      if (!isComplete || !observations.every(({ page }) => page.connected)) quietMs = this.#clock.ms;
      for (const observation of observations) {
        const { picker, askedMs, page } = observation;
        const isHeard = page.peers.filter(({ live }) => live).length === this.#others;
        if (!isHeard) heardSinceMs.delete(picker);
        else if (!heardSinceMs.has(picker)) heardSinceMs.set(picker, askedMs);
        if (!isHeard || !left.has(picker) || askedMs < quietMs + BOUND_MS) continue;
        const found = differences(observation, this.#book);
        if (found.length > 0 && askedMs < heardSinceMs.get(picker)! + BOUND_MS) continue;
        left.delete(picker);
        for (const problem of found) this.#violated(`quiet: ${problem}`);
      }
      if (this.#clock.ms <= beganMs + REUNION_MS_MAX || left.size === 0) continue;
      return this.#violated(`${[...left].join(', ')} do not hear all others`);
    }
  }

  get #others(): number {
    return this.#replicas.length - 1;
  }
}
