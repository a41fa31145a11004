import { randomUUID } from 'node:crypto';
import type { Agent, IncomingMessage, ServerResponse } from 'node:http';
import { DESTINATION, headerValue, mutate, plainHeaders, requestHeaders, responseHeaders } from './headers.js';
import {
  encodeRequestBody,
  encodeRequestHeaders,
  encodeResponseBody,
  encodeResponseHeaders,
  type Header,
  type HeaderMutation,
  type PickerReply,
} from './messages.js';
import type { PickerClient, ProcessCall, ProcessListener } from './picker-client.js';
import { Upstream, type UpstreamListener } from './upstream.js';

/** Bytes of a body kept in case the picker goes away before it has answered; more cannot be recovered. */
const KEPT_BYTES = 8 * 1024 * 1024;
const NOTHING = Buffer.alloc(0);

/** Services of the gateway for an exchange. */
export interface ExchangeContext {
  readonly picker: PickerClient;
  readonly agent: Agent;
  /** True when requests go on without the picker. */
  readonly failOpen: boolean;
  /** The destination to use without a picker; undefined = none is known. */
  nextEndpoint(): string | undefined;
  /** Longest wait for the picker's first answer, in milliseconds. */
  readonly messageTimeoutMs: number;
}

/**
 * One HTTP request on its way: client → picker → model server → picker → client. Every header and body message goes
 * to the picker as Envoy sends it in FULL_DUPLEX_STREAMED mode, and only what the picker returns goes on.
 */
export class Exchange implements ProcessListener, UpstreamListener {
  readonly #context: ExchangeContext;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #headers: Header[];
  readonly #hasBody: boolean;
  readonly #call: ProcessCall;
  readonly #timer: NodeJS.Timeout;
  /** Set once the picker has answered the request headers, or is done without. */
  #upstream: Upstream | undefined;
  #answer: IncomingMessage | undefined;
  #answerHeaders: Header[] | undefined;
  /** Whether the picker is lost and this exchange goes on without it. */
  #bypass = false;
  #over = false;
  #requestEnded = false;
  #requestReplied = false;
  #keptRequest: KeptBytes;
  #keptAnswer = new KeptBytes();
  #repliedBytes = 0;
  #slowUpstream = false;
  #slowClient = false;

