import { overloaded, requestTimeout } from '../request/rejections.js';
import { MalformedMessage } from '../runtime/protobuf.js';
import type { Rejection } from '../scheduling/decision.js';
import { BodyMode, decodeProcessRequest, emptyMessage, Phase, type ProcessMessage } from './codec/process-request.js';
import type { Exchange, StreamContext } from './exchange.js';
import { MessageBacklog } from './message-backlog.js';
import { rejectionReply } from './replies.js';
import { RequestPhase } from './request-phase.js';
import { ResponseRelay } from './response-relay.js';
import type { TracedEnd } from './tracing/trace-record.js';
import type { ProcessHandler, ProcessStream } from './transport.js';
import type { BudgetedWork } from './turn-budget.js';

/** gRPC status codes that a stream ends with. */
const GRPC_OK = 0;
const GRPC_INVALID_ARGUMENT = 3;
const GRPC_INTERNAL = 13;

/** Ends of traced requests by the code of their streams; a stream that ends with OK leaves it to the request. */
const TRACED_ENDS: ReadonlyMap<string, TracedEnd> = new Map([
  ['Canceled', 'cancelled'],
  ['InvalidArgument', 'failed'],
  ['Internal', 'failed'],
]);

/** More requests come than the thread can serve. */
export const TOO_MANY_NEW = overloaded('too many new requests');

/** The message under way: after its call only copies of its parts are held. */
const MESSAGE = emptyMessage();

type State =
  /** Nothing has come yet. */
  | 'opened'
  /** The first message waits for its turn, and later ones wait behind it. */
  | 'waiting'
  /** Messages are handled on arrival. */
  | 'under way'
  /** The stream was ended from this side, or is gone. */
  | 'finished';

/**
 * One ext_proc stream: one HTTP exchange. Says whose turn it is and hands every message to the request's or the
 * response's half. Whatever way the stream ends, what it holds is released exactly once.
 */
export class ExchangeStream implements ProcessHandler, BudgetedWork, Exchange {
  context: StreamContext;
  readonly stream: ProcessStream;
  readonly openedAt: number;
  isHalfClosed = false;
  responseBodyMode: number = BodyMode.unnamed;
  /** Context in which the stream was opened, and which counts it. */
  readonly #entry: StreamContext;
  /** Both made at the stream's turn: what waits, and may be refused or reset meanwhile, is small. */
  #request: RequestPhase | undefined;
  #response: ResponseRelay | undefined;
  /** Whether the stream is over the bound, and so is not counted among the shard's open streams. */
  readonly #refused: boolean;
  /** Whether it is counted in the shard's silent streams. */
  #silent: boolean;
  #state: State = 'opened';
  #closeCode = 'OK';
  #backlog: MessageBacklog | undefined;
  /** Bytes of this stream in the shard's count. */
  #buffered = 0;

  /** @param refused the shard has too many streams: the first message is answered with a 503 */
  constructor(context: StreamContext, stream: ProcessStream, refused: boolean) {
    this.context = context;
    this.#entry = context;
    this.stream = stream;
    this.#refused = refused;
    this.#silent = refused;
    this.openedAt = stream.arrivedAt;
    if (refused) context.load.silentStreams++;
    else context.load.openStreams++;
    context.services.recorder.streamOpened();
    if (context.use !== undefined) context.use.streams++;
  }

