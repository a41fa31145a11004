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

/** What is known about an answer when it has ended. */
export interface ResponseSummary {
  readonly durationSeconds: number;
  readonly responseBytes: number;
  readonly streaming: boolean;
  readonly usage: Usage;
  /** Seconds from the request's arrival to the first body byte; undefined when none came. */
  readonly firstTokenSeconds: number | undefined;
  readonly status: number;
}

/** How long a placed request took, from its decision; undefined = it did not show. */
export interface ObservedLatency {
  /** To the first byte of a streamed answer. */
  readonly firstTokenSeconds: number | undefined;
  readonly perTokenSeconds: number | undefined;
  readonly durationSeconds: number;
}

/**
 * Where the request path counts things. The shard's implementation adds to cells in shared memory; nothing here
 * allocates per call but `series`, which is called once per request.
 */
export interface RequestRecorder {
  /** Index of the series of these labels; the bounded table answers with the series `other` when it is full. */
  series(labels: RequestSamples): number;
  /** The request phase was answered with a destination. */
  routed(series: number, requestBytes: number): void;
  /** The request was answered with an error, or its upstream failed. `code` as in `request_error_total`. */
  failed(series: number, code: string): void;
  /** `request_running` moves by `by` (+1 when routed, -1 at the end). */
  running(series: number, by: number): void;
  /** Input, output and cached tokens; once per answer. */
  tokens(series: number, usage: Usage): void;
  /** Seconds to the first byte of a streamed answer, or to the end of one that is not. */
  firstToken(series: number, streaming: boolean, seconds: number): void;
  interTokenLatency(series: number, seconds: number): void;
  responseEnded(series: number, summary: ResponseSummary): void;
  /** A request with a prediction was answered well: compare the two, and both with what the request wants. */
  predicted(series: number, prediction: LatencyPrediction, observed: ObservedLatency): void;
  /** Prediction servers were asked for a request: what came of it, and how long it took. */
  predictionAsked(outcome: string, labels: RequestSamples, seconds: number): void;
  /** One scheduling attempt: how long the decision took and how it ended. */
  scheduled(seconds: number, outcome: 'success' | 'failure', targetModel: string, slot: number): void;
  /** Matched and all blocks of a prompt. */
  prefix(matchedBlocks: number, totalBlocks: number, blockBytes: number): void;
  /** A prompt whose tokens were asked for: `tokenised`, or why it was estimated. */
  tokenised(outcome: 'tokenised' | 'late' | 'failed' | 'busy' | 'paused'): void;
  /** Time spent in the request phase and in the response phase by the picker itself. */
  processing(phase: 'request' | 'response', seconds: number): void;
  rewritten(rule: string, model: string, target: string): void;
  /** A request waits for an endpoint with room (+1), or does not any more (-1). */
  queued(series: number, by: 1 | -1, bodyBytes: number): void;
  /** What flow control did with a request, and how many seconds it waited. */
  queueLeft(series: number, outcome: QueueOutcome, seconds: number): void;
  /** What flow control did with a request at once: it never stood in a queue. */
  passedQueue(series: number, outcome: QueueOutcome): void;
  /** A request found no room, and no wait slot to wait in. */
  leftWaiting(series: number): void;
  /** ext_proc streams: +1 when one opens; closed with its gRPC code and duration. */
  streamOpened(): void;
  streamClosed(code: string, seconds: number): void;
  /** Requests that were turned away because the picker itself had too much to do. */
  overloaded(): void;
}
