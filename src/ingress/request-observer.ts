import { DEFAULT_FAIRNESS_ID, requestedRewrite } from '../request/control-headers.js';
import { STATUS_OF_CODE } from '../request/rejections.js';
import type { UnderstoodRequest } from '../request/understand.js';
import { recentPoolClockMs } from '../runtime/pool-clock.js';
import type { Placement, Rejection } from '../scheduling/decision.js';
import { NO_HEADERS } from './codec/header-map.js';
import type { Exchange, StreamServices } from './exchange.js';
import type { QueuedRequest } from './queued-request.js';
import type { RequestReader } from './request-reader.js';
import { RequestTrail } from './request-trail.js';
import type { RequestTrace } from './tracing/request-trace.js';
import { UNSAMPLED_ROOT } from './tracing/request-tracer.js';
import type { TracedEnd } from './tracing/trace-record.js';

/**
 * Observes the steps of one request: metrics, the decision log, the trace, and the time that the picker spends on it.
 * Each method is a step of the request; none of them changes its outcome.
 */
export class RequestObserver {
  readonly #exchange: Exchange;
  readonly #reader: RequestReader;
  readonly #trail: RequestTrail;
  /** Undefined = the request is not traced, or its headers have not come. */
  #tracing: RequestTrace | typeof UNSAMPLED_ROOT | undefined;
  #isSampled = false;
  #series = -1;
  #running = false;
  #spentMs = 0;
  #placedAt: number | undefined;
  /** Of the decision under way: its first record, and its begin. */
  #firstRecord = 0;
  #decidesSince = 0;

  constructor(exchange: Exchange, reader: RequestReader) {
    this.#exchange = exchange;
    this.#reader = reader;
    this.#trail = new RequestTrail(exchange.context.services);
  }

