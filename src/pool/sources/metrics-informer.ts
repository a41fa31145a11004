import { type Endpoint, endpointAddress, type SlotAssignment, type SlotUpdate } from '../../contract/endpoint.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';
import { PageBuffers } from './page-buffers.js';
import { PageWatch } from './page-watch.js';
import { backoffMs, nextPollMs, startsPerTick, tickMs } from './poll-schedule.js';
import {
  ScrapeConnection,
  type ScrapeMeans,
  type ScrapeTls,
  type ScrapeTlsOptions,
  scrapeTls,
} from './scrape-connection.js';
import { SCRAPE_FAULTS, ScrapeFault, type ScrapeFaultKind } from './scrape-fault.js';
import type { InformerLog, SignalReader } from './signal-reader.js';

/**
 * Sink of scraped signals. Both methods answer false when they could not apply it now (the lock's owner has just died).
 */
export interface SignalSink {
  /**
   * A good scrape: tried again with the next one after false. `adapters` is the same object as long as nothing changed.
   */
  publish(slot: number, generation: number, signals: EndpointSignals, nowMs: number): boolean;
  /** Called once when published signals are too old, and again at the next tick as long as it returns false. */
  stale(slot: number, generation: number): boolean;
  /** Called when a scrape has failed. */
  failed?(slot: number, generation: number): void;
}

export interface MetricsInformerOptions {
  readonly reader: SignalReader;
  readonly sink: SignalSink;
  readonly log: InformerLog;
  /** Interval of scrapes. Default 50. */
  readonly intervalMs?: number | undefined;
  /** From the start of a scrape to its last byte. Default 1000. */
  readonly timeoutMs?: number | undefined;
  /** Bound on the bytes of a metrics page. Default 8 MiB. */
  readonly pageBytesMax?: number | undefined;
  /** Without a good scrape for so long an endpoint's signals are unknown. Default 2000. */
  readonly stalenessMs?: number | undefined;
  /** Default http. */
  readonly scheme?: 'http' | 'https' | undefined;
  /** Path of the metrics page. Default /metrics. */
  readonly path?: string | undefined;
  /** Address of an endpoint's page. Default: its own address and port. */
  readonly locate?: ((endpoint: Endpoint) => PageLocation) | undefined;
  /**
   * Only used with https. By default any certificate is taken: model servers are met by IP and mostly sign for
   * themselves.
   */
  readonly tls?: ScrapeTlsOptions | undefined;
  /**
   * Requests that the endpoint of a slot has answered so far. Present = pages are found that stand still while requests
   * end.
   */
  readonly answered?: ((slot: number, generation: number) => number) | undefined;
  /** Milliseconds that never step back; also the time given to the sink. Default performance.now. */
  readonly now?: (() => number) | undefined;
  /** From [0, 1). Default Math.random. */
  readonly random?: (() => number) | undefined;
}

/** Address of a page. */
export interface PageLocation {
  /** IP literal or host name. */
  readonly host: string;
  readonly port: number;
  /** Name that the certificate must be for; absent = `host`. */
  readonly serverName?: string | undefined;
}

/** Counts since the start. */
export interface InformerCounts {
  readonly scrapes: number;
  /** Good scrapes of pages that held none of the wanted metrics. */
  readonly pagesWithoutSignals: number;
  /** Good scrapes that the sink did not accept. */
  readonly refused: number;
  readonly faults: Readonly<Record<ScrapeFaultKind, number>>;
}

/** Age of a source's last data on its endpoints. */
export interface SourceFreshness {
  readonly endpoints: number;
  /** Endpoints without a good page, or with one that is too old: their values are unknown. */
  readonly stale: number;
  /** Milliseconds since the last good page of the endpoint that has gone without for longest, or since it is polled. */
  readonly oldestMs: number;
}

/** Polls of one slot. */
export interface PolledSlot {
  /** Whether there has been a good page. */
  readonly isScraped: boolean;
  /** Milliseconds since the last good page, or since it is polled. */
  readonly ageMs: number;
  /** Whether the page stands still although requests end at the endpoint. */
  readonly isFrozen: boolean;
}

/** Types of the plugins that a page is fetched and read by: label values of the error counters. */
export interface SourceTypes {
  readonly source: string;
  readonly extractors: readonly string[];
}

interface Target {
  readonly slot: number;
  readonly generation: number;
  endpoint: Endpoint;
  reading: unknown;
  readonly connection: ScrapeConnection;
  dueMs: number;
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
  readonly #means: ScrapeMeans;
  readonly #targets = new Map<number, Target>();
  /** The same targets in polling order, and where the next tick goes on. */
  #order: Target[] = [];
  #cursor = 0;
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
    this.#means = {
      buffers: new PageBuffers(),
      pageBytesMax: positive('pageBytesMax', options.pageBytesMax ?? 8 * 1024 * 1024),
      readBuffer: Buffer.allocUnsafeSlow(READ_BYTES),
    };
    this.#reader = options.reader;
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

  /** What is known of the polls of a slot; undefined = it is not polled. */
  polled(slot: number): PolledSlot | undefined {
    const target = this.#targets.get(slot);
    if (target === undefined) return undefined;
    return {
      isScraped: target.everScraped,
      ageMs: this.#now() - target.lastGoodMs,
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
    else this.#timer ??= setInterval(() => this.#tick(), tickMs(this.#intervalMs));
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
    };
    return target;
  }

  #relabel(target: Target, endpoint: Endpoint): void {
    target.endpoint = endpoint;
    target.reading = this.#reader.prepare(endpoint);
    target.toldEmpty = false;
  }

  #tick(): void {
    const now = this.#now();
    // Half a tick early or half a tick late: on average in time.
    const due = now + tickMs(this.#intervalMs) / 2;
    const order = this.#order;
    let starts = startsPerTick(order.length, this.#intervalMs);
    let next = -1;
    for (let i = 0; i < order.length; i += 1) {
      const at = (this.#cursor + i) % order.length;
      const target = order[at]!;
      if (target.fresh && now - target.lastGoodMs >= this.#stalenessMs) this.#markStale(target);
      if (target.startedMs !== undefined) {
        if (now - target.startedMs >= this.#timeoutMs) this.#timeOut(target);
      } else if (due >= target.dueMs) {
        if (starts > 0) {
          starts -= 1;
          this.#request(target, now);
        } else if (next < 0) next = at;
      }
    }
    if (next >= 0) this.#cursor = next;
  }

  #request(target: Target, now: number): void {
    target.startedMs = now;
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
      applied = this.#sink.publish(target.slot, target.generation, read.signals, now);
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
      ? nextPollMs(target.startedMs!, this.#intervalMs, this.#random)
      : target.startedMs! + this.#intervalMs * this.#random();
    target.startedMs = undefined;
    target.everScraped = true;
    target.failures = 0;
    if (applied) {
      target.fresh = true;
      target.lastGoodMs = now;
    }
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
      `no good scrape for ${this.#stalenessMs} ms, signals are unknown: ${target.lastFault || 'no answer yet'}`,
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
