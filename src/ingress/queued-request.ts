import type { Grant, Waiter, WaitingLine, WaitResult } from '../admission/waiting-line.js';
import type { QueuePlace } from '../core/parking.js';
import { firstTokenObjectiveMs, queueDeadlineMs } from '../request/control-headers.js';
import type { UnderstoodRequest } from '../request/understand.js';
import type { RequestHeaders } from '../scheduling/types.js';

/** The header by which a client asks to be told where it stood and how long it waited. */
const ASKS = 'x-pointsman-queue-info';

/** The wait of one request, from its first parking until it has an endpoint or an answer. */
export class QueuedRequest {
  readonly #line: WaitingLine;
  readonly #asked: boolean;
  readonly #sinceMs: number;
  readonly #headers: RequestHeaders;
  readonly #bodyBytes: number;
  #slot = -1;
  #place: QueuePlace | undefined;
  #waitedMs = 0;

  constructor(line: WaitingLine, headers: RequestHeaders, bodyBytes: number) {
    this.#line = line;
    this.#headers = headers;
    this.#bodyBytes = bodyBytes;
    this.#asked = headers.get(ASKS) !== undefined;
    this.#sinceMs = line.nowMs();
  }

  /**
   * The decision just made has parked the request.
   * @param grant one that it could not use: it goes to the head of its flow
   */
  join(request: UnderstoodRequest, grant: Grant | undefined, waiter: Waiter): void {
    const objective = firstTokenObjectiveMs(this.#headers);
    this.#slot = this.#line.join(
      {
        flow: request.fairnessId,
        sinceMs: this.#sinceMs,
        ttlMs: queueDeadlineMs(this.#headers),
        firstTokenDueMs: objective === undefined ? undefined : this.#sinceMs + objective,
        maxOutputTokens: request.maxOutputTokens,
        bodyBytes: this.#bodyBytes,
        handle: grant?.handle,
        wantsPosition: this.#asked,
        stickySlot: -1,
      },
      waiter,
    );
  }

  /** The wait is over. */
  over(result: WaitResult): void {
    this.#slot = -1;
    // What it was told when it came first: later places are those of one that has been granted before.
    this.#place ??= result.place;
    this.#waitedMs = this.#line.nowMs() - this.#sinceMs;
  }

  /** The client goes away. */
  leave(): void {
    if (this.#slot >= 0) this.#line.leave(this.#slot);
    this.#slot = -1;
  }

  /** Milliseconds from the first parking to the end of the last wait. */
  get waitedMs(): number {
    return this.#waitedMs;
  }

  /** Headers of the answer that tell of the wait; undefined unless the client asked. */
  get answerHeaders(): ReadonlyMap<string, string> | undefined {
    if (!this.#asked) return undefined;
    const headers = new Map([['x-pointsman-queue-wait-ms', String(Math.round(this.#waitedMs))]]);
    if (this.#place === undefined) return headers;
    headers.set('x-pointsman-queue-position', String(this.#place.ahead));
    const expected = this.#place.expectedWaitMs;
    if (expected !== undefined) headers.set('x-pointsman-queue-expected-wait-ms', String(Math.round(expected)));
    return headers;
  }
}
