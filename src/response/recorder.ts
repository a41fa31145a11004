import type { Usage } from '../core/types.js';
import type { QueueOutcome } from '../flow-control/queue-contract.js';
import type { LatencyPrediction } from '../scheduling/latency-outlook.js';

/** The labels of the per-request metrics (M of the metric table). */
export interface RequestSamples {
  readonly model: string;
  readonly target: string;
  readonly fairness: string;
  readonly priority: number;
}

/** The state of an answer at its end. */
export interface ResponseSummary {
  readonly durationSeconds: number;
  readonly responseBytes: number;
  readonly streaming: boolean;
  readonly usage: Usage;
  /** Seconds from the request's arrival to the first body byte; undefined without one. */
  readonly firstTokenSeconds: number | undefined;
  readonly status: number;
}

/** Latency of a placed request, from its decision; undefined = not observed. */
export interface ObservedLatency {
  /** Time to the first byte of a streamed answer. */
  readonly firstTokenSeconds: number | undefined;
  readonly perTokenSeconds: number | undefined;
  readonly durationSeconds: number;
}

/**
 * Counters of the request path. The shard's implementation adds to cells in shared memory. No call allocates but
 * `series`, which is called once per request.
 */
export interface RequestRecorder {
  /** Index of the series of these labels; index of the series `other` when the bounded table is full. */
  series(labels: RequestSamples): number;
  /** Counts a request phase answered with a destination. */
  routed(series: number, requestBytes: number): void;
  /** Counts a request that was answered with an error or whose upstream failed. `code` as in `request_error_total`. */
  failed(series: number, code: string): void;
  /** Moves `request_running` by `by` (+1 when routed, -1 at the end). */
  running(series: number, by: number): void;
  /** Counts input, output and cached tokens; once per answer. */
  tokens(series: number, usage: Usage): void;
  /** Counts output tokens of a stream without usage, as its chunks tell; once per answer. */
  estimatedTokens(series: number, outputTokens: number): void;
  /** Records the seconds to the first byte of a streamed answer, or to the end of another one. */
  firstToken(series: number, streaming: boolean, seconds: number): void;
  interTokenLatency(series: number, seconds: number): void;
  responseEnded(series: number, summary: ResponseSummary): void;
  /** Compares the prediction of a successful request with the observed latency, and both with its objective. */
  predicted(series: number, prediction: LatencyPrediction, observed: ObservedLatency): void;
  /** Counts a call of the prediction servers by outcome, with its duration. */
  predictionAsked(outcome: string, labels: RequestSamples, seconds: number): void;
  /** Records one scheduling attempt: the duration of the decision and its outcome. */
  scheduled(seconds: number, outcome: 'success' | 'failure', targetModel: string, slot: number): void;
  /** Records the matched and all blocks of a prompt. */
  prefix(matchedBlocks: number, totalBlocks: number, blockBytes: number): void;
  /** Counts a prompt whose tokens were requested: `tokenised`, or the reason of the estimate. */
  tokenised(outcome: 'tokenised' | 'late' | 'failed' | 'busy' | 'paused'): void;
  /** Compares the tokens of a prompt that the picker counted with those of the engine's usage. */
  tokensCounted(own: number, engine: number): void;
  /** Compares the estimated tokens of a prompt of so many bytes with those of the engine's usage. */
  estimateCompared(series: number, estimated: { readonly bytes: number; readonly tokens: number }, told: number): void;
  /** Records the picker's own time in the request phase or the response phase. */
  processing(phase: 'request' | 'response', seconds: number): void;
  rewritten(rule: string, model: string, target: string): void;
  /**
   * Moves the number of waiting requests: +1 when one begins to wait for an endpoint with room, -1 when its wait ends.
   */
  queued(series: number, by: 1 | -1, bodyBytes: number): void;
  /** Counts the end of a wait in flow control by outcome, with its duration in seconds. */
  queueLeft(series: number, outcome: QueueOutcome, seconds: number): void;
  /** Counts a request that flow control answered at once, without a wait. */
  passedQueue(series: number, outcome: QueueOutcome): void;
  /** Counts a request that found neither room nor a wait slot. */
  leftWaiting(series: number): void;
  /** Counts ext_proc streams: opened; closed with gRPC code and duration. */
  streamOpened(): void;
  streamClosed(code: string, seconds: number): void;
  /** Counts a request refused because the picker is overloaded. */
  overloaded(): void;
  /** Counts an answer whose body is sent although no decision depends on it. */
  unreadAnswer(): void;
  /** Counts a turn whose client has written the member of the body by which an engine is asked to keep its blocks. */
  retentionLeftOut(): void;
}