  message(bytes: Buffer, from: number, to: number): void {
    if (this.#isFinished) return;
    try {
      this.#receive(bytes, from, to);
    } catch (error) {
      this.broken(error);
    }
  }

  get isWaiting(): boolean {
    return this.#state === 'waiting';
  }

  /** Takes the turn of a stream that had to wait. */
  begin(): void {
    if (this.#state !== 'waiting') return;
    this.#state = 'under way';
    const backlog = this.#backlog;
    this.#backlog = undefined;
    this.hold(0);
    try {
      backlog?.drain((bytes, from, to) => {
        this.#handle(decodeProcessRequest(bytes, from, to, MESSAGE));
        return !this.#isFinished;
      });
    } catch (error) {
      this.broken(error);
    }
    if (this.isHalfClosed) this.finish();
  }

  /** Ends a stream that has waited too long for its turn. */
  expire(): void {
    if (this.#state !== 'waiting') return;
    this.#state = 'under way';
    this.#turnAway(TOO_MANY_NEW);
  }

  halfClosed(): void {
    this.isHalfClosed = true;
    this.#response?.halfClosed();
    // A waiting stream still gets its answer: a client may half-close right behind its messages.
    if (this.#state !== 'waiting' && this.#request?.isPrepared !== true) this.finish();
  }

  overflowed(): void {
    if (!this.#isFinished) this.turnAway('too many request bytes are held');
  }

  /** Refuses a request of whose rest nothing came for `--request-idle-timeout`. An answer has no such bound. */
  stalled(): void {
    if (this.#state === 'opened' || (this.#state === 'under way' && this.#request?.isArriving !== false)) {
      this.#reject(requestTimeout());
    }
  }

  closed(cancelled: boolean): void {
    const { services, load } = this.#entry;
    const at = services.now();
    // Envoy (1.37 and newer) ends its streams with a reset behind the last reply.
    if (cancelled && this.#closeCode === 'OK' && this.#response?.isOver !== true) this.#closeCode = 'Canceled';
    this.#release();
    if (!this.#refused) load.openStreams--;
    services.recorder.streamClosed(this.#closeCode, (at - this.openedAt) / 1_000);
    this.#leave();
  }

  // Requests of the two halves.

  enter(context: StreamContext): void {
    this.#leave();
    this.context = context;
    if (context.use !== undefined) context.use.streams++;
  }

  /** Counts one stream less in the pool. */
  #leave(): void {
    const { use } = this.context;
    if (use !== undefined && --use.streams === 0) use.idle?.();
  }

  hold(bytes: number): boolean {
    const { load } = this.context;
    const fits = load.held.force(bytes - this.#buffered);
    this.#buffered = bytes;
    return fits;
  }

  finish(): void {
    this.#finishWith(GRPC_OK, '');
  }

  fail(why: string): void {
    this.#closeCode = 'InvalidArgument';
    this.#finishWith(GRPC_INVALID_ARGUMENT, why);
  }

  broken(error: unknown) {
    if (error instanceof MalformedMessage) return this.fail(`malformed ProcessingRequest: ${error.message}`);
    this.context.services.log.error({ err: error }, 'a stream failed');
    this.#closeCode = 'Internal';
    this.#finishWith(GRPC_INTERNAL, 'internal error');
  }

  turnAway(why: string): void {
    this.#turnAway(overloaded(why));
  }

  #turnAway(rejection: Rejection): void {
    this.#entry.services.recorder.overloaded();
    this.#reject(rejection);
  }

  /** Answers with an error that has no cause in the request. */
  #reject(rejection: Rejection) {
    if (this.#request !== undefined) return this.#request.sendRejection(rejection);
    this.stream.send(rejectionReply(rejection));
    this.finish();
  }

  /** Cuts off an answer that is not complete. */
  evictRequest(): void {
    if (!this.#isFinished && this.#response?.isOver === false) this.#request?.evictRequest();
  }

  // Whose turn it is.

  get #isFinished(): boolean {
    return this.#state === 'finished';
  }

  #receive(bytes: Buffer, from: number, to: number) {
    if (this.#state === 'waiting') return this.#wait(bytes, from, to);
    if (this.#state === 'under way') return this.#handle(decodeProcessRequest(bytes, from, to, MESSAGE));
    if (this.#refused) return this.turnAway('too many streams');
    if (this.stream.goesFirst === true) {
      this.#state = 'under way';
      return this.#handle(decodeProcessRequest(bytes, from, to, MESSAGE));
    }
    switch (this.context.turnBudget.enter(this, this.openedAt)) {
      case 'now':
        this.#state = 'under way';
        return this.#handle(decodeProcessRequest(bytes, from, to, MESSAGE));
      case 'later':
        this.#state = 'waiting';
        return this.#wait(bytes, from, to);
      case 'refused':
        return this.#turnAway(TOO_MANY_NEW);
    }
  }

  /** Keeps a message until the stream's turn has come: its bytes are the transport's only now. */
  #wait(bytes: Buffer, from: number, to: number): void {
    this.#backlog ??= new MessageBacklog();
    this.#backlog.add(bytes, from, to);
    if (this.hold(this.#backlog.heldBytes)) return;
    this.#entry.turnBudget.displaced();
    this.turnAway('too many request bytes are held');
  }

  #handle(message: ProcessMessage) {
    if (message.responseBodyMode !== BodyMode.unnamed) this.responseBodyMode = message.responseBodyMode;
    switch (message.phase) {
      case Phase.requestHeaders:
      case Phase.requestBody:
      case Phase.requestTrailers:
        return this.#begun().message(message);
      case Phase.responseHeaders:
      case Phase.responseBody:
      case Phase.responseTrailers:
        this.#begun();
        return this.#response!.message(message);
      case Phase.none:
        // A kind of message that came to the protocol after this was written.
        return;
    }
  }

  /** Makes both halves with the first message. @returns the request's */
  #begun(): RequestPhase {
    if (this.#request === undefined) {
      this.#request = new RequestPhase(this);
      this.#response = new ResponseRelay(this, this.#request);
    }
    return this.#request;
  }

  // The end.

  #finishWith(code: number, why: string): void {
    if (this.#isFinished) return;
    this.#release();
    if (code === GRPC_OK) this.stream.end();
    else this.stream.fail(code, why);
  }

  #release(): void {
    const waited = this.#state === 'waiting';
    this.#state = 'finished';
    if (waited) this.#entry.turnBudget.leave();
    if (this.#silent) this.context.load.silentStreams--;
    this.#silent = false;
    this.#backlog?.drop();
    this.#backlog = undefined;
    const request = this.#request;
    if (request === undefined) {
      this.hold(0);
      return;
    }
    request.giveUp();
    this.#response!.close();
    request.release();
    request.endTrace(TRACED_ENDS.get(this.#closeCode));
  }
}
