import { type Endpoint, endpointAddress, type SlotAssignment, type SlotUpdate } from '../../contract/endpoint.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';
import type { MetricsInformerOptions, PageLocation, SignalSink } from './informer-options.js';
import { PageBuffers } from './page-buffers.js';
import { PageWatch } from './page-watch.js';
import { type PolledNumbers, PollPace } from './poll-pace.js';
import { backoffMs, nextPollMs, startsPerTick, tickMs } from './poll-schedule.js';
import { ScrapeConnection, type ScrapeMeans, type ScrapeTls, scrapeTls } from './scrape-connection.js';
import { SCRAPE_FAULTS, ScrapeFault, type ScrapeFaultKind } from './scrape-fault.js';
import { ScrapeReports } from './scrape-reports.js';
import type { InformerLog, SignalReader } from './signal-reader.js';
import type { InformerCounts, PolledSlot, PollUse, SourceFreshness } from './source-state.js';
import { type Sleeper, WakeWheel } from './wake-wheel.js';

interface Target extends Sleeper {
  readonly slot: number;
  readonly generation: number;
  endpoint: Endpoint;
  reading: unknown;
  readonly connection: ScrapeConnection;
  dueMs: number;
  /** From the last good scrape to the next one, as planned. */
  intervalMs: number;
  /** Last time at which it had traffic, or its signals had changed. */
  busyMs: number;
  signals: EndpointSignals | undefined;
  /** Start of the scrape under way; undefined = none. */
  startedMs: number | undefined;
  /** Whether there has been a good scrape. */
  everScraped: boolean;
  lastGoodMs: number;
  failures: number;
  lastFault: string;
  /** Whether its signals are known to the sink. */
  fresh: boolean;
  /** Whether the log says that the page has none of the engine's metrics. */
  toldEmpty: boolean;
  /** Undefined = the requests that end are not known. */
  readonly watch: PageWatch | undefined;
  /** Whether the log says that the page stands still. */
  toldFrozen: boolean;
  toldFrozenMs: number;
}

const READ_BYTES = 64 * 1024;
/** Least time between two lines of the log that an endpoint's page stands still. */
const TELL_FROZEN_MS = 60_000;
/** Bound on the delay of an endpoint's first poll, with any interval. */
const FIRST_POLL_MS_MAX = 50;
/** Time after its last traffic for which an endpoint counts as busy. */
const BUSY_MS = 1_000;
/** Ticks in which every endpoint without traffic is looked at once whether it has some. */
const LOOK_TICKS = 10;
/** Planned intervals without a good page after which signals are unknown, where that is longer than the staleness. */
const STALE_INTERVALS = 3;
/** Bound on the polls that a tick starts, each of which may open a connection. */
const STARTS_MAX = 128;

/**
 * Polls the metrics page of every endpoint and hands its signals to the sink (control thread). One timer serves all
 * endpoints; polls of one endpoint never overlap; an endpoint that fails is asked less and less often, and its signals
 * become unknown after `stalenessMs`.
 */
export class MetricsInformer {
  readonly #sink: SignalSink;
  readonly #reader: SignalReader;
  readonly #log: InformerLog;
  readonly #intervalMs: number;
  readonly #timeoutMs: number;
  readonly #stalenessMs: number;
  readonly #path: string;
  readonly #locate: (endpoint: Endpoint) => PageLocation;
  readonly #tls: ScrapeTls | undefined;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #answered: MetricsInformerOptions['answered'];
  readonly #hasTraffic: (slot: number, generation: number) => boolean;
  readonly #pace: Pick<PollPace, keyof PollPace>;
  readonly #reports: ScrapeReports;
  readonly #means: ScrapeMeans;
  readonly #targets = new Map<number, Target>();
  /** The same targets in a row. */
  #order: Target[] = [];
  readonly #tickMs: number;
  readonly #wheel: WakeWheel<Target>;
  /** Targets whose polls are due and had to wait for the next tick. */
  readonly #late: Target[] = [];
  /** Place in the order where the looks for traffic go on. */
  #looked = 0;
  #timer: NodeJS.Timeout | undefined;
  #scrapes = 0;
  #pagesWithoutSignals = 0;
  #refused = 0;
  readonly #faults = Object.fromEntries(SCRAPE_FAULTS.map((kind) => [kind, 0])) as Record<ScrapeFaultKind, number>;