  constructor(context: ExchangeContext, request: IncomingMessage, response: ServerResponse) {
    this.#context = context;
    this.#request = request;
    this.#response = response;
    this.#headers = requestHeaders(request, randomUUID());
    this.#hasBody = hasBody(request);
    this.#keptRequest = new KeptBytes();
    this.#call = context.picker.open(this);
    this.#timer = setTimeout(
      () => this.#answerLocally(504, 'the endpoint picker did not answer'),
      context.messageTimeoutMs,
    );
    this.#timer.unref();
    response.on('close', () => this.#clientClosed());
    response.on('drain', () => this.#readOn({ client: true }));
    this.#call.send(encodeRequestHeaders(this.#headers, !this.#hasBody));
    if (this.#hasBody) this.#readRequest();
    else this.#requestEnded = true;
  }

  // The client's body

  #readRequest(): void {
    this.#request.on('data', (piece: Buffer) => {
      if (this.#over) return;
      if (this.#bypass) this.#writeUpstream(piece);
      else {
        this.#keptRequest.add(piece);
        if (!this.#call.send(encodeRequestBody(piece, false))) this.#request.pause();
      }
    });
    this.#request.on('end', () => {
      if (this.#over) return;
      this.#requestEnded = true;
      if (this.#bypass) this.#upstream?.end();
      // Envoy ends every body with an empty message of its own.
      else this.#call.send(encodeRequestBody(NOTHING, true));
    });
  }

  #clientClosed(): void {
    clearTimeout(this.#timer);
    if (this.#over) return;
    this.#over = true;
    this.#upstream?.abort();
    this.#answer?.destroy();
    this.#call.finish();
  }

  // Message of the picker

  writable(): void {
    this.#request.resume();
    this.#answer?.resume();
    this.#readOn({ upstream: true });
  }

  reply(reply: PickerReply): void {
    if (this.#over) return;
    if (reply.kind === 'immediate') this.#immediate(reply.status, reply.mutation, reply.body);
    else if (reply.kind === 'request_headers') this.#routeBy(reply.mutation);
    else if (reply.kind === 'request_body') this.#passRequestBody(reply.body, reply.endOfStream);
    else if (reply.kind === 'response_headers') this.#passAnswerHeaders(reply.mutation);
    else if (reply.kind === 'response_body') this.#passAnswerBody(reply.body, reply.endOfStream);
  }

  ended(error: Error | undefined): void {
    if (this.#over) return;
    clearTimeout(this.#timer);
    const reason = error === undefined ? 'the endpoint picker ended the stream' : `endpoint picker: ${error.message}`;
    const mayGoOn = error === undefined || this.#context.failOpen;
    if (this.#upstream === undefined) this.#routeWithoutPicker(reason);
    else if (!this.#requestReplied || !mayGoOn) this.#breakOff(500, reason);
    else this.#answerWithoutPicker(reason);
  }

  #routeBy(mutation: HeaderMutation): void {
    clearTimeout(this.#timer);
    if (this.#upstream !== undefined) {
      this.#breakOff(500, 'the endpoint picker answered the request headers twice');
      return;
    }
    // The length of the body is the picker's to say: it may have edited the model name.
    const headers = mutate(
      this.#headers.filter(([name]) => name !== 'content-length'),
      mutation,
    );
    const destinations = headerValue(headers, DESTINATION)
      .split(',')
      .filter((destination) => destination.trim() !== '');
    this.#keptRequest.forget();
    this.#upstream = new Upstream(this.#context.agent, headers, destinations, this);
    if (!this.#hasBody) this.#endUpstream();
  }

  #routeWithoutPicker(reason: string): void {
    const destination = this.#context.failOpen ? this.#context.nextEndpoint() : undefined;
    const kept = this.#keptRequest.all();
    if (destination === undefined || kept === undefined) {
      this.#breakOff(500, reason);
      return;
    }
    this.#bypass = true;
    this.#upstream = new Upstream(this.#context.agent, this.#headers, [destination], this);
    this.#request.resume();
    for (const piece of kept) this.#upstream.write(piece);
    if (this.#requestEnded) this.#upstream.end();
  }

  #passRequestBody(body: Buffer, endOfStream: boolean): void {
    if (this.#upstream === undefined) {
      this.#breakOff(500, 'the endpoint picker answered the body before the headers');
      return;
    }
    if (body.length > 0) this.#writeUpstream(body);
    if (endOfStream) this.#endUpstream();
  }

  #endUpstream(): void {
    this.#requestReplied = true;
    this.#upstream?.end();
  }

  #writeUpstream(piece: Buffer): void {
    if (this.#upstream!.write(piece)) return;
    this.#slowUpstream = true;
    if (this.#bypass) this.#request.pause();
    else this.#call.pause();
  }

  #readOn(ready: { upstream?: boolean; client?: boolean }): void {
    if (ready.upstream === true) this.#slowUpstream = false;
    if (ready.client === true) this.#slowClient = false;
    if (this.#slowUpstream || this.#slowClient) return;
    this.#call.resume();
    if (!this.#bypass) return;
    this.#request.resume();
    this.#answer?.resume();
  }

  // The model server's answer

  response(answer: IncomingMessage, served: string): void {
    if (this.#over) {
      answer.destroy();
      return;
    }
    this.#answer = answer;
    const empty = isEmpty(this.#request, answer);
    this.#beginAnswer(responseHeaders(answer), served, empty);
    answer.on('data', (piece: Buffer) => this.#sendAnswerPiece(piece));
    answer.on('end', () => {
      if (!empty) this.#sendAnswerEnd();
    });
    answer.on('error', () => this.#breakOff(502, 'the model server broke off its answer'));
  }

  failed(error: Error): void {
    if (this.#over) return;
    // Tells the picker of an answer that the gateway itself makes up, as Envoy does.
    const text = Buffer.from(`upstream connect error: ${error.message}`);
    this.#beginAnswer(
      [
        [':status', '503'],
        ['content-type', 'text/plain'],
      ],
      '',
      false,
    );
    this.#sendAnswerPiece(text);
    this.#sendAnswerEnd();
  }

  #beginAnswer(headers: Header[], served: string, empty: boolean): void {
    this.#answerHeaders = headers;
    if (this.#bypass) this.#writeAnswerHead(headers);
    else this.#call.send(encodeResponseHeaders(headers, empty, served));
  }

  #sendAnswerPiece(piece: Buffer): void {
    if (this.#over) return;
    if (this.#bypass) {
      if (!this.#response.write(piece)) {
        this.#slowClient = true;
        this.#answer?.pause();
      }
      return;
    }
    this.#keptAnswer.add(piece);
    if (!this.#call.send(encodeResponseBody(piece, false))) this.#answer?.pause();
  }

  #sendAnswerEnd(): void {
    if (this.#over) return;
    if (this.#bypass) this.#endAnswer();
    else {
      this.#keptAnswer.end();
      this.#call.send(encodeResponseBody(NOTHING, true));
    }
  }

  #passAnswerHeaders(mutation: HeaderMutation): void {
    if (this.#answerHeaders === undefined || this.#response.headersSent) {
      this.#breakOff(500, 'the endpoint picker answered response headers that it was not sent');
      return;
    }
    const bodiless = this.#answer !== undefined && isEmpty(this.#request, this.#answer);
    // The picker may edit the body. An answer without a body (HEAD) keeps its content-length.
    const headers = bodiless ? this.#answerHeaders : this.#answerHeaders.filter(([name]) => name !== 'content-length');
    this.#writeAnswerHead(mutate(headers, mutation));
    if (bodiless) this.#endAnswer();
  }

  #writeAnswerHead(headers: readonly Header[]): void {
    this.#response.writeHead(Number(headerValue(headers, ':status')), plainHeaders(headers));
    this.#response.flushHeaders();
  }

  #passAnswerBody(body: Buffer, endOfStream: boolean): void {
    if (!this.#response.headersSent) {
      this.#breakOff(500, 'the endpoint picker answered the response body before its headers');
      return;
    }
    this.#repliedBytes += body.length;
    this.#keptAnswer.dropIfAtMost(this.#repliedBytes);
    if (body.length > 0 && !this.#response.write(body)) {
      this.#slowClient = true;
      this.#call.pause();
    }
    if (endOfStream) this.#endAnswer();
  }

  /** Passes the answer unread, because the picker was lost after the request was forwarded. */
  #answerWithoutPicker(reason: string): void {
    const kept = this.#keptAnswer.rest(this.#repliedBytes);
    if (kept === undefined) {
      this.#breakOff(500, reason);
      return;
    }
    this.#bypass = true;
    if (this.#answerHeaders === undefined) return;
    if (!this.#response.headersSent) this.#writeAnswerHead(this.#answerHeaders);
    for (const piece of kept) this.#response.write(piece);
    if (this.#keptAnswer.ended) this.#endAnswer();
    else this.#answer?.resume();
  }

  // Ends

  #immediate(status: number, mutation: HeaderMutation, body: Buffer): void {
    const headers = mutate([['content-type', 'text/plain']], mutation);
    this.#answerLocally(status, body, headers);
  }

  #breakOff(status: number, reason: string): void {
    this.#answerLocally(status, reason);
  }

  /** Ends the exchange with an answer of the gateway's own, or, when another has begun, by closing the connection. */
  #answerLocally(
    status: number,
    body: Buffer | string,
    headers: readonly Header[] = [['content-type', 'text/plain']],
  ): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#call.finish();
    this.#upstream?.abort();
    this.#answer?.destroy();
    // Further data of the client is read and dropped, so that the client reads the answer.
    this.#request.resume();
    if (this.#response.headersSent) this.#response.destroy();
    else this.#writeWhole(status, headers, body);
  }

  #writeWhole(status: number, headers: readonly Header[], body: Buffer | string): void {
    const own = plainHeaders(headers.filter(([name]) => name !== 'content-length'));
    try {
      this.#response.writeHead(status, [...own, 'content-length', String(Buffer.byteLength(body))]);
    } catch {
      // A picker may ask for a status or a header that HTTP does not know; Envoy answers 500 then too.
      this.#response.writeHead(500, ['content-type', 'text/plain', 'content-length', String(Buffer.byteLength(body))]);
    }
    this.#response.end(body);
  }

  #endAnswer(): void {
    this.#over = true;
    this.#response.end();
    this.#call.finish();
    if (!this.#requestReplied && !this.#bypass) this.#upstream?.abort();
    this.#request.resume();
  }
}

/** Body pieces that went to the picker, kept (up to a bound) until it is certain that they are not needed again. */
class KeptBytes {
  ended = false;
  #pieces: Buffer[] | undefined = [];
  #bytes = 0;
  #dropped = 0;

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes - this.#dropped > KEPT_BYTES) this.#pieces = undefined;
    else this.#pieces?.push(piece);
  }

  end(): void {
    this.ended = true;
  }

  forget(): void {
    this.#pieces = undefined;
  }

  /** Whole body; undefined when it was too large. */
  all(): readonly Buffer[] | undefined {
    return this.#pieces;
  }

  /** Drops the kept pieces when the `replied` bytes that the picker returned are the whole body. */
  dropIfAtMost(replied: number): void {
    if (replied !== this.#bytes) return;
    this.#pieces = [];
    this.#dropped = this.#bytes;
  }

  /**
   * Bytes that are still to be forwarded when the picker returned `replied` bytes. Undefined = unknown: the picker may
   * have edited what it returned, so only "all of it" and "none of it" are certain.
   */
  rest(replied: number): readonly Buffer[] | undefined {
    if (replied === this.#bytes) return [];
    return replied === 0 ? this.#pieces : undefined;
  }
}

/** Whether the request has a body, by HTTP/1.1: it has a length or is chunked. */
function hasBody(request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined) return true;
  return Number(request.headers['content-length'] ?? 0) > 0;
}

function isEmpty(request: IncomingMessage, answer: IncomingMessage): boolean {
  const status = answer.statusCode!;
  return request.method === 'HEAD' || status === 204 || status === 304 || answer.headers['content-length'] === '0';
}
