import type { PromptKind, Usage } from '../../core/types.js';

/** How a traced request ended. */
export type TracedEnd = 'completed' | 'rejected' | 'evicted' | 'cancelled' | 'failed';

/** The decisions made by one call of the scheduler, sent at once: the decision log keeps them for a bounded time. */
export interface TracedDecision {
  readonly kind: 'decision';
  readonly traceId: string;
  /** Span that the decision belongs to. */
  readonly parentId: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly requestId: string;
  readonly model: string;
  /** Number of the first record in the decision log of the thread, and how many follow each other. */
  readonly first: number;
  readonly count: number;
}

/**
 * One sampled request, sent by a shard at its end. It holds sizes of the prompt, and no text. Times are milliseconds
 * since 1970 with fractions; undefined = the request ended before.
 */
export interface TracedRequest {
  readonly kind: 'request';
  readonly traceId: string;
  readonly spanId: string;
  /** Span of the client; undefined = the trace begins here. */
  readonly parentId: string | undefined;
  readonly orchestrationId: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly end: TracedEnd;
  readonly requestId: string | undefined;
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly prompt: PromptKind | undefined;
  readonly model: string;
  readonly targetModel: string;
  readonly stream: boolean;
  readonly maxOutputTokens: number | undefined;
  readonly fairnessId: string | undefined;
  readonly priority: number | undefined;
  readonly bodyBytes: number;
  /** Milliseconds at which the request was complete. */
  readonly understoodMs: number | undefined;
  /** Milliseconds at which tokens, plugins and predictions were there; undefined = the request waited for none. */
  readonly preparedMs: number | undefined;
  readonly queuedMs: number | undefined;
  readonly dequeuedMs: number | undefined;
  /** Outcome of the wait in flow control. */
  readonly queueOutcome: string | undefined;
  /** The destination, or an error, was sent to the proxy. */
  readonly answeredMs: number | undefined;
  readonly endpoint: string | undefined;
  readonly address: string | undefined;
  /** Tokens of the prompt that the endpoint was expected to have in its cache. */
  readonly matchedTokens: number | undefined;
  readonly rejection:
    | { readonly code: string; readonly status: number; readonly reason: string | undefined }
    | undefined;
  /** Head of the answer, its first byte and its end. */
  readonly headMs: number | undefined;
  readonly firstByteMs: number | undefined;
  readonly answerEndMs: number | undefined;
  readonly status: number | undefined;
  readonly answerBytes: number;
  readonly usage: Usage | undefined;
}

export type TraceRecord = TracedDecision | TracedRequest;

/** Records on their way to the control thread. */
export interface TraceBatch {
  readonly records: readonly TraceRecord[];
  /** Records that did not fit since the last batch. */
  readonly dropped: number;
}
