import type { EndpointSignals } from '../../core/endpoint-table.js';

/** Time without a change of the values after which the page is worth a digest. */
const CALM_MS = 1_000;
/** Time from the first request that ended, and number of requests, over which a page that works must change. */
const FROZEN_MS = 5_000;
const ENDED_MIN = 10;
/** Interval of the looks at a page that is frozen. */
const LOOK_MS = 1_000;

/** Beginnings of lines that say nothing of the engine: comments, and figures of the process that writes the page. */
const PASSED_OVER = ['#', 'process_', 'python_', 'go_'].map((text) => Buffer.from(text));
/** Signs of a counter: a page without one may stand still between two gauges. */
const COUNTERS = ['_total', ' counter'].map((text) => Buffer.from(text));

/** State of a page after a scrape. */
export interface PageState {
  readonly isFrozen: boolean;
  /** Requests that ended while it stood still, and the time since the first of them in milliseconds. */
  readonly ended: number;
  readonly stillMs: number;
}

/**
 * Finds a metrics page that stands still although requests end at its endpoint: a cache in front of it, or an engine
 * that no longer tells. The page is read for it only while its values stand still, so an endpoint with load costs a
 * comparison of three numbers a scrape.
 */
export class PageWatch {
  #waiting: number | undefined;
  #running: number | undefined;
  #kvUsage: number | undefined;
  #calmSinceMs = Number.NEGATIVE_INFINITY;
  #digest: number | undefined;
  /** Requests that had ended when the digest was taken, and the time of the last scrape before the next one ended. */
  #endedBefore = 0;
  #stillSinceMs = 0;
  #lookedMs = 0;
  #isFrozen = false;

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  /**
   * Takes a scraped page.
   * @param ended requests that the endpoint has answered so far
   */
  note(signals: EndpointSignals, page: Uint8Array, ended: number, nowMs: number): PageState {
    if (this.#changes(signals)) this.#begin(nowMs);
    else if (nowMs - this.#calmSinceMs >= CALM_MS) this.#compare(page, ended, nowMs);
    return { isFrozen: this.#isFrozen, ended: ended - this.#endedBefore, stillMs: nowMs - this.#stillSinceMs };
  }

  #changes({ waiting, running, kvUsage }: EndpointSignals): boolean {
    const isSame = waiting === this.#waiting && running === this.#running && kvUsage === this.#kvUsage;
    [this.#waiting, this.#running, this.#kvUsage] = [waiting, running, kvUsage];
    return !isSame;
  }

  #begin(nowMs: number): void {
    this.#calmSinceMs = nowMs;
    this.#digest = undefined;
    this.#isFrozen = false;
  }

  #compare(page: Uint8Array, ended: number, nowMs: number): void {
    if (this.#digest === undefined) {
      this.#take(digestOf(page), ended, nowMs);
      return;
    }
    if (ended <= this.#endedBefore) this.#stillSinceMs = nowMs;
    const isDue = this.#isFrozen
      ? nowMs - this.#lookedMs >= LOOK_MS
      : nowMs - this.#stillSinceMs >= FROZEN_MS && ended - this.#endedBefore >= ENDED_MIN;
    if (!isDue) return;
    this.#lookedMs = nowMs;
    const digest = digestOf(page);
    this.#isFrozen = digest === this.#digest && hasCounter(page);
    if (!this.#isFrozen) this.#take(digest, ended, nowMs);
  }

  #take(digest: number, ended: number, nowMs: number): void {
    this.#digest = digest;
    this.#endedBefore = ended;
    this.#stillSinceMs = nowMs;
  }
}

/** FNV-1a of the lines that are not passed over. */
function digestOf(page: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let start = 0; start < page.length; ) {
    const feed = page.indexOf(0x0a, start);
    const end = feed < 0 ? page.length : feed + 1;
    if (!PASSED_OVER.some((beginning) => beginsWith(page, start, beginning))) {
      for (let at = start; at < end; at++) hash = Math.imul(hash ^ page[at]!, 0x01000193);
    }
    start = end;
  }
  return hash >>> 0;
}

function beginsWith(page: Uint8Array, start: number, beginning: Uint8Array): boolean {
  return beginning.every((byte, at) => page[start + at] === byte);
}

function hasCounter(page: Uint8Array): boolean {
  const bytes = Buffer.from(page.buffer, page.byteOffset, page.length);
  return COUNTERS.some((sign) => bytes.includes(sign));
}
