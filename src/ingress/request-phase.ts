import type { PromptTokens } from '../core/token-chain.js';
import { AnswerForm } from '../core/types.js';
import { queueRejection } from '../flow-control/queue-outcomes.js';
import type { Dispatch, WaitResult } from '../flow-control/waiting-line.js';
import type { RequestBody } from '../request/request-body.js';
import type { UnderstoodRequest } from '../request/understand.js';
import type { AnsweredRequest } from '../response/response-phase.js';
import type { Placement, Rejection } from '../scheduling/decision.js';
import type { AnswerHead } from '../scheduling/hooks/header-edits.js';
import type { HookRequestRecord } from '../scheduling/hooks/hook-request-record.js';
import type { LocalAnswer } from '../scheduling/hooks/hooks.js';
import type { EndpointPredictions } from '../scheduling/latency-outlook.js';
import { NO_HEADERS } from './codec/header-map.js';
import { Phase, type ProcessMessage } from './codec/process-request.js';
import { encodeTrailersReply, REQUEST_HEADERS_CONTINUE, Reply } from './codec/process-response.js';
import { type DecisionInput, decide, expectAnswer, scheduleInput } from './decision.js';
import { engineAsks } from './engine-edits.js';
import type { Exchange, StreamContext, StreamServices } from './exchange.js';
import { poolOfHead, poolOfModel } from './pool-choice.js';
import { QueuedRequest } from './queued-request.js';
import { answerPlaced, evictionReply, localReply, rejectionReply } from './replies.js';
import { RequestObserver } from './request-observer.js';
import { RequestReader } from './request-reader.js';
import { isReservation, refusedReservation, reservationReply } from './reservation.js';
import { serverName } from './server-name.js';
import type { TracedEnd } from './tracing/trace-record.js';

type State =
  /** The request is coming; nothing has been answered. */
  | 'reading'
  /** The request is complete; its preparation is under way. */
  | 'preparing'
  /** The request waits for an endpoint with room. */
  | 'queued'
  /** The request is answered, or its stream has ended. */
  | 'over';

/**
 * The request half of an exchange, a state machine: read until it is complete, prepared, placed, and answered once. Its
 * charge or dispatch lasts until `release`. Its observer is told every step.
 */
