import type { Endpoint } from '../../contract/endpoint.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';
import type { PollPace } from './poll-pace.js';
import type { ScrapeTlsOptions } from './scrape-connection.js';
import type { InformerLog, SignalReader } from './signal-reader.js';

/**
 * Sink of scraped signals. Both methods answer false when they could not apply it now (the lock's owner has just died).
 */
export interface SignalSink {
  /**
   * A good scrape: tried again with the next one after false. `adapters` is the same object as long as nothing changed.
   * @param agesFromMs time from which on the signals age: that of the scrape, later where the next one comes later by
   * design
   */
  publish(slot: number, generation: number, signals: EndpointSignals, nowMs: number, agesFromMs: number): boolean;
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
  /** Intervals by what the scrapes take. Default: the interval holds for every endpoint. */
  readonly pace?: Pick<PollPace, keyof PollPace> | undefined;
  /** Whether requests are in flight on the endpoint of a slot. Default: no. */
  readonly hasTraffic?: ((slot: number, generation: number) => boolean) | undefined;
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
