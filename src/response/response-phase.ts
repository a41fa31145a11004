import type { RequestResult } from '../core/decision-data.js';
import { AnswerForm, type Usage } from '../core/types.js';
import type { AnswerMeasures, Charge, PickedEndpoint } from '../scheduling/decision.js';
import type { LatencyPrediction } from '../scheduling/latency-outlook.js';
import type { TokenRatios } from '../scheduling/token-ratios.js';
import type { AnswerBodies } from './answer-bodies.js';
import { DeltaEvents } from './delta-events.js';
import type { RequestRecorder } from './recorder.js';
import type { ResponseScanner } from './response-scanner.js';
import { UsageEvents } from './usage-events.js';

/** Takes the facts of an answer for a trace. Times are those of `now`, in milliseconds. */
export interface AnswerTrace {
  head(status: number | undefined, atMs: number): void;
  firstByte(atMs: number): void;
  answered(usage: Usage, bytes: number, atMs: number): void;
}

export interface ResponseServices {
  readonly responses: ResponseScanner;
  readonly recorder: RequestRecorder;
  /** Learns how many tokens models have in a text; absent = nothing learns it. */
  readonly ratios?: TokenRatios | undefined;
  /** Whether bodies of answers come; absent = answers without bodies are samples of first tokens by their heads. */
  readonly answerBodies?: AnswerBodies | undefined;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** The part of the request that the response phase uses; for a response without a request, only `arrivedAt`. */
export interface AnsweredRequest {
  /** Series of the recorder. */
  readonly series: number;
  /** Arrival of the request, by `now`. */
  readonly arrivedAt: number;
  /** Model names of the client and of the engine; equal or empty = nothing to rename. */
  readonly model: string;
  readonly targetModel: string;
  /** Whether the client asked for a stream. */
  readonly stream: boolean;
  /** Form of the usage in the dialect's answers; undefined = the body is not read. */
  readonly answer: AnswerForm | undefined;
  /** Whether the picker asked for the usage of the stream and the client did not; absent = no. */
  readonly dropsUsage?: boolean;
  /** Picks for the answer in order of preference; undefined without a decision. */
  readonly picks: readonly PickedEndpoint[] | undefined;
  readonly charge: Charge | undefined;
  /** Tokens of the prompt by the model's tokeniser; undefined = they were estimated. */
  readonly countedPromptTokens?: number | undefined;
  /** Bytes of a prompt that is text, and its tokens as they were estimated; undefined = they were not. */
  readonly estimated?: { readonly bytes: number; readonly tokens: number } | undefined;
  /**
   * Time of the placement, by `now`, and the prediction made then; undefined when the request was not placed or nothing
   * predicts.
   */
  readonly placedAt?: number | undefined;
  readonly prediction?: LatencyPrediction | undefined;
  /** Undefined = the request is not traced. */
  readonly trace?: AnswerTrace | undefined;
}

/** The head of a response as the proxy reports it. */
export interface ResponseHead {
  /** HTTP status; undefined when the proxy names none. */
  readonly status: number | undefined;
  readonly contentType: string | undefined;
  /** Whether the body is compressed, and so not read; absent = it is not. */
  readonly isEncoded?: boolean;
  /** `ip:port` of the endpoint that answered, when the proxy reports it. */
  readonly served: string | undefined;
  /** Whether the proxy sends the body; absent = it does. */
  readonly bodyComes?: boolean;
}

const NO_BYTES = new Uint8Array(0);
const OPENING_BRACE = 0x7b;

function counted(tokens: number): number | undefined {
  return tokens < 0 ? undefined : tokens;
}

/** Statuses that a proxy gives itself where no server answers: bad gateway, unavailable, time-out. */
export const PROXY_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

function resultOf(status: number): RequestResult {
  if (PROXY_STATUSES.has(status)) return 'unanswered';
  return status >= 500 ? 'failed' : 'answered';
}

function isKnown(usage: Usage): boolean {
  return usage.promptTokens >= 0 || usage.completionTokens >= 0 || usage.totalTokens >= 0 || usage.cachedTokens >= 0;
}

/**
 * One response, read while it passes: first token, usage, model name, outcome, and the end of the charge. Only the few
 * bytes of a model name that a chunk cuts are held back.
 */
export class ResponsePhase {
  readonly #services: ResponseServices;
  readonly #request: AnsweredRequest;
  /** Whether the answer comes token by token, by the request or by the head of the answer. */
  #streaming = false;
  readonly #contentType: string | undefined;
  #scan = -1;
  #ended = false;
  #bytes = 0;
  #events = 0;
  /** Counts the events with output; undefined = all have some. */
  #deltas: DeltaEvents | undefined;
  #status = 0;
  #outcome: AnswerMeasures['outcome'] = 'completed';
  #firstByteAt: number | undefined;
  #lastEventAt = 0;
  #usage: Usage | undefined;
  readonly #bodyComes: boolean;
  /** Removes the usage from the answer; undefined = it stays. */
  readonly #usageEvents: UsageEvents | undefined;

