import { randomUUID } from 'node:crypto';
import type { QueueOutcome } from '../admission/flow/queue-contract.js';
import { queueRejection } from '../admission/queue-outcomes.js';
import type { Grant, Waiter, WaitResult } from '../admission/waiting-line.js';
import type { PromptTokens } from '../core/token-chain.js';
import { AnswerForm } from '../core/types.js';
import { requestPath } from '../request/control-headers.js';
import { writeModel } from '../request/model-edit.js';
import { bodyTooLarge, overloaded } from '../request/rejections.js';
import { CHUNK_OVERHEAD_BYTES, RequestBody } from '../request/request-body.js';
import type { Tokenised } from '../request/tokens/token-source.js';
import { type UnderstoodRequest, understand, understandOpaque } from '../request/understand.js';
import { type AnsweredRequest, ResponsePhase } from '../response/response-phase.js';
import type { EndpointPredictions, Placement, Rejection } from '../scheduling/types.js';
import type { DestinationTemplates } from './codec/destination.js';
import { encodeMetadata } from './codec/dynamic-metadata.js';
import { type HeaderMap, NO_HEADERS } from './codec/header-map.js';
import { decodeProcessRequest, Phase, type ProcessMessage } from './codec/process-request.js';
import { encodeBodyReplies, encodeTrailersReply, Reply } from './codec/process-response.js';
import { MalformedMessage } from './codec/wire.js';
import { type DecisionInput, decide, scheduleInput } from './decision.js';
import { QueuedRequest } from './queued-request.js';
import { destinationOf, placedReply, rejectionReply, responseHeadReply } from './replies.js';
import { identify, type KnownRequester } from './requester.js';
import type { LatencyAnswer, StreamServices } from './stream-services.js';
import type { ProcessHandler, ProcessStream } from './transport.js';
import type { GatedWork, WorkGate } from './work-gate.js';

/** gRPC status codes that a stream ends with. */
const GRPC_INVALID_ARGUMENT = 3;
const GRPC_INTERNAL = 13;

/** What all streams of a shard count together. */
export interface SharedLoad {
  openStreams: number;
  bufferedBytes: number;
  /** Streams over the bound that have sent nothing yet, so that they could not be answered. */
  silentStreams: number;
}

/** What one shard gives to each of its streams. */
export interface StreamContext {
  readonly services: StreamServices;
  readonly load: SharedLoad;
  readonly gate: WorkGate;
  readonly templates: DestinationTemplates;
}

/** The message that ended the request. */
type EndOfRequest = 'headers' | 'body' | 'trailers';

/** The order of one exchange. A response may come in any state before `finished`. */
type State =
  /** Nothing has come yet. */
  | 'opened'
  /** The first message waits for its turn, and so does what comes behind it. */
  | 'waiting'
  /** The body of the request is coming; nothing has been answered. */
  | 'request body'
  /** The request is complete and waits for an endpoint with room. */
  | 'queued'
  /** The body has ended; the tokens of its prompt are being found. */
  | 'tokenising'
  /** The request is understood, and a plugin lets it wait for others. */
  | 'held'
  /** The latency of the endpoints is being predicted elsewhere. */
  | 'predicting'
  /** The request has its destination. */
  | 'request answered'
  | 'response body'
  /** The response has ended; messages behind it mean nothing. */
  | 'response ended'
  /** We ended the stream. */
  | 'finished';

/**
 * One ext_proc stream: one HTTP exchange. Holds the request until its body has ended, answers it once, then watches
 * the response pass. Whatever way the stream ends, its charge is released exactly once.
 */
export class ExchangeStream implements ProcessHandler, GatedWork, Waiter {
  readonly #context: StreamContext;
  readonly #stream: ProcessStream;
  readonly #openedAt: number;
  /** Counted in the shard's open streams; a stream over the bound is not. */
  readonly #refused: boolean;
  /** Counted in the shard's silent streams. */
  #silent: boolean;
  #state: State = 'opened';
  #closeCode = 'OK';
  #backlog: ProcessMessage[] = [];
  #halfClosed = false;
  /** Bytes that this stream has in the shard's count. */
  #buffered = 0;
  #headers: HeaderMap = NO_HEADERS;
  #subset: readonly string[] | undefined;
  #body: RequestBody | undefined;
  #identified: KnownRequester | undefined;
  #understood: UnderstoodRequest | undefined;
  /** Ends the search for the prompt's tokens. */
  #tokenising: AbortController | undefined;
  /** Ends the wait for predictions. */
  #predicting: AbortController | undefined;
  #placement: Placement | undefined;
  #endedBy: EndOfRequest = 'headers';
  #queued: QueuedRequest | undefined;
  #placedAt: number | undefined;
  #tokens: PromptTokens | undefined;
  /** Prediction servers were asked, and what they said. */
  #asked = false;
  #predictions: EndpointPredictions | undefined;
  #series = -1;
  #running = false;
  #response: ResponsePhase | undefined;
  #requestMs = 0;
  #responseMs = 0;

