import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { TEST_HEADER, TRAILER } from './test-endpoint.js';

/** One test request. */
export interface Question {
  readonly id: string;
  readonly body: Buffer;
  /** Milliseconds over which the body is sent; at once without. */
  readonly uploadMs?: number;
  readonly trailer?: boolean;
  /** Time after which the client hangs up; never without. */
  readonly hangUpMs?: number;
}

/** Result of a test request. */
export interface Answer {
  /** 0 = no answer. */
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly trailer: string | undefined;
  /** First bytes of the body. */
  readonly text: string;
  /** Milliseconds from the request to each piece of the answer. */
  readonly piecesMs: readonly number[];
  /** Reason why the connection broke; undefined = the answer is complete. */
  readonly broken: string | undefined;
  readonly durationMs: number;
}

/** Pieces of a slow upload; the client is silent between two of them. */
const UPLOAD_PIECES = 4;
/** Bound on the text of an answer that is kept for a message. */
const TEXT_CHARACTERS_MAX = 300;

/** The gateway under test. */
export class GatewayClient {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: HttpAgent;
  readonly #answerMs: number;

  /** @param answerMs time after which an answer counts as missing */
  constructor(gateway: URL, headers: Readonly<Record<string, string>>, answerMs: number) {
    this.#url = new URL('/v1/chat/completions', gateway);
    this.#headers = headers;
    this.#answerMs = answerMs;
    // A connection for each request, as of many clients.
    const options = { maxSockets: Number.POSITIVE_INFINITY, keepAlive: false };
    this.#agent = gateway.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
  }

  /** Sends a request and reads its answer. Does not reject: `broken` names the failure. */
  ask(question: Question): Promise<Answer> {
    const begun = performance.now();
    return new Promise((resolve) => {
      const request = this.#open(question);
      const piecesMs: number[] = [];
      let answer: IncomingMessage | undefined;
      let text = '';
      const timer = setTimeout(() => request.destroy(new Error('no answer in time')), this.#answerMs);
      const hangUp =
        question.hangUpMs === undefined
          ? undefined
          : setTimeout(() => request.destroy(new Error('hung up')), question.hangUpMs);
      let over = false;
      const end = (broken: string | undefined) => {
        if (over) return;
        over = true;
        clearTimeout(timer);
        clearTimeout(hangUp);
        const { statusCode: status = 0, headers = {} } = answer ?? {};
        const trailer = answer?.trailers[TRAILER];
        resolve({ status, headers, trailer, text, piecesMs, broken, durationMs: performance.now() - begun });
      };
      request.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
      request.on('response', (response) => {
        answer = response;
        response.on('data', (piece: Buffer) => {
          piecesMs.push(performance.now() - begun);
          if (text.length < TEXT_CHARACTERS_MAX) text = (text + piece.toString()).slice(0, TEXT_CHARACTERS_MAX);
        });
        response.on('end', () => end(undefined));
        response.on('close', () => end('the connection was closed in the middle of the answer'));
      });
      void send(request, question);
    });
  }

  /** Closes the connections. */
  close(): void {
    this.#agent.destroy();
  }

  #open({ id, body, trailer, uploadMs }: Question): ClientRequest {
    const chunked = trailer === true || uploadMs !== undefined;
    const headers = {
      ...{ 'content-type': 'application/json', [TEST_HEADER]: id },
      ...(chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(body.length) }),
      ...(trailer === true ? { trailer: TRAILER, te: 'trailers' } : {}),
      ...this.#headers,
    };
    const open = this.#url.protocol === 'https:' ? httpsRequest : httpRequest;
    return open(this.#url, { method: 'POST', headers, agent: this.#agent });
  }
}

async function send(request: ClientRequest, { body, uploadMs, trailer }: Question): Promise<void> {
  if (uploadMs !== undefined) {
    const size = Math.ceil(body.length / UPLOAD_PIECES);
    for (let at = 0; at < body.length && !request.destroyed; at += size) {
      request.write(body.subarray(at, at + size));
      await new Promise((resolve) => setTimeout(resolve, uploadMs / UPLOAD_PIECES));
    }
  } else request.write(body);
  if (trailer === true) request.addTrailers({ [TRAILER]: 'request' });
  request.end();
}
