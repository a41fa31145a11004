import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Route } from '../telemetry/metrics-server.js';

/** Viewers at once; more get a 503. A viewer holds one of the metrics port's connections. */
const VIEWERS_MAX = 8;
const INTERVAL_MS = 1000;
/** Bytes that may wait for a slow viewer; it misses snapshots while there are more. */
const WAITING_BYTES_MAX = 1 << 20;

/** Sends snapshots to the viewers of the page, as server-sent events. Nothing is computed without subscribers. */
export class PageFeed {
  readonly #read: (first: boolean) => unknown;
  readonly #viewers = new Set<ServerResponse>();
  readonly #report: (problem: unknown) => void;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param read makes a snapshot; the `first` one of a viewer has the points before it too
   * @param report takes what a snapshot failed with
   */
  constructor(read: (first: boolean) => unknown, report: (problem: unknown) => void) {
    this.#read = read;
    this.#report = report;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  readonly route: Route = (request, response) => this.#join(request, response);

  /** Ends the streams of all viewers. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const viewer of this.#viewers) viewer.end();
    this.#viewers.clear();
  }

  #join(request: IncomingMessage, response: ServerResponse): void {
    if (this.#viewers.size >= VIEWERS_MAX) {
      response.writeHead(503, { 'content-type': 'text/plain', 'retry-after': '30' });
      response.end(`${VIEWERS_MAX} viewers are watching already: close one\n`);
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    this.#viewers.add(response);
    response.on('close', () => this.#leave(response));
    this.#send([response], true);
    this.#timer ??= setInterval(() => this.#tick(), INTERVAL_MS).unref();
  }

  #leave(viewer: ServerResponse): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    this.#send(
      [...this.#viewers].filter(({ writableLength }) => writableLength < WAITING_BYTES_MAX),
      false,
    );
  }

  #send(viewers: readonly ServerResponse[], first: boolean): void {
    if (viewers.length === 0) return;
    try {
      const event = `data: ${JSON.stringify(this.#read(first))}\n\n`;
      for (const viewer of viewers) viewer.write(event);
    } catch (error) {
      this.#report(error);
    }
  }
}