  /** Throws RangeError on an option out of range. */
  constructor(options: MetricsInformerOptions) {
    this.#sink = options.sink;
    this.#log = options.log;
    this.#intervalMs = positive('intervalMs', options.intervalMs ?? 50);
    this.#timeoutMs = positive('timeoutMs', options.timeoutMs ?? 1000);
    this.#stalenessMs = positive('stalenessMs', options.stalenessMs ?? 2000);
    this.#path = options.path ?? '/metrics';
    if (!/^\/[\x21-\x7e]*$/.test(this.#path))
      throw new RangeError('path: must begin with / and hold no blanks, as /metrics');
    this.#locate = options.locate ?? (({ address, port, hostName }) => ({ host: address, port, serverName: hostName }));
    this.#tls = options.scheme === 'https' ? scrapeTls(options.tls ?? { insecureSkipVerify: true }) : undefined;
    this.#now = options.now ?? (() => performance.now());
    this.#random = options.random ?? Math.random;
    this.#answered = options.answered;
    this.#hasTraffic = options.hasTraffic ?? (() => false);
    this.#pace = options.pace ?? new PollPace(this.#intervalMs, undefined);
    this.#reports = new ScrapeReports(this.#log, this.#intervalMs);
    this.#means = {
      spent: (ms) => this.#pace.spent(ms),
      buffers: new PageBuffers(),
      pageBytesMax: positive('pageBytesMax', options.pageBytesMax ?? 8 * 1024 * 1024),
      readBuffer: Buffer.allocUnsafeSlow(READ_BYTES),
    };
    this.#reader = options.reader;
    this.#tickMs = tickMs(this.#intervalMs);
    this.#wheel = new WakeWheel(this.#tickMs, this.#now());
  }

  get counts(): InformerCounts {
    return {
      scrapes: this.#scrapes,
      pagesWithoutSignals: this.#pagesWithoutSignals,
      refused: this.#refused,
      faults: { ...this.#faults },
    };
  }

  /** How old the values of the endpoints are. */
  get freshness(): SourceFreshness {
    const now = this.#now();
    let [stale, oldestMs] = [0, 0];
    for (const { fresh, lastGoodMs } of this.#order) {
      if (!fresh) stale += 1;
      oldestMs = Math.max(oldestMs, now - lastGoodMs);
    }
    return { endpoints: this.#order.length, stale, oldestMs };
  }

  /** What the polls take. */
  get use(): PollUse {
    const { intervals, usedShare, isOver } = this.#pace;
    return { ...intervals, usedShare, isOver };
  }

  /** What is known of the polls of a slot; undefined = it is not polled. */
  polled(slot: number): PolledSlot | undefined {
    const target = this.#targets.get(slot);
    if (target === undefined) return undefined;
    return {
      isScraped: target.everScraped,
      ageMs: this.#now() - target.lastGoodMs,
      intervalMs: target.intervalMs,
      isFrozen: target.watch?.isFrozen ?? false,
    };
  }

  /** Polls exactly these endpoints from now on. Those that are polled already go on undisturbed. */
  setEndpoints(endpoints: readonly SlotAssignment[]): void {
    const wanted = new Set(endpoints.map(({ slot }) => slot));
    this.changeEndpoints({
      set: endpoints,
      removed: [...this.#targets.values()].filter(({ slot }) => !wanted.has(slot)),
    });
  }

  /** Polls new endpoints and no longer polls removed ones. All others go on undisturbed. */
  changeEndpoints({ set, removed }: SlotUpdate): void {
    for (const gone of removed) this.#leave(gone);
    for (const informed of set) {
      const { slot, endpoint } = informed;
      const target = this.#targets.get(slot);
      if (target !== undefined && !sameServer(informed, target)) this.#leave(target);
      else if (target !== undefined && target.endpoint !== endpoint) this.#relabel(target, endpoint);
      if (!this.#targets.has(slot)) this.#targets.set(slot, this.#open(informed));
    }
    this.#order = [...this.#targets.values()];
    if (this.#order.length === 0) this.#stopTimer();
    else this.#timer ??= setInterval(() => this.#tick(), this.#tickMs);
  }

  /** Stops polling and closes every connection. `setEndpoints` starts it again. */
  stop(): void {
    this.setEndpoints([]);
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #leave({ slot, generation }: SlotAssignment): void {
    const target = this.#targets.get(slot);
    if (target?.generation !== generation) return;
    target.connection.close();
    this.#wheel.forget(target);
    this.#targets.delete(slot);
  }

  #open({ slot, generation, endpoint }: SlotAssignment): Target {
    const now = this.#now();
    const target: Target = {
      slot,
      generation,
      endpoint,
      reading: this.#reader.prepare(endpoint),
      connection: new ScrapeConnection(
        { ...this.#locate(endpoint), path: this.#path, tls: this.#tls },
        this.#means,
        (page) => this.#good(target, page),
        (fault) => this.#failed(target, fault),
      ),
      dueMs: now + this.#random() * Math.min(this.#intervalMs, FIRST_POLL_MS_MAX),
      intervalMs: this.#intervalMs,
      busyMs: now,
      signals: undefined,
      startedMs: undefined,
      everScraped: false,
      lastGoodMs: now,
      failures: 0,
      lastFault: '',
      fresh: false,
      toldEmpty: false,
      watch: this.#answered === undefined ? undefined : new PageWatch(),
      toldFrozen: false,
      toldFrozenMs: Number.NEGATIVE_INFINITY,
      wakeTurn: 0,
    };
    this.#plan(target);
    return target;
  }

  #relabel(target: Target, endpoint: Endpoint): void {
    target.endpoint = endpoint;
    target.reading = this.#reader.prepare(endpoint);
    target.toldEmpty = false;
  }

  #tick(): void {
    const began = performance.now();
    const now = this.#now();
    this.#pace.look(now, () => this.#numbers(now));
    if (this.#pace.isStretched) this.#lookForTraffic(now);
    this.#poll(now);
    this.#pace.spent(performance.now() - began);
    this.#reports.look(this.#pace, this.#order.length, now);
  }

  #numbers(now: number): PolledNumbers {
    let busy = 0;
    for (const target of this.#order) if (now - target.busyMs < BUSY_MS) busy += 1;
    return { busy, quiet: this.#order.length - busy };
  }

  /** Looks at a part of the endpoints: one that has got requests is polled soon. */
  #lookForTraffic(now: number): void {
    const order = this.#order;
    const { busyMs } = this.#pace.intervals;
    for (let i = Math.ceil(order.length / LOOK_TICKS); i > 0; i -= 1) {
      this.#looked = (this.#looked + 1) % order.length;
      const target = order[this.#looked]!;
      if (!this.#hasTraffic(target.slot, target.generation)) continue;
      target.busyMs = now;
      if (target.failures > 0 || target.dueMs <= now + busyMs) continue;
      target.dueMs = now + busyMs * this.#random();
      this.#plan(target);
    }
  }

  /** Starts the polls that are due, and ends those that take too long. */
  #poll(now: number): void {
    let starts = Math.min(STARTS_MAX, startsPerTick(this.#order.length, this.#intervalMs));
    const woken = [...this.#late.splice(0), ...this.#wheel.woken(now)];
    for (const target of woken) {
      if (this.#targets.get(target.slot) !== target) continue;
      if (target.fresh && now - target.lastGoodMs >= this.#staleMs(target)) this.#markStale(target);
      if (target.startedMs !== undefined) {
        if (now - target.startedMs >= this.#timeoutMs) this.#timeOut(target);
      } else if (now + this.#tickMs / 2 >= target.dueMs) {
        if (starts === 0) {
          this.#late.push(target);
          continue;
        }
        starts -= 1;
        this.#request(target, now);
      }
      this.#plan(target);
    }
  }

  /** Has the endpoint looked at when its next poll is due, or its scrape or its signals are too old. */
  #plan(target: Target): void {
    const { startedMs, dueMs, fresh, lastGoodMs } = target;
    const pollMs = startedMs === undefined ? dueMs : startedMs + this.#timeoutMs;
    this.#wheel.wakeAt(target, fresh ? Math.min(pollMs, lastGoodMs + this.#staleMs(target)) : pollMs);
  }

  /** Age from which on the signals of an endpoint are unknown. */
  #staleMs({ intervalMs }: Target): number {
    return Math.max(this.#stalenessMs, intervalMs > this.#intervalMs ? STALE_INTERVALS * intervalMs : 0);
  }

  #request(target: Target, now: number): void {
    target.startedMs = now;
    this.#pace.polled();
    try {
      target.connection.request();
    } catch (error) {
      this.#failed(target, new ScrapeFault('connect', String(error)));
    }
  }

  #timeOut(target: Target): void {
    target.connection.close();
    this.#failed(target, new ScrapeFault('timeout', `no complete page within ${this.#timeoutMs} ms`));
  }

  #good(target: Target, page: Uint8Array): void {
    const now = this.#now();
    let empty: boolean;
    let applied: boolean;
    try {
      const read = this.#reader.read(target.reading, page);
      empty = read.empty;
      if (!empty) this.#watch(target, read.signals, page, now);
      const { busyMs, quietMs } = this.#pace.intervals;
      target.intervalMs = this.#isBusy(target, read.signals, now) ? busyMs : quietMs;
      const agesFromMs = now + target.intervalMs - this.#intervalMs;
      applied = this.#sink.publish(target.slot, target.generation, read.signals, now, agesFromMs);
    } catch (error) {
      this.#failed(target, new ScrapeFault('scan', String(error)));
      return;
    }
    this.#scrapes += 1;
    if (!applied) this.#refused += 1;
    if (empty) this.#tellEmpty(target);
    if (target.failures > 0 && !target.fresh) {
      this.#log.info(this.#fields(target), 'metrics are scraped again');
    }
    // The second poll comes after a random part of the interval, so that endpoints found together do not stay in step.
    target.dueMs = target.everScraped
      ? nextPollMs(target.startedMs!, target.intervalMs, this.#random)
      : target.startedMs! + target.intervalMs * this.#random();
    target.startedMs = undefined;
    target.everScraped = true;
    target.failures = 0;
    if (applied) {
      target.fresh = true;
      target.lastGoodMs = now;
    }
    this.#plan(target);
  }

  /** Whether the endpoint has traffic, from here or as its changing signals show, or had some a moment ago. */
  #isBusy(target: Target, signals: EndpointSignals, now: number): boolean {
    const before = target.signals;
    target.signals = signals;
    const isSame =
      signals.waiting === before?.waiting && signals.running === before?.running && signals.kvUsage === before?.kvUsage;
    if (!isSame || this.#hasTraffic(target.slot, target.generation)) target.busyMs = now;
    return now - target.busyMs < BUSY_MS;
  }

  #watch(target: Target, signals: EndpointSignals, page: Uint8Array, now: number): void {
    const { watch, slot, generation } = target;
    if (watch === undefined) return;
    const { isFrozen, ended, stillMs } = watch.note(signals, page, this.#answered!(slot, generation), now);
    if (isFrozen === target.toldFrozen) return;
    if (!isFrozen) this.#log.info(this.#fields(target), 'the metrics page changes again');
    else if (now - target.toldFrozenMs < TELL_FROZEN_MS) return;
    else {
      target.toldFrozenMs = now;
      this.#log.warn(
        { ...this.#fields(target), ended, seconds: Math.round(stillMs / 1_000) },
        'the metrics page stands still although requests end: its load counts as what it last said; look for a ' +
          'cache in front of the page, or restart the engine',
      );
    }
    target.toldFrozen = isFrozen;
  }

  #tellEmpty(target: Target): void {
    this.#pagesWithoutSignals += 1;
    if (target.toldEmpty) return;
    target.toldEmpty = true;
    this.#log.warn(this.#fields(target), this.#reader.nothingFound(target.reading));
  }

  #failed(target: Target, fault: ScrapeFault): void {
    const now = this.#now();
    this.#faults[fault.kind] += 1;
    target.startedMs = undefined;
    target.failures += 1;
    target.lastFault = fault.message;
    target.dueMs = now + backoffMs(target.failures, this.#intervalMs, this.#random);
    this.#plan(target);
    this.#sink.failed?.(target.slot, target.generation);
    if (target.failures === 1 && !target.everScraped) {
      this.#log.warn({ ...this.#fields(target), fault: fault.kind }, `metrics cannot be scraped yet: ${fault.message}`);
    }
  }

  #markStale(target: Target): void {
    if (!this.#sink.stale(target.slot, target.generation)) return;
    target.fresh = false;
    this.#log.warn(
      this.#fields(target),
      `no good scrape for ${Math.round(this.#staleMs(target))} ms, signals are unknown: ` +
        (target.lastFault || 'no answer yet'),
    );
  }

  #fields(target: Target): object {
    return { endpoint: target.endpoint.id, address: endpointAddress(target.endpoint) };
  }
}

function sameServer(informed: SlotAssignment, target: Target): boolean {
  const { generation, endpoint } = informed;
  return (
    generation === target.generation &&
    endpoint.address === target.endpoint.address &&
    endpoint.port === target.endpoint.port
  );
}

function positive(name: string, value: number): number {
  if (!(value > 0 && value < Number.POSITIVE_INFINITY)) throw new RangeError(`${name}: must be above 0`);
  return value;
}
