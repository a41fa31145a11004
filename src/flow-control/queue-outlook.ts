import type { Band, QueueTables } from './band.js';
import type { BandDirectory } from './band-directory.js';
import { drainMs, expectedWaitMs, RetryAfter } from './expected-wait.js';
import type { QueuePosition } from './queue-contract.js';
import { NONE, WAITING } from './request-slab.js';

/** What can be said of the waits in the queues of a pool; changes nothing in them. */
export class QueueOutlook {
  readonly #tables: QueueTables;
  readonly #bands: BandDirectory;
  readonly #retryAfter: RetryAfter;

  /** @param seed of the jitter of Retry-After */
  constructor(tables: QueueTables, bands: BandDirectory, seed: number) {
    this.#tables = tables;
    this.#bands = bands;
    this.#retryAfter = new RetryAfter(seed);
  }

  /** Place of a waiting request; undefined = it does not wait. */
  position(handle: number, nowMs: number): QueuePosition | undefined {
    const { requests, flows } = this.#tables;
    const index = requests.find(handle, WAITING);
    if (index === NONE) return undefined;
    const flow = requests.flow[index]!;
    const band = this.#bands.get(flows.priority[flow]!)!;
    return {
      ahead: this.#waitingFrom(band) - 1,
      expectedWaitMs: expectedWaitMs(band, flows, flow, flows.id[flow]!, nowMs),
    };
  }

  /** As `position`, of a new request of a flow. */
  ofFlow(priority: number, id: string, nowMs: number): QueuePosition | undefined {
    const { flows } = this.#tables;
    const band = this.#bands.get(priority);
    if (band === undefined) return undefined;
    const expected = expectedWaitMs(band, flows, flows.find(priority, id), id, nowMs);
    return { ahead: this.#waitingFrom(band), expectedWaitMs: expected };
  }

  /** Waiting requests of a band and of all higher ones. */
  #waitingFrom({ priority }: Band): number {
    const above = this.#bands.sorted.filter((band) => band.priority >= priority);
    return above.reduce((sum, { waiting }) => sum + waiting, 0);
  }

  /** Retry-After of a waiting request. */
  retryAfterSeconds(handle: number, nowMs: number): number {
    return this.retrySeconds(this.position(handle, nowMs)?.expectedWaitMs);
  }

  /** Milliseconds in which a band is served; undefined while its rate is unknown. */
  drainMs(priority: number, nowMs: number): number | undefined {
    const band = this.#bands.get(priority);
    return band === undefined ? undefined : drainMs(band, band.tokens, nowMs);
  }

  /** Retry-After for a wait in milliseconds; undefined = it is not known. */
  retrySeconds(waitMs: number | undefined): number {
    return this.#retryAfter.seconds(waitMs);
  }
}