  /** @param refused the shard has too many streams: the first message is answered with a 503 */
  constructor(context: StreamContext, stream: ProcessStream, refused: boolean) {
    this.#context = context;
    this.#stream = stream;
    this.#refused = refused;
    this.#silent = refused;
    this.#openedAt = context.services.now();
    if (refused) context.load.silentStreams++;
    else context.load.openStreams++;
    context.services.recorder.streamOpened();
  }

  message(bytes: Uint8Array): void {
    if (this.#state === 'finished') return;
    try {
      this.#receive(decodeProcessRequest(bytes));
    } catch (error) {
      this.#broken(error);
    }
  }

  /** The turn of a stream that had to wait. */
  begin(): void {
    if (this.#state !== 'waiting') return;
    this.#state = 'opened';
    const backlog = this.#backlog;
    this.#backlog = [];
    this.#hold(0);
    try {
      for (const message of backlog) if (!this.#isFinished) this.#handle(message);
    } catch (error) {
      this.#broken(error);
    }
    if (this.#halfClosed) this.#finish();
  }

  halfClosed(): void {
    this.#halfClosed = true;
    // A stream that waits still gets its answer: a client may half-close right behind its messages.
    if (this.#state !== 'waiting' && !this.#isPrepared) this.#finish();
  }

  closed(cancelled: boolean): void {
    const { services, load } = this.#context;
    this.#abandonQueue();
    if (cancelled && this.#closeCode === 'OK') this.#closeCode = 'Canceled';
    this.#state = 'finished';
    this.#release();
    if (!this.#refused) load.openStreams--;
    services.recorder.streamClosed(this.#closeCode, (services.now() - this.#openedAt) / 1_000);
  }

  get #isFinished(): boolean {
    return this.#state === 'finished';
  }

  /** Whatever goes wrong ends this stream and no other. */
  #broken(error: unknown) {
    if (error instanceof MalformedMessage) return this.#fail(`malformed ProcessingRequest: ${error.message}`);
    this.#context.services.log.error({ err: error }, 'a stream failed');
    this.#closeCode = 'Internal';
    this.#finishWith(() => this.#stream.fail(GRPC_INTERNAL, 'internal error'));
  }

  #receive(message: ProcessMessage) {
    if (this.#state === 'waiting') return this.#wait(message);
    if (this.#state !== 'opened') return this.#handle(message);
    if (this.#refused) return this.#turnAway('too many streams');
    switch (this.#context.gate.enter(this)) {
      case 'now':
        return this.#handle(message);
      case 'later':
        this.#state = 'waiting';
        return this.#wait(message);
      case 'refused':
        return this.#turnAway('too many new requests');
    }
  }

  /** Keep a message until the stream's turn has come. */
  #wait(message: ProcessMessage): void {
    this.#backlog.push(message);
    const bytes = this.#buffered + message.body.length + message.headers.count * 64 + CHUNK_OVERHEAD_BYTES;
    if (!this.#hold(bytes)) this.#turnAway('too many request bytes are held');
  }

  #handle(message: ProcessMessage) {
    switch (message.phase) {
      case Phase.requestHeaders:
      case Phase.requestBody:
      case Phase.requestTrailers:
        return this.#request(message);
      case Phase.responseHeaders:
      case Phase.responseBody:
      case Phase.responseTrailers:
        return this.#respond(message);
      case Phase.none:
        // A kind of message that came to the protocol after this was written.
        return;
    }
  }

  // The request phase.

  /** One message of the request; the time that the picker itself spends on them is recorded with its answer. */
  #request(message: ProcessMessage): void {
    const { now, recorder } = this.#context.services;
    const wasOpen = this.#awaitsAnswer;
    const startedAt = now();
    if (message.phase === Phase.requestHeaders) this.#requestHeaders(message);
    else if (message.phase === Phase.requestBody) this.#requestBody(message);
    else this.#requestTrailers(message);
    this.#requestMs += now() - startedAt;
    if (wasOpen && !this.#awaitsAnswer) recorder.processing('request', this.#requestMs / 1_000);
  }

  get #awaitsAnswer(): boolean {
    return this.#state === 'opened' || this.#state === 'request body' || this.#isPrepared;
  }

  /** The request has come whole, and others are at work on it. */
  get #isPrepared(): boolean {
    return this.#state === 'tokenising' || this.#state === 'held' || this.#state === 'predicting';
  }

  #requestHeaders(message: ProcessMessage) {
    if (this.#state !== 'opened') return this.#fail('request headers came twice or too late');
    this.#headers = message.headers;
    this.#subset = message.subset;
    if (message.endOfStream) {
      this.#understood = understandOpaque(this.#requester);
      return this.#place('headers');
    }
    const { services } = this.#context;
    const path = requestPath(message.headers);
    const dialect = services.dialects.find(path);
    if ('kind' in dialect) return this.#reject(dialect);
    const limit = services.limits.maxRequestBodyBytes;
    const announced = Number(message.headers.get('content-length'));
    if (announced > limit) return this.#reject(bodyTooLarge(announced, limit));
    this.#body = new RequestBody(dialect, services.scanner, services.blockBytes(), limit);
    this.#state = 'request body';
  }

  #requestBody(message: ProcessMessage) {
    if (this.#state === 'opened') return this.#fail('a request body came before its headers');
    const body = this.#body;
    if (this.#state !== 'request body' || body === undefined) return;
    if (message.subset !== undefined) this.#subset = message.subset;
    const refused = body.append(message.body);
    if (refused !== undefined) return this.#reject(refused);
    if (!this.#hold(body.heldBytes)) return this.#turnAway('too many request bytes are held');
    if (message.endOfStream) this.#understandBody(body, 'body');
  }

  /** Trailers end a body whose last chunk did not; behind a finished body they mean nothing. */
  #requestTrailers(message: ProcessMessage) {
    if (this.#state === 'opened') return this.#fail('request trailers came before the headers');
    const body = this.#body;
    if (this.#state !== 'request body' || body === undefined) return;
    if (message.subset !== undefined) this.#subset = message.subset;
    this.#understandBody(body, 'trailers');
  }

  #understandBody(body: RequestBody, endedBy: EndOfRequest) {
    const { services } = this.#context;
    const requester = this.#requester;
    const scan = body.finish();
    if (scan === undefined) {
      this.#understood = understandOpaque(requester);
    } else if ('kind' in scan) {
      return this.#reject(scan);
    } else {
      const { rules, random } = services;
      const understood = understand(scan, body.dialect, this.#headers, requester, rules, random);
      if (understood.kind === 'rejected') return this.#reject(understood);
      this.#understood = understood;
    }
    if (!this.#tokenise(body, endedBy)) this.#placeOrHold(endedBy);
  }

  /** Ask for the tokens of the prompt, where somebody can tell them. @returns whether the request waits for them */
  #tokenise(body: RequestBody, endedBy: EndOfRequest): boolean {
    const { tokens } = this.#context.services;
    const { prompt } = body.dialect;
    const { modelPlace } = this.#understood!;
    if (tokens === undefined || prompt === undefined || modelPlace === undefined || !tokens.reads(prompt)) return false;
    this.#state = 'tokenising';
    const waiting = new AbortController();
    this.#tokenising = waiting;
    tokens
      .tokenise({ prompt, chunks: body.chunks, modelPlace }, waiting.signal)
      .then((tokenised) => this.#tokenised(tokenised, endedBy));
    return true;
  }

  /** The tokens have come, or will not come: decide. */
  #tokenised(tokenised: Tokenised, endedBy: EndOfRequest): void {
    if (this.#state !== 'tokenising') return;
    this.#tokenising = undefined;
    this.#context.services.recorder.tokenised(tokenised.outcome);
    this.#goOn(() => {
      this.#tokens = tokenised.outcome === 'tokenised' ? tokenised.tokens : undefined;
      this.#placeOrHold(endedBy);
    });
  }

  /** Decide, unless a plugin lets the request wait for others. */
  #placeOrHold(endedBy: EndOfRequest): void {
    const { services } = this.#context;
    const { hosted } = this.#requester;
    const { model, targetModel, promptBytes, media } = this.#understood!;
    const subset = services.ignoreSubset ? undefined : this.#subset;
    const input = { scan: this.#body?.scan ?? -1, model, targetModel, promptBytes, media, subset };
    const wait = hosted === undefined ? undefined : services.plugins?.hold(hosted, input);
    if (wait === undefined) {
      this.#place(endedBy);
      return;
    }
    this.#state = 'held';
    wait.then(() => {
      if (this.#state === 'held') this.#goOn(() => this.#place(endedBy));
    });
  }

  /** What the request waited for has come: go on with it. */
  #goOn(work: () => void): void {
    const { now, recorder } = this.#context.services;
    const startedAt = now();
    try {
      work();
    } catch (error) {
      this.#broken(error);
    }
    this.#requestMs += now() - startedAt;
    if (this.#isPrepared) return;
    recorder.processing('request', this.#requestMs / 1_000);
    if (this.#halfClosed) this.#finish();
  }

  /** Ask prediction servers, where there are any, once. @returns whether the request waits for them */
  #predict(endedBy: EndOfRequest): boolean {
    const { latency, ignoreSubset } = this.#context.services;
    if (latency === undefined || this.#asked) return false;
    this.#asked = true;
    this.#state = 'predicting';
    const waiting = new AbortController();
    this.#predicting = waiting;
    const input = scheduleInput(this.#decisionInput(), ignoreSubset ? undefined : this.#subset);
    latency.predict(input, waiting.signal).then((answer) => this.#predicted(answer, endedBy));
    return true;
  }

  /** Predictions have come, or will not come: decide. */
  #predicted(answer: LatencyAnswer, endedBy: EndOfRequest): void {
    if (this.#state !== 'predicting') return;
    this.#predicting = undefined;
    this.#predictions = answer.predictions;
    this.#goOn(() => this.#place(endedBy));
  }

  #decisionInput(): DecisionInput {
    const { hosted } = this.#requester;
    const [tokens, predictions, subset] = [this.#tokens, this.#predictions, this.#subset];
    const scan = this.#body?.scan ?? -1;
    return { request: this.#understood!, headers: this.#headers, scan, tokens, predictions, subset, hosted };
  }

  /** The request is complete: decide and answer it. */
  #place(endedBy: EndOfRequest, grant?: Grant) {
    if (this.#predict(endedBy)) return;
    const { services } = this.#context;
    const request = this.#understood!;
    this.#endedBy = endedBy;
    this.#series = this.#seriesOf(request);
    const outcome = decide(services, { ...this.#decisionInput(), grant });
    if (outcome.kind === 'parked') return this.#enqueue(request, grant);
    this.#passedQueue(outcome);
    if (outcome.kind === 'rejected') return this.#reject(outcome);
    this.#placement = outcome;
    this.#placedAt = services.now();
    const { recorder } = services;
    if (request.rewriteRule !== undefined) {
      recorder.rewritten(request.rewriteRule, request.model, request.targetModel);
    }
    recorder.routed(this.#series, this.#body?.bytes ?? 0);
    recorder.running(this.#series, 1);
    this.#running = true;
    this.#answer(request, outcome, endedBy);
    this.#letGoOfBody();
    this.#state = 'request answered';
    if (this.#body?.dialect.skipsResponse) this.#finish();
  }

  /** Nobody has room: hold the request until somebody has. */
  #enqueue(request: UnderstoodRequest, grant: Grant | undefined): void {
    const { line, recorder } = this.#context.services;
    const bytes = this.#body?.bytes ?? 0;
    this.#queued ??= new QueuedRequest(line!, this.#headers, bytes);
    this.#state = 'queued';
    this.#queued.join(request, grant, this);
    recorder.queued(this.#series, 1, bytes);
  }

  /** The wait is over: the request has a place to go to, or none to wait for. */
  proceed(result: WaitResult): void {
    if (this.#state !== 'queued') return;
    this.#queued!.over(result);
    this.#leaveQueue();
    // A grant counts when it could be used.
    if (result.kind !== 'granted') this.#countWait(result.outcome);
    this.#state = 'request body';
    try {
      if (result.kind === 'granted') this.#place(this.#endedBy, result.grant);
      else this.#reject(queueRejection(result.outcome, result.retryAfterSeconds));
    } catch (error) {
      this.#broken(error);
    }
  }

  #leaveQueue(): void {
    this.#context.services.recorder.queued(this.#series, -1, this.#body?.bytes ?? 0);
  }

  #countWait(outcome: QueueOutcome): void {
    this.#context.services.recorder.queueLeft(this.#series, outcome, (this.#queued?.waitedMs ?? 0) / 1_000);
  }

  /** Flow control, if it is on, has let a request go on, after a wait or without one, or could not even let it wait. */
  #passedQueue(outcome: Placement | Rejection): void {
    const { line, recorder } = this.#context.services;
    if (line === undefined) return;
    const unparked = outcome.kind === 'rejected' && outcome.unparked === true;
    if (unparked) recorder.unparked(this.#series);
    this.#countWait(unparked ? 'RejectedCapacity' : 'Dispatched');
  }

  /** The client went away while its request waited. */
  #abandonQueue(): void {
    if (this.#state !== 'queued') return;
    this.#queued!.leave();
    this.#leaveQueue();
    this.#countWait('EvictedContextCancelled');
  }

  /** Header reply, body replies, trailers reply: whatever is owed, in this order and in one go. */
  #answer(request: UnderstoodRequest, placement: Placement, endedBy: EndOfRequest) {
    const { services, templates } = this.#context;
    const received = this.#body?.chunks ?? [];
    const chunks = request.edit === undefined ? received : writeModel(received, request.edit, request.targetModel);
    let contentLength = 0;
    for (const chunk of chunks) contentLength += chunk.length;
    const generatedRequestId = this.#headers.get('x-request-id') === undefined ? randomUUID() : undefined;
    const details = { contentLength, generatedRequestId, emitScores: services.emitScores };
    this.#stream.send(placedReply(templates, placement, this.#headers, details));
    if (endedBy === 'headers') return;
    if (endedBy === 'body') return encodeBodyReplies(Reply.requestBody, chunks, true, this.#stream);
    if (contentLength > 0) encodeBodyReplies(Reply.requestBody, chunks, false, this.#stream);
    this.#stream.send(encodeTrailersReply(Reply.requestTrailers));
  }

  /** Answer the request with an error; the exchange is over. */
  #reject(rejection: Rejection): void {
    if (this.#series < 0) this.#series = this.#seriesOf(this.#understood);
    this.#context.services.recorder.failed(this.#series, rejection.code);
    this.#sendRejection(rejection);
  }

  /** The picker has too much to do. */
  #turnAway(why: string): void {
    this.#context.services.recorder.overloaded();
    this.#sendRejection(overloaded(why));
  }

  #sendRejection(rejection: Rejection): void {
    this.#stream.send(rejectionReply(rejection, this.#queued?.answerHeaders));
    this.#finish();
  }

  /** Who asks; header processors run once. */
  get #requester(): KnownRequester {
    this.#identified ??= identify(this.#context.services, this.#headers);
    return this.#identified;
  }

  #seriesOf(request: UnderstoodRequest | undefined): number {
    const { services } = this.#context;
    const requester = request ?? this.#requester;
    return services.recorder.series({
      model: request?.model ?? '',
      target: request?.targetModel ?? '',
      fairness: requester.fairnessId,
      priority: requester.priority,
    });
  }

  // The response phase.

  /** One message of the response; the time that the picker itself spends on them is recorded at its end. */
  #respond(message: ProcessMessage): void {
    const { now, recorder } = this.#context.services;
    const before = this.#state;
    const startedAt = now();
    if (message.phase === Phase.responseHeaders) this.#responseHeaders(message);
    else if (message.phase === Phase.responseBody) this.#responseBody(message);
    else this.#responseTrailers();
    this.#responseMs += now() - startedAt;
    if (before !== 'response ended' && this.#state === 'response ended') {
      recorder.processing('response', this.#responseMs / 1_000);
    }
  }

  #responseHeaders(message: ProcessMessage) {
    if (this.#response !== undefined) return this.#fail('response headers came twice');
    // A proxy that answers before the body has ended (a timeout, another filter) wants no destination any more.
    this.#abandonQueue();
    this.#letGoOfBody();
    const { headers } = message;
    const status = Number(headers.get(':status') ?? headers.get('status'));
    const response = new ResponsePhase(this.#context.services, this.#answeredRequest(), {
      status: Number.isInteger(status) ? status : undefined,
      contentType: headers.get('content-type'),
      served: message.served,
    });
    this.#response = response;
    this.#state = message.endOfStream ? 'response ended' : 'response body';
    if (message.endOfStream) response.end();
    const changesLength = response.changesLength && !message.endOfStream;
    this.#stream.send(responseHeadReply(changesLength, this.#addedHeaders(message, status)));
  }

  /** Headers that plugins add to the answer. */
  #addedHeaders({ headers, served }: ProcessMessage, status: number): ReadonlyMap<string, string> | undefined {
    const { plugins } = this.#context.services;
    const hosted = this.#identified?.hosted;
    const placement = this.#placement;
    const wait = this.#queued?.answerHeaders;
    if (plugins === undefined || hosted === undefined || placement === undefined) return wait;
    const head = { status: Number.isInteger(status) ? status : undefined, headers, served };
    const added = plugins.responseHeaders(hosted, placement, head);
    return wait === undefined ? added : new Map([...wait, ...(added ?? [])]);
  }

  /** What reporters say about the finished answer. */
  #reported(response: ResponsePhase): Buffer | undefined {
    const { plugins } = this.#context.services;
    const hosted = this.#identified?.hosted;
    const { usage } = response;
    if (plugins === undefined || hosted === undefined || usage === undefined) return undefined;
    return encodeMetadata(plugins.report(hosted, usage));
  }

  #answeredRequest(): AnsweredRequest {
    const { services } = this.#context;
    if (this.#series < 0) {
      this.#series =
        this.#headers === NO_HEADERS
          ? services.recorder.series({ model: '', target: '', fairness: '', priority: 0 })
          : this.#seriesOf(this.#understood);
    }
    const request = this.#understood;
    const placement = this.#placement;
    return {
      series: this.#series,
      arrivedAt: this.#openedAt,
      model: request?.model ?? '',
      targetModel: request?.targetModel ?? '',
      stream: request?.stream ?? false,
      answer: this.#answerForm,
      destination: placement === undefined ? undefined : destinationOf(placement),
      charge: placement?.charge,
      placedAt: this.#placedAt,
      prediction: placement?.prediction,
    };
  }

  /** How the answer is read. Without a request phase nothing says that it is not one of the usual ones. */
  get #answerForm(): AnswerForm | undefined {
    if (this.#body !== undefined) return this.#body.dialect.answer;
    return this.#headers === NO_HEADERS ? AnswerForm.usage : undefined;
  }

  #responseBody(message: ProcessMessage) {
    const response = this.#response;
    if (response === undefined) return this.#fail('a response body came before its headers');
    if (response.ended) return;
    const forward = response.body(message.body, message.endOfStream);
    if (message.endOfStream) this.#state = 'response ended';
    const metadata = message.endOfStream ? this.#reported(response) : undefined;
    encodeBodyReplies(Reply.responseBody, [forward], message.endOfStream, this.#stream, metadata);
  }

  #responseTrailers() {
    const response = this.#response;
    if (response === undefined) return this.#fail('response trailers came before the headers');
    if (response.ended) return;
    const rest = response.trailers();
    this.#state = 'response ended';
    if (rest.length > 0) {
      encodeBodyReplies(Reply.responseBody, [rest], false, this.#stream);
    }
    this.#stream.send(encodeTrailersReply(Reply.responseTrailers, this.#reported(response)));
  }

  // The end.

  /** Set this stream's share of the shard's held bytes; false when the shard holds too much. */
  #hold(bytes: number): boolean {
    const { load, services } = this.#context;
    load.bufferedBytes += bytes - this.#buffered;
    this.#buffered = bytes;
    return load.bufferedBytes <= services.limits.maxBufferedBytes;
  }

  #letGoOfBody(): void {
    this.#tokenising?.abort();
    this.#tokenising = undefined;
    this.#predicting?.abort();
    this.#predicting = undefined;
    this.#body?.close();
    this.#hold(0);
  }

  /** The peer broke the protocol. */
  #fail(why: string): void {
    this.#closeCode = 'InvalidArgument';
    this.#finishWith(() => this.#stream.fail(GRPC_INVALID_ARGUMENT, why));
  }

  #finish(): void {
    this.#finishWith(() => this.#stream.end());
  }

  /** Release first: when the proxy hears of the end, nothing is held any more. */
  #finishWith(end: () => void): void {
    if (this.#state === 'finished') return;
    this.#abandonQueue();
    this.#state = 'finished';
    this.#release();
    end();
  }

  #release(): void {
    if (this.#silent) this.#context.load.silentStreams--;
    this.#silent = false;
    this.#backlog = [];
    this.#letGoOfBody();
    this.#response?.close();
    this.#placement?.charge.release();
    if (this.#running) this.#context.services.recorder.running(this.#series, -1);
    this.#running = false;
  }
}
