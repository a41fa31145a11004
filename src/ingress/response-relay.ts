import { ResponsePhase } from '../response/response-phase.js';
import { encodeMetadata } from './codec/dynamic-metadata.js';
import { BodyMode, Phase, type ProcessMessage } from './codec/process-request.js';
import { encodeBodyReplies, encodeTrailersReply, encodeWholeBodyReply, Reply } from './codec/process-response.js';
import type { Exchange } from './exchange.js';
import { responseHeadReply } from './replies.js';
import type { RequestPhase } from './request-phase.js';

/** The response half of an exchange: what the proxy reports of the answer, watched and passed on in its order. */
export class ResponseRelay {
  readonly #exchange: Exchange;
  readonly #request: RequestPhase;
  #response: ResponsePhase | undefined;
  #spentMs = 0;
  /** Whether pieces of the body have come. */
  #hasBody = false;

  constructor(exchange: Exchange, request: RequestPhase) {
    this.#exchange = exchange;
    this.#request = request;
  }

  /** Takes one message of the response; the time that the picker itself spends on them is recorded at its end. */
  message(message: ProcessMessage): void {
    const { now, recent, recorder } = this.#exchange.context.services;
    const wasOver = this.isOver;
    const startedAt = recent();
    if (message.phase === Phase.responseHeaders) this.#headers(message);
    else if (message.phase === Phase.responseBody) this.#body(message, startedAt);
    else this.#trailers();
    this.#spentMs += now() - startedAt;
    if (!wasOver && this.isOver) recorder.processing('response', this.#spentMs / 1_000);
  }

  /**
   * Takes the end of the proxy's side of the stream. Where it sends no bodies, that is how an answer without trailers
   * ends.
   */
  halfClosed(): void {
    if (this.#withoutBody) this.#response?.end();
  }

  /** Gives everything back, however far the response is. Idempotent. */
  close(): void {
    this.#response?.close();
  }

  /** Whether the response is complete. */
  get isOver(): boolean {
    return this.#response?.usage !== undefined;
  }

  get #withoutBody(): boolean {
    return this.#exchange.responseBodyMode === BodyMode.none;
  }

  #headers(message: ProcessMessage) {
    if (this.#response !== undefined) return this.#exchange.fail('response headers came twice');
    // A proxy that answers before the body has ended (a timeout, another filter) wants no destination any more.
    this.#request.giveUp();
    const { headers, served, balanced } = message;
    const status = headers.number(':status') ?? headers.number('status');
    const contentType = headers.get('content-type');
    const { services } = this.#exchange.context;
    // A plugin may ask them later.
    if (services.plugins !== undefined) headers.keep();
    const response = new ResponsePhase(services, this.#request.answered(), {
      status,
      contentType,
      isEncoded: services.observe.asksUsage && (headers.get('content-encoding') ?? 'identity') !== 'identity',
      served,
      bodyComes: !this.#withoutBody,
    });
    this.#response = response;
    if (message.endOfStream) response.end();
    const changesLength = response.changesLength && !message.endOfStream;
    const added = this.#request.addedHeaders({ status, headers, served, balanced });
    this.#exchange.stream.send(responseHeadReply(changesLength, added));
  }

  /** @param at when the message came */
  #body(message: ProcessMessage, at: number) {
    const response = this.#response;
    if (response === undefined) return this.#exchange.fail('a response body came before its headers');
    if (response.ended) return;
    if (!this.#hasBody) this.#firstPiece(response);
    const mode = this.#exchange.responseBodyMode;
    // A body that came whole has ended, also where trailers follow.
    const ends = message.endOfStream || mode === BodyMode.buffered;
    const forward = response.body(message.body, ends, at);
    const metadata = ends ? this.#reported(response) : undefined;
    const { stream } = this.#exchange;
    if (waitsForReplies(mode)) {
      const changed = forward === message.body ? undefined : [forward];
      stream.send(encodeWholeBodyReply(Reply.responseBody, changed, [], metadata));
    } else {
      encodeBodyReplies(Reply.responseBody, [forward], message.endOfStream, stream, metadata);
    }
  }

  #firstPiece(response: ResponsePhase): void {
    this.#hasBody = true;
    const { settings, observe, unreadAnswers } = this.#exchange.context.services;
    const isRead = settings.current.readsAnswers || observe.asksUsage || response.changesLength;
    if (!isRead) unreadAnswers.note();
  }

  #trailers() {
    const response = this.#response;
    if (response === undefined) return this.#exchange.fail('response trailers came before the headers');
    const { stream, responseBodyMode } = this.#exchange;
    if (response.ended) {
      if (responseBodyMode === BodyMode.buffered) stream.send(encodeTrailersReply(Reply.responseTrailers));
      return;
    }
    const rest = response.trailers();
    // With a reply to every piece, nothing can follow. A body that is cut within a model name leaves a rest.
    if (rest.length > 0 && !waitsForReplies(responseBodyMode))
      encodeBodyReplies(Reply.responseBody, [rest], false, stream);
    stream.send(encodeTrailersReply(Reply.responseTrailers, this.#reported(response)));
  }

  /** Metadata of reporters for the finished answer. */
  #reported({ usage }: ResponsePhase): Buffer | undefined {
    const { plugins } = this.#exchange.context.services;
    const { hookRequest } = this.#request;
    if (plugins === undefined || hookRequest === undefined || usage === undefined) return undefined;
    return encodeMetadata(plugins.report(hookRequest, usage));
  }
}

/** Whether each message of a body waits for one reply, which names its replacement. */
function waitsForReplies(mode: number): boolean {
  return mode === BodyMode.streamed || mode === BodyMode.buffered || mode === BodyMode.bufferedPartial;
}