export class RequestPhase {
  readonly #exchange: Exchange;
  readonly #reader: RequestReader;
  readonly #observer: RequestObserver;
  #state: State = 'reading';
  #understood: UnderstoodRequest | undefined;
  /** Ends what the request is being prepared with; every preparation has its own. */
  #preparing: AbortController | undefined;
  #tokens: PromptTokens | undefined;
  #predictions: EndpointPredictions | undefined;
  #queued: QueuedRequest | undefined;
  #placement: Placement | undefined;
  /** The plugins know that the placed request is over. */
  #isEnded = false;
  /** The picker asks for the usage, and the client does not. */
  #asksUsage = false;
  /** Ends the request's place among those that may be ended for others; undefined = it has none. */
  #unevictable: (() => void) | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
    this.#reader = new RequestReader(exchange.context.services);
    this.#observer = new RequestObserver(exchange, this.#reader);
  }

  /** Takes one message of the request; the time that the picker itself spends on them is recorded with its answer. */
  message(message: ProcessMessage): void {
    const wasOpen = this.#awaitsAnswer;
    const startedAt = this.#exchange.context.services.recent();
    this.#read(message);
    this.#observer.worked(startedAt, wasOpen && !this.#awaitsAnswer);
  }

  /** Whether the request is complete, and others are at work on it. */
  get isPrepared(): boolean {
    return this.#state === 'preparing';
  }

  /** Whether the request is not complete. */
  get isArriving(): boolean {
    return this.#state === 'reading';
  }

  /** The request in the form for hook plugins; undefined = there are none, or its sender is not resolved so far. */
  get hookRequest(): HookRequestRecord | undefined {
    return this.#reader.known?.hookRequest;
  }

  /** Ends a request whose answer is not wanted any more: it leaves the queue and its body is freed. Idempotent. */
  giveUp(): void {
    if (this.#state === 'queued') {
      this.#queued!.leave();
      this.#observer.abandoned();
    }
    this.#close();
  }

  /** Releases what the request holds on its endpoint. Idempotent. */
  release(): void {
    if (this.#placement !== undefined) this.#endPlaced(this.#placement);
    this.#unevictable?.();
    this.#unevictable = undefined;
    this.#observer.released();
  }

  #endPlaced({ charge }: Placement): void {
    charge.release();
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { hookRequest } = this;
    if (hookRequest !== undefined) this.#exchange.context.services.plugins?.ended(hookRequest);
  }

  /** Ends the trace of the request. Idempotent. @param end undefined = as the request itself has ended */
  endTrace(end: TracedEnd | undefined): void {
    this.#observer.ended(end);
  }

  /** Evicts the request for one of a higher band: its client is told, and its flow's tokens are released. */
  evictRequest(): void {
    this.#observer.evicted();
    this.#placement?.charge.evicted?.();
    this.#exchange.stream.send(evictionReply());
    this.#exchange.finish();
  }

  // Reading.

  #read(message: ProcessMessage) {
    // A proxy that sends no body may send trailers: they are passed on.
    if (message.phase === Phase.requestTrailers && this.#reader.passesTrailers) {
      return this.#exchange.stream.send(encodeTrailersReply(Reply.requestTrailers));
    }
    const refused = this.#enter(poolOfHead(this.#exchange.context.pools, message, this.#reader));
    if (refused !== undefined) return this.#reject(refused);
    const reading = this.#reader.read(message);
    if (reading !== 'more' && reading !== 'complete') {
      return reading.kind === 'fault' ? this.#exchange.fail(reading.why) : this.#reject(reading);
    }
    if (this.#state !== 'reading') return;
    const { body } = this.#reader;
    if (message.phase === Phase.requestBody && !this.#exchange.hold(body!.heldBytes)) {
      return this.#exchange.turnAway('too many request bytes are held');
    }
    if (reading === 'complete') this.#complete();
    // The proxy keeps the body until the head has its reply.
    else if (this.#reader.isBuffered) this.#exchange.stream.send(REQUEST_HEADERS_CONTINUE);
  }

  /** Goes on in the pool that is chosen. @param chosen undefined = the request stays where it is */
  #enter(chosen: StreamContext | Rejection | undefined): Rejection | undefined {
    if (chosen === undefined || 'kind' in chosen) return chosen;
    this.#exchange.enter(chosen);
    this.#observer.moved(chosen.services);
    return this.#reader.move(chosen.services);
  }

  #complete() {
    const refused = this.#enter(poolOfModel(this.#exchange.context.pools, this.#reader));
    if (refused !== undefined) return this.#reject(refused);
    this.#understand();
  }

  #understand() {
    const local = this.#answerOfPlugin();
    if (local?.kind === 'rejected') return this.#reject(local);
    if (local !== undefined) return this.#answerLocally(local);
    const understood = this.#reader.understand();
    if (understood.kind === 'rejected') return this.#reject(understood);
    this.#understood = understood;
    this.#observer.understood(understood);
    // A request without a body or trailers has nothing for a tokeniser or a plugin.
    if (this.#reader.body === undefined) this.#predict();
    else this.#tokenise();
  }

  /** Answer of a plugin in place of a model server; undefined = the request goes on. */
  #answerOfPlugin(): LocalAnswer | Rejection | undefined {
    const { plugins } = this.#exchange.context.services;
    const { body, headers, path } = this.#reader;
    if (plugins === undefined || body !== undefined) return undefined;
    return plugins.respond({ method: headers.get(':method') ?? '', path: path.split('?', 1)[0]! });
  }

  /** Answers a request that no model server gets. */
  #answerLocally(answer: LocalAnswer): void {
    this.#exchange.stream.send(localReply(answer));
    this.#close();
    this.#exchange.finish();
    this.#reader.forget();
  }

  // Preparation, in order: tokenise, plugin hold, latency prediction.

  #tokenise() {
    const { services } = this.#exchange.context;
    const answer = askForTokens(services, this.#reader.body!, this.#understood!, this);
    if (answer === undefined) return this.#holdBack();
    this.#prepare(answer, (tokens) => {
      this.#tokens = tokens;
      this.#holdBack();
    });
  }

  #holdBack() {
    const { plugins, decide } = this.#exchange.context.services;
    const { hookRequest } = this.#reader.requester;
    if (plugins === undefined || hookRequest === undefined) return this.#predict();
    const { model, targetModel, promptBytes, media } = this.#understood!;
    const subset = decide.ignoreSubset ? undefined : this.#reader.subset;
    const input = { scan: this.#reader.body?.scan ?? -1, model, targetModel, promptBytes, media, subset };
    const wait = plugins.hold(hookRequest, input);
    if (wait === undefined) return this.#predict();
    this.begin();
    this.#prepare(wait, () => this.#predict());
  }

  #predict() {
    const { latency, decide } = this.#exchange.context.services;
    if (latency === undefined) return this.#place();
    const input = this.#decisionInput();
    const asked = scheduleInput(input, decide.ignoreSubset ? undefined : input.subset);
    this.#prepare(latency.predict(asked, this.begin()), ({ predictions }) => {
      this.#predictions = predictions;
      this.#place();
    });
  }

  /** Begins a preparation. @returns the signal that ends it */
  begin(): AbortSignal {
    this.#preparing = new AbortController();
    this.#state = 'preparing';
    return this.#preparing.signal;
  }

  /** Continues with the result of the preparation under way, unless it is aborted. */
  #prepare<Found>(answer: Promise<Found>, next: (found: Found) => void): void {
    const mine = this.#preparing;
    answer.then((found) => {
      if (this.#preparing === mine) this.#resume(() => next(found));
    });
  }

  /** Continues a request whose preparation is complete. */
  #resume(work: () => void): void {
    const startedAt = this.#exchange.context.services.now();
    this.#observer.prepared(startedAt);
    this.#preparing = undefined;
    this.#state = 'reading';
    try {
      work();
    } catch (error) {
      this.#exchange.broken(error);
    }
    this.#observer.worked(startedAt, !this.#awaitsAnswer);
    if (this.isPrepared) return;
    if (this.#exchange.isHalfClosed) this.#exchange.finish();
  }

  // Placing.

  #decisionInput(dispatch?: Dispatch): DecisionInput {
    const { headers, path, body, subset, requester } = this.#reader;
    const [tokens, predictions] = [this.#tokens, this.#predictions];
    const { hookRequest } = requester;
    const bodyBytes = body?.bytes ?? 0;
    const scan = body?.scan ?? -1;
    return {
      request: this.#understood!,
      headers,
      path,
      scan,
      bodyBytes,
      tokens,
      predictions,
      subset,
      hookRequest,
      dispatch,
    };
  }

  /** Decides the prepared request and answers it. */
  #place(dispatch?: Dispatch) {
    const { services } = this.#exchange.context;
    const request = this.#understood!;
    const reserves = isReservation(this.#reader.headers, services.settings.current.reserves);
    if (reserves) {
      const refused = refusedReservation(this.#reader.body !== undefined);
      if (refused !== undefined) return this.#reject(refused);
    }
    this.#observer.deciding(request);
    const outcome = decide(services, this.#decisionInput(dispatch));
    this.#observer.decided(this.#queued);
    if (outcome.kind === 'waiting') return this.#enqueue(request, dispatch);
    this.#observer.passed(outcome, this.#queued);
    if (outcome.kind === 'rejected') return this.#reject(outcome);
    this.#placement = outcome;
    if (reserves) return this.#answerReservation(request, outcome);
    if (!this.#canEcho()) return this.#exchange.turnAway('too many bytes of one connection are held');
    this.#observer.placed(request, outcome);
    expectAnswer(request, outcome, this.#exchange.responseBodyMode);
    this.#makeEvictable(outcome);
    const { generatedId: generatedRequestId, traceParent } = this.#observer;
    const asks = engineAsks(this.#exchange, this.#reader, request, outcome);
    this.#asksUsage = asks.usage !== undefined;
    const added = { generatedRequestId, traceParent };
    const bytes = answerPlaced(this.#exchange, this.#reader, request, outcome, added, asks);
    this.#observer.routed(bytes);
    this.#close();
    if (this.#reader.dialect?.skipsResponse) this.#exchange.finish();
    this.#reader.forget();
  }

  /** Tells the client its endpoint; the end of the exchange releases its room. */
  #answerReservation(request: UnderstoodRequest, placement: Placement): void {
    this.#observer.placed(request, placement);
    this.#exchange.stream.send(reservationReply(placement));
    this.#close();
    this.#exchange.finish();
    this.#reader.forget();
  }

  /**
   * Whether the body can be sent back as a reply. It is counted as one from then on.
   * @returns false when the connection holds too much for it to wait there
   */
  #canEcho(): boolean {
    this.#exchange.hold(0);
    return (this.#reader.body?.bytes ?? 0) <= this.#exchange.stream.room;
  }

  #makeEvictable({ charge }: Placement): void {
    const { evictable, settings } = this.#exchange.context.services;
    if (evictable === undefined || !settings.current.evicts) return;
    const { tickets = [] } = charge;
    evictable.hold(tickets, this.#exchange);
    this.#unevictable = () => evictable.remove(tickets);
  }

  /** Holds the request until an endpoint has room. */
  #enqueue(request: UnderstoodRequest, dispatch: Dispatch | undefined): void {
    const { line, recorder } = this.#exchange.context.services;
    const { headers, body } = this.#reader;
    this.#queued ??= new QueuedRequest({
      line: line!,
      recorder,
      series: this.#observer.series(request),
      headers,
      bodyBytes: body?.bytes ?? 0,
      over: (result) => this.#proceed(result),
    });
    this.#state = 'queued';
    this.#observer.queued();
    this.#queued.join(request, dispatch);
  }

  #proceed(result: WaitResult): void {
    this.#state = 'reading';
    this.#observer.dequeued(result.kind === 'dispatched' ? 'Dispatched' : result.outcome);
    try {
      if (result.kind === 'dispatched') this.#place(result.dispatch);
      else this.#reject(queueRejection(result.outcome, result.retryAfterSeconds, result.bound));
    } catch (error) {
      this.#exchange.broken(error);
    }
  }

  /** Answers the request with an error; the exchange is over. */
  #reject(rejection: Rejection): void {
    this.#observer.failed(rejection, this.#understood);
    this.sendRejection(rejection);
  }

  /** Sends a rejection that has no cause in the request. */
  sendRejection(rejection: Rejection): void {
    this.#observer.rejected(rejection, this.#understood, this.#queued);
    this.#exchange.stream.send(rejectionReply(rejection, this.#queued?.answerHeaders));
    this.#exchange.finish();
  }

  // Facts of the request for the response phase.

  /** The request in the form for its response. */
  answered(): AnsweredRequest {
    const request = this.#understood;
    const placement = this.#placement;
    return {
      series: this.#observer.series(request),
      arrivedAt: this.#exchange.openedAt,
      model: request?.model ?? '',
      targetModel: request?.targetModel ?? '',
      stream: request?.stream ?? false,
      answer: this.#answerForm,
      dropsUsage: this.#asksUsage,
      picks: placement?.endpoints,
      charge: placement?.charge,
      countedPromptTokens: this.#tokens?.ids.length,
      estimated: this.#estimated(),
      placedAt: this.#observer.placedAt,
      prediction: placement?.prediction,
      trace: this.#observer.trace,
    };
  }

  /** The estimate of the prompt's tokens. The tokens of images are those of an engine's settings, not of a text. */
  #estimated(): AnsweredRequest['estimated'] {
    const request = this.#understood;
    const tokens = this.#placement?.promptTokens ?? 0;
    if (request === undefined || tokens === 0 || this.#tokens !== undefined) return undefined;
    if (request.tokenIds || request.hasMedia) return undefined;
    return { bytes: request.promptBytes, tokens };
  }

  /** Headers that are added to the answer: how the request waited, what plugins say, and who served it. */
  addedHeaders(head: AnswerHead): ReadonlyMap<string, string> | undefined {
    const { plugins, observe } = this.#exchange.context.services;
    const placement = this.#placement;
    const { hookRequest } = this;
    const wait = this.#queued?.answerHeaders;
    if (placement === undefined) return wait;
    const added =
      plugins === undefined || hookRequest === undefined
        ? undefined
        : plugins.responseHeaders(hookRequest, placement, head);
    const server = observe.servedByHeader === undefined ? undefined : serverName(placement, head);
    if (wait === undefined && server === undefined) return added;
    const named = server === undefined ? [] : ([[observe.servedByHeader!, server]] as const);
    return new Map([...(wait ?? []), ...(added ?? []), ...named]);
  }

  /** Way to read the answer. Without a request phase, the form is taken to be a usual one. */
  get #answerForm(): AnswerForm | undefined {
    const { dialect, headers } = this.#reader;
    if (dialect !== undefined) return dialect.answer;
    return headers === NO_HEADERS ? AnswerForm.usage : undefined;
  }

  // The end.

  get #awaitsAnswer(): boolean {
    return this.#state === 'reading' || this.#state === 'preparing';
  }

  /** Releases all that is held for the request. */
  #close(): void {
    this.#state = 'over';
    this.#preparing?.abort();
    this.#preparing = undefined;
    this.#reader.stop();
    this.#reader.body?.close();
    this.#exchange.hold(0);
  }
}

/**
 * Asks for the tokens of a prompt.
 * @param preparation is begun when there is a source to ask, which its signal aborts
 * @returns undefined without a source to ask; a promise of undefined when the search found nothing
 */
function askForTokens(
  { tokens, recorder }: StreamServices,
  body: RequestBody,
  { modelPlace }: UnderstoodRequest,
  preparation: { begin(): AbortSignal },
): Promise<PromptTokens | undefined> | undefined {
  const { prompt } = body.dialect;
  if (tokens === undefined || prompt === undefined || modelPlace === undefined || !tokens.reads(prompt)) {
    return undefined;
  }
  const signal = preparation.begin();
  return tokens.tokenise({ prompt, chunks: body.chunks, modelPlace }, signal).then((tokenised) => {
    if (!signal.aborted) recorder.tokenised(tokenised.outcome);
    return tokenised.outcome === 'tokenised' ? tokenised.tokens : undefined;
  });
}
