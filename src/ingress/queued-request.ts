import type { QueuePlace } from '../core/wait-slots.js';
import type { QueueOutcome } from '../flow-control/queue-contract.js';
import type { Dispatch, Waiter, WaitingLine, WaitResult } from '../flow-control/waiting-line.js';
import { firstTokenObjectiveMs, queueDeadlineMs } from '../request/control-headers.js';
import type { UnderstoodRequest } from '../request/understand.js';
import type { RequestRecorder } from '../response/recorder.js';
import type { RequestHeaders } from '../scheduling/request-headers.js';

/** The header by which a client asks for its position in the queue and its wait. */
const ASKS = 'x-pointsman-queue-info';

/** Parts of the wait of a request. */
export interface QueuedRequestOptions {
  readonly line: WaitingLine;
  readonly recorder: RequestRecorder;
  /** Series of the recorder. */
  readonly series: number;
  readonly headers: RequestHeaders;
  readonly bodyBytes: number;
  /**
   * Called at the end of a wait: the request has an endpoint, or there is none to wait for. Not called after `leave`.
   */
  readonly over: (result: WaitResult) => void;
}

/** The waits of one request, from its first wait slot until it has an endpoint or an answer. */
export class QueuedRequest implements Waiter {
  readonly #options: QueuedRequestOptions;
  readonly #asked: boolean;
  readonly #sinceMs: number;
  #slot = -1;
  #place: QueuePlace | undefined;
  #waitedMs = 0;

  constructor(options: QueuedRequestOptions) {
    this.#options = options;
    this.#asked = options.headers.get(ASKS) !== undefined;
    this.#sinceMs = options.line.nowMs();
  }

  /**
   * Enters the queues, since the last decision found no room.
   * @param dispatch unused dispatch of the request: it goes to the head of its flow
   */
  join(request: UnderstoodRequest, dispatch: Dispatch | undefined): void {
    const { line, recorder, series, headers, bodyBytes } = this.#options;
    const objective = firstTokenObjectiveMs(headers);
    this.#slot = line.join(
      {
        flow: request.fairnessId,
        sinceMs: this.#sinceMs,
        ttlMs: queueDeadlineMs(headers),
        firstTokenDueMs: objective === undefined ? undefined : this.#sinceMs + objective,
        maxOutputTokens: request.maxOutputTokens,
        bodyBytes,
        handle: dispatch?.handle,
        wantsPosition: this.#asked,
      },
      this,
    );
    recorder.queued(series, 1, bodyBytes);
  }

  proceed(result: WaitResult): void {
    // Answer at its first arrival; later places are those of a request that was dispatched before.
    this.#place ??= result.place;
    this.#left();
    // A dispatch counts when it could be used.
    if (result.kind !== 'dispatched') this.#count(result.outcome);
    this.#options.over(result);
  }

  /** Leaves the queues, since the client has gone away. */
  leave(): void {
    if (this.#slot < 0) return;
    this.#options.line.leave(this.#slot);
    this.#left();
    this.#count('EvictedContextCancelled');
  }

  #left(): void {
    const { line, recorder, series, bodyBytes } = this.#options;
    this.#slot = -1;
    this.#waitedMs = line.nowMs() - this.#sinceMs;
    recorder.queued(series, -1, bodyBytes);
  }

  #count(outcome: QueueOutcome): void {
    const { recorder, series } = this.#options;
    recorder.queueLeft(series, outcome, this.#waitedMs / 1_000);
  }

  /** Milliseconds from the first wait slot to the end of the last wait. */
  get waitedMs(): number {
    return this.#waitedMs;
  }

  /** Headers of the answer that tell of the wait; undefined unless the client asked. */
  get answerHeaders(): ReadonlyMap<string, string> | undefined {
    if (!this.#asked) return undefined;
    const headers = new Map([['x-pointsman-queue-wait-ms', String(Math.round(this.#waitedMs))]]);
    if (this.#place === undefined) return headers;
    const { ahead, expectedWaitMs: expected } = this.#place;
    if (ahead !== undefined) headers.set('x-pointsman-queue-position', String(ahead));
    if (expected !== undefined) headers.set('x-pointsman-queue-expected-wait-ms', String(Math.round(expected)));
    return headers;
  }
}