  get #services(): StreamServices {
    return this.#exchange.context.services;
  }

  // Facts for the answer and the response phase.

  /** Id from the picker; undefined = the request had one. */
  get generatedId(): string | undefined {
    return this.#trail.generatedId;
  }

  get trace(): RequestTrace | undefined {
    return this.#tracing === UNSAMPLED_ROOT ? undefined : this.#tracing;
  }

  /** Mutation with the trace context of the request; undefined = the client's context, if any, passes unchanged. */
  get traceParent(): Buffer | undefined {
    return this.#services.tracer?.header(this.#tracing);
  }

  get placedAt(): number | undefined {
    return this.#placedAt;
  }

  /** Series of the request in the metrics. @param understood undefined = the request was not understood */
  series(understood: UnderstoodRequest | undefined): number {
    if (this.#series < 0) this.#series = this.#seriesOf(understood);
    return this.#series;
  }

  // Steps.

  /** Takes the change of the request to another pool. */
  moved(services: StreamServices): void {
    this.#trail.move(services);
  }

  understood(request: UnderstoodRequest): void {
    this.#sample();
    this.trace?.understood(request, this.#reader.body, this.#services.now());
  }

  /** Takes the end of a preparation. */
  prepared(now: number): void {
    this.trace?.prepared(now);
  }

  /** Takes the begin of the decision. */
  deciding(request: UnderstoodRequest): void {
    this.#series = this.#seriesOf(request);
    const { trace } = this;
    this.#decidesSince = trace === undefined ? 0 : this.#services.now();
    const { headers } = this.#reader;
    const keeps = this.#services.columns?.keeps(request, headers, recentPoolClockMs()) ?? false;
    this.#firstRecord = this.#trail.begin(headers, keeps || trace !== undefined);
  }

  decided(queued: QueuedRequest | undefined): void {
    const { trace } = this;
    this.#trail.decided(this.#firstRecord, this.#series, queued?.waitedMs ?? 0, trace !== undefined);
    trace?.decided(this.#trail.id ?? '', this.#trail.made, this.#decidesSince, this.#services.now());
  }

  /**
   * Takes the result of flow control: an endpoint, at once or after a wait, or a refusal. Without flow control it
   * passes at once.
   */
  passed(outcome: Placement | Rejection, queued: QueuedRequest | undefined): void {
    const { line, recorder } = this.#services;
    if (line === undefined) return;
    const leftWaiting = outcome.kind === 'rejected' && outcome.leftWaiting === true;
    if (leftWaiting) recorder.leftWaiting(this.#series);
    const outcomeName = leftWaiting ? 'RejectedCapacity' : 'Dispatched';
    if (queued === undefined) recorder.passedQueue(this.#series, outcomeName);
    else recorder.queueLeft(this.#series, outcomeName, queued.waitedMs / 1_000);
  }

  queued(): void {
    this.trace?.queued(this.#services.now());
  }

  dequeued(outcome: Parameters<RequestTrace['dequeued']>[0]): void {
    // Without a message, the decision takes the time of this reading.
    const now = this.#services.now();
    this.trace?.dequeued(outcome, now);
  }

  placed({ rewriteRule, model, targetModel }: UnderstoodRequest, placement: Placement): void {
    const { recorder, recent } = this.#services;
    this.#placedAt = recent();
    if (rewriteRule !== undefined) recorder.rewritten(rewriteRule, model, targetModel);
    recorder.running(this.#series, 1);
    this.#running = true;
    this.trace?.placed(placement, this.#placedAt);
  }

  /** Takes the answer with the request's destination. @param bytes of its body */
  routed(bytes: number): void {
    this.#services.recorder.routed(this.#series, bytes);
  }

  /** Takes the refusal of the request itself. */
  failed({ code }: Rejection, understood: UnderstoodRequest | undefined): void {
    this.#services.recorder.failed(this.series(understood), code);
  }

  /** Takes the answer with an error. */
  rejected(rejection: Rejection, understood: UnderstoodRequest | undefined, queued: QueuedRequest | undefined): void {
    const { headers, requester } = this.#reader;
    const { code, reason, bound } = rejection;
    const status = STATUS_OF_CODE[code];
    if (headers !== NO_HEADERS) {
      const { priority } = understood ?? requester;
      this.#trail.refused(headers, this.#series, { status, priority, waitedMs: queued?.waitedMs ?? 0, bound });
    }
    this.#sample();
    this.trace?.rejected({ code, status, reason }, this.#services.now());
  }

  /** Takes the loss of a client whose request waits. */
  abandoned(): void {
    this.#trail.abandoned();
  }

  evicted(): void {
    this.trace?.evicted();
  }

  /** Notes the release of what the request held on its endpoint. Idempotent. */
  released(): void {
    if (this.#running) this.#services.recorder.running(this.#series, -1);
    this.#running = false;
  }

  /** Ends the trace. Idempotent. @param end undefined = as the request itself has ended */
  ended(end: TracedEnd | undefined): void {
    this.trace?.close(end, this.#services.now());
  }

  /** Takes work of the picker on the request, since a time. @param isOver nothing more is done for it */
  worked(sinceMs: number, isOver: boolean): void {
    const { now, recorder } = this.#services;
    this.#spentMs += now() - sinceMs;
    if (isOver) recorder.processing('request', this.#spentMs / 1_000);
  }

  /** Decides once, when the headers have come, whether the request is traced. */
  #sample(): void {
    const { headers } = this.#reader;
    if (this.#isSampled || headers === NO_HEADERS) return;
    this.#isSampled = true;
    this.#tracing = this.#services.tracer?.begin(headers, this.#exchange.openedAt);
  }

  #seriesOf(request: UnderstoodRequest | undefined): number {
    const { headers, requester } = this.#reader;
    const { recorder } = this.#services;
    if (request === undefined && headers === NO_HEADERS) return recorder.series(UNREAD);
    const { fairnessId, priority } = request ?? requester;
    const model = request?.model ?? '';
    return recorder.series({
      model,
      target: request?.targetModel ?? this.#askedTarget,
      fairness: fairnessId,
      priority,
    });
  }

  /** Target in the headers of a request that was not understood, as llm-d-router labels it. */
  get #askedTarget(): string {
    const { clientsRewrite } = this.#services.rules.access;
    return clientsRewrite ? (requestedRewrite(this.#reader.headers) ?? '') : '';
  }
}

/** Labels of a request without headers so far. */
const UNREAD = { model: '', target: '', fairness: DEFAULT_FAIRNESS_ID, priority: 0 };
