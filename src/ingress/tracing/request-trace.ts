import type { Usage } from '../../core/types.js';
import type { RequestBody } from '../../request/request-body.js';
import type { UnderstoodRequest } from '../../request/understand.js';
import type { AnswerTrace } from '../../response/response-phase.js';
import type { Placement } from '../../scheduling/decision.js';
import type { RequestHeaders } from '../../scheduling/request-headers.js';
import { setHeader } from '../codec/process-response.js';
import { sampledTraceParent } from './trace-parent.js';
import type { TracedDecision, TracedEnd, TracedRequest, TraceRecord } from './trace-record.js';

/** Names of a trace and of its first two spans. */
export interface TraceNames {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly orchestrationId: string;
}

export interface RequestTraceOptions {
  readonly names: TraceNames;
  readonly headers: RequestHeaders;
  /** Arrival of the request, by the clock of the streams. */
  readonly startMs: number;
  /** Added to a time of that clock for milliseconds since 1970. */
  readonly epochMs: number;
  readonly sink: (record: TraceRecord) => void;
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * Collects the trace record of one sampled request. Times of all methods are those of the streams' clock, in
 * milliseconds.
 */
export class RequestTrace implements AnswerTrace {
  readonly #epochMs: number;
  readonly #sink: (record: TraceRecord) => void;
  readonly #record: Writable<TracedRequest>;
  #ended = false;

  constructor({ names, headers, startMs, epochMs, sink }: RequestTraceOptions) {
    this.#epochMs = epochMs;
    this.#sink = sink;
    this.#record = {
      kind: 'request',
      ...names,
      startMs: startMs + epochMs,
      endMs: startMs + epochMs,
      end: 'completed',
      requestId: undefined,
      method: headers.get(':method'),
      path: headers.get(':path'),
      prompt: undefined,
      model: '',
      targetModel: '',
      stream: false,
      maxOutputTokens: undefined,
      fairnessId: undefined,
      priority: undefined,
      bodyBytes: 0,
      understoodMs: undefined,
      preparedMs: undefined,
      queuedMs: undefined,
      dequeuedMs: undefined,
      queueOutcome: undefined,
      answeredMs: undefined,
      endpoint: undefined,
      address: undefined,
      matchedTokens: undefined,
      rejection: undefined,
      headMs: undefined,
      firstByteMs: undefined,
      answerEndMs: undefined,
      status: undefined,
      answerBytes: 0,
      usage: undefined,
    };
  }

  /** Header mutation that makes the model server's spans children of this request. */
  get header(): Buffer {
    const { traceId, spanId } = this.#record;
    return setHeader('traceparent', sampledTraceParent(traceId, spanId));
  }

  understood(request: UnderstoodRequest, body: RequestBody | undefined, atMs: number): void {
    const record = this.#record;
    record.understoodMs = atMs + this.#epochMs;
    record.prompt = body?.dialect.prompt;
    record.bodyBytes = body?.bytes ?? 0;
    record.model = request.model;
    record.targetModel = request.targetModel;
    record.stream = request.stream;
    record.maxOutputTokens = request.maxOutputTokens;
    record.fairnessId = request.fairnessId;
    record.priority = request.priority;
  }

  prepared(atMs: number): void {
    this.#record.preparedMs = atMs + this.#epochMs;
  }

  /** @param made numbers of the records of the decision in the log; undefined = it has none, or there is no log */
  decided(
    requestId: string,
    made: Pick<TracedDecision, 'first' | 'count'> | undefined,
    startMs: number,
    endMs: number,
  ): void {
    const record = this.#record;
    record.requestId = requestId;
    if (made === undefined) return;
    const { traceId, orchestrationId: parentId, targetModel: model } = record;
    const times = { startMs: startMs + this.#epochMs, endMs: endMs + this.#epochMs };
    this.#sink({ kind: 'decision', traceId, parentId, ...times, requestId, model, ...made });
  }

  /** Notes the beginning of the first wait for an endpoint with room. */
  queued(atMs: number): void {
    this.#record.queuedMs ??= atMs + this.#epochMs;
  }

  dequeued(outcome: string, atMs: number): void {
    this.#record.dequeuedMs = atMs + this.#epochMs;
    this.#record.queueOutcome = outcome;
  }

  placed({ endpoints: [first], matchedTokens }: Placement, atMs: number): void {
    this.#record.answeredMs = atMs + this.#epochMs;
    this.#record.endpoint = first?.endpoint.name;
    this.#record.address = first?.address;
    this.#record.matchedTokens = matchedTokens;
  }

  rejected(rejection: NonNullable<TracedRequest['rejection']>, atMs: number): void {
    this.#record.answeredMs ??= atMs + this.#epochMs;
    this.#record.rejection = rejection;
    this.#record.end = 'rejected';
  }

  /** Notes that the request was evicted for one of a higher band. */
  evicted(): void {
    this.#record.end = 'evicted';
  }

  head(status: number | undefined, atMs: number): void {
    this.#record.headMs = atMs + this.#epochMs;
    this.#record.status = status;
  }

  firstByte(atMs: number): void {
    this.#record.firstByteMs = atMs + this.#epochMs;
  }

  answered(usage: Usage, bytes: number, atMs: number): void {
    this.#record.answerEndMs = atMs + this.#epochMs;
    this.#record.answerBytes = bytes;
    this.#record.usage = usage;
  }

  /** Ends the trace with its stream. Idempotent. @param end undefined = the end noted before */
  close(end: TracedEnd | undefined, atMs: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#record.endMs = atMs + this.#epochMs;
    if (end !== undefined && this.#record.end === 'completed') this.#record.end = end;
    this.#sink(this.#record);
  }
}