  constructor(services: ResponseServices, request: AnsweredRequest, head: ResponseHead) {
    this.#services = services;
    this.#request = request;
    this.#status = head.status ?? 0;
    this.#bodyComes = head.bodyComes !== false;
    const dropsUsage = request.dropsUsage === true && this.#bodyComes && head.isEncoded !== true;
    this.#usageEvents = dropsUsage && head.contentType?.includes('event-stream') ? new UsageEvents() : undefined;
    this.#contentType = head.contentType;
    this.#streaming = request.stream || this.#isOfType('text/event-stream');
    this.#judge(head);
    request.trace?.head(head.status, services.now());
    // Without bodies the head is the earliest sign of the first output.
    if (!this.#bodyComes) request.charge?.prefillDone();
  }

  /** Whether the answer's length may change, so that the announced length must not be forwarded. */
  get changesLength(): boolean {
    return this.#renames || this.#usageEvents !== undefined;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Token usage of the answer; undefined before its end. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  get #renames(): boolean {
    const { model, targetModel, answer } = this.#request;
    const hasBoth = model !== '' && targetModel !== '';
    return this.#bodyComes && answer !== undefined && hasBoth && model !== targetModel;
  }

  /**
   * Reads the next bytes of the body and returns the bytes to forward.
   * @param end the body ends here
   * @param at time of their arrival, by `now`
   */
  body(chunk: Uint8Array, end: boolean, at = this.#services.now()): Uint8Array {
    if (chunk.length > 0 && this.#firstByteAt === undefined) this.#firstByte(chunk, at);
    this.#bytes += chunk.length;
    this.#deltas?.feed(chunk);
    const read = this.#scan < 0 ? chunk : this.#services.responses.feed(this.#scan, chunk, end);
    const forward = this.#usageEvents === undefined ? read : this.#usageEvents.feed(read, end);
    // Rewritten bytes belong to the scanner until its next call, and the end of the body calls it again.
    const kept = forward === chunk ? chunk : forward.slice();
    if (this.#scan >= 0 && this.#streaming) this.#countEvents(at);
    else if (chunk.length > 0) this.#hear();
    if (end) this.end(at);
    return kept;
  }

  /** Ends a body with trailers; returns bytes that were held back. */
  trailers(): Uint8Array {
    if (this.#ended) return NO_BYTES;
    // The bytes must be copied to outlive the scan.
    const read = this.#scan < 0 ? NO_BYTES : this.#services.responses.feed(this.#scan, NO_BYTES, true);
    const rest = (this.#usageEvents?.feed(read, true) ?? read).slice();
    this.end();
    return rest;
  }

  /** Records the complete response and releases its charge. Idempotent. @param at time of its end, by `now` */
  end(at = this.#services.now()): void {
    if (this.#ended) return;
    this.#ended = true;
    const { recorder, responses } = this.#services;
    const { series, arrivedAt } = this.#request;
    const usage: Usage =
      this.#scan < 0
        ? { promptTokens: -1, completionTokens: -1, totalTokens: -1, cachedTokens: -1 }
        : responses.usage(this.#scan);
    this.#usage = usage;
    this.#estimateTokens(usage.completionTokens);
    this.#request.charge?.answered?.({
      outcome: this.#outcome,
      streamed: this.#streaming && this.#showsFirstToken(at),
      outputTokens: counted(usage.completionTokens),
      promptTokens: counted(usage.promptTokens),
      cachedTokens: counted(usage.cachedTokens),
    });
    this.#comparePrediction(usage, at);
    this.close();
    if (isKnown(usage)) recorder.tokens(series, usage);
    const { countedPromptTokens } = this.#request;
    if (countedPromptTokens !== undefined && usage.promptTokens > 0) {
      recorder.tokensCounted(countedPromptTokens, usage.promptTokens);
    }
    if (usage.promptTokens > 0 && this.#outcome === 'completed') this.#learnEstimate(usage.promptTokens);
    this.#request.trace?.answered(usage, this.#bytes, at);
    const durationSeconds = (at - arrivedAt) / 1_000;
    if (!this.#streaming && this.#firstByteAt !== undefined) recorder.firstToken(series, false, durationSeconds);
    recorder.responseEnded(series, {
      durationSeconds,
      responseBytes: this.#bytes,
      streaming: this.#streaming,
      usage,
      firstTokenSeconds: this.#firstByteAt === undefined ? undefined : (this.#firstByteAt - arrivedAt) / 1_000,
      status: this.#status,
    });
  }

  /** Whether the time of the first output is that of the first token. */
  #showsFirstToken(at: number): boolean {
    return this.#bodyComes || this.#services.answerBodies?.comeNow(at) !== true;
  }

  /**
   * Counts the tokens of a successful stream without usage from its events with output, of a stream that broke off too:
   * the engine has made them.
   * @param told output tokens as the engine counts them; below 0 = it has not told a count
   */
  #estimateTokens(told: number): void {
    const made = this.#deltas?.count ?? this.#events;
    if (told >= 0 || made === 0 || this.#outcome !== 'completed') return;
    const { series, answer } = this.#request;
    if (answer !== AnswerForm.vertex) this.#services.recorder.estimatedTokens(series, made);
  }

  /** Compares the estimate of the prompt's tokens with those that the engine told, and learns from them. */
  #learnEstimate(told: number): void {
    const { estimated, targetModel, series } = this.#request;
    if (estimated === undefined) return;
    const { ratios, recorder } = this.#services;
    ratios?.note(targetModel, estimated.bytes, told);
    recorder.estimateCompared(series, estimated, told);
  }

  /** Compares the prediction with the observed latency. Only successful answers of the predicted endpoint count. */
  #comparePrediction({ completionTokens }: Usage, end: number): void {
    const { prediction, placedAt, arrivedAt, series } = this.#request;
    if (prediction === undefined || this.#outcome !== 'completed') return;
    const { recorder } = this.#services;
    const begin = placedAt ?? arrivedAt;
    const first = this.#streaming ? this.#firstByteAt : undefined;
    const steps = (completionTokens > 0 ? completionTokens : this.#events) - 1;
    recorder.predicted(series, prediction, {
      firstTokenSeconds: first === undefined ? undefined : (first - begin) / 1_000,
      perTokenSeconds: first === undefined || steps < 1 ? undefined : (end - first) / steps / 1_000,
      durationSeconds: (end - begin) / 1_000,
    });
  }

  /** Releases everything, whether the response is complete or not. Idempotent. */
  close(): void {
    if (!this.#ended && this.#scan >= 0) this.#estimateTokens(-1);
    this.#ended = true;
    if (this.#scan >= 0) this.#services.responses.close(this.#scan);
    this.#scan = -1;
    this.#request.charge?.release();
  }

  #judge(head: ResponseHead): void {
    const { series } = this.#request;
    if (head.status === undefined) return;
    const failed = head.status < 200 || head.status >= 300;
    if (failed) this.#services.recorder.failed(series, 'ModelServerError');
    if (failed) this.#outcome = head.status >= 500 ? 'failed' : 'refused';
    this.#judgeServed(resultOf(head.status), head.served);
  }

  /** @param served endpoint that answered; undefined = the proxy does not tell */
  #judgeServed(result: RequestResult, served: string | undefined): void {
    const { charge, picks } = this.#request;
    const itself = result === 'answered' ? 'answered-itself' : result;
    if (served === undefined || picks === undefined) charge?.outcome(result);
    else if (served === picks[0]?.address) charge?.outcome(itself);
    else {
      // What was known at the decision was known of another endpoint.
      this.#outcome = 'diverted';
      charge?.servedBy(served, picks, itself);
      // Times of another endpoint are no sample of the picked one.
      charge?.expects?.('nothing', undefined);
    }
  }

  #isOfType(type: string): boolean {
    return this.#contentType?.includes(type) ?? false;
  }

  /**
   * Whether the answer is a stream of events. An engine can answer a request for a stream in one JSON document; a head
   * without a type leaves that to the first byte.
   */
  #hasEvents(first: Uint8Array): boolean {
    if (this.#contentType === undefined) return this.#streaming && first[0] !== OPENING_BRACE;
    return this.#streaming && !this.#isOfType('application/json');
  }

  #open(form: AnswerForm, first: Uint8Array): void {
    const { model, targetModel } = this.#request;
    const streaming = this.#hasEvents(first);
    if (streaming) this.#deltas = DeltaEvents.of(form);
    this.#scan = this.#services.responses.open(
      this.#renames ? { streaming, form, renameFrom: targetModel, renameTo: model } : { streaming, form },
    );
  }

  #firstByte(chunk: Uint8Array, at: number): void {
    const { recorder } = this.#services;
    const { series, arrivedAt, charge, answer, trace } = this.#request;
    if (answer !== undefined) this.#open(answer, chunk);
    this.#firstByteAt = at;
    this.#lastEventAt = at;
    charge?.prefillDone();
    trace?.firstByte(at);
    // An answer in one piece shows its first token only at its end (counted as in llm-d-router).
    if (this.#streaming) {
      recorder.firstToken(series, true, (at - arrivedAt) / 1_000);
      this.#services.answerBodies?.came(at);
    }
  }

  /** Counts every data event as one token. The events of one chunk share its time. */
  #countEvents(at: number): void {
    const events = this.#services.responses.events(this.#scan);
    const added = events - this.#events;
    if (added <= 0) return;
    const first = this.#events === 0;
    if (!first) {
      const eachMs = (at - this.#lastEventAt) / added;
      this.#services.recorder.interTokenLatency(this.#request.series, eachMs / 1_000);
      this.#request.charge?.stepped?.(eachMs);
    }
    this.#events = events;
    this.#lastEventAt = at;
    this.#request.charge?.grow(events);
    this.#hear();
  }

  /**
   * Notes output of the charged endpoint. Its head is none: servers send it before the engine has begun; nor is a
   * proxy's error.
   */
  #hear(): void {
    if (this.#outcome === 'completed') this.#request.charge?.heard?.();
  }
}
