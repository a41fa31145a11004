import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { ClusterAccess } from './access.js';
import { type KeptFields, KeptFieldsReader } from './kept-fields.js';
import { ListElements } from './list-elements.js';

/** Refusal of a request by the server, or no answer (`status` 0). */
export class ApiFailure extends Error {
  readonly status: number;
  /** `reason` of the server's Status object; empty without one. */
  readonly reason: string;
  /** Wait that the server asked for. */
  readonly retryAfterMs: number | undefined;
  /** Reasons in `details.causes`. */
  readonly causes: readonly string[];

  constructor(message: string, status: number, details: Partial<Omit<ApiFailure, 'message' | 'status'>> = {}) {
    super(message);
    this.status = status;
    this.reason = details.reason ?? '';
    this.retryAfterMs = details.retryAfterMs;
    this.causes = details.causes ?? [];
  }
}

/** A Status object of the API, with the fields that are read. */
export interface StatusObject {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly retryAfterSeconds?: number; readonly causes?: readonly { readonly reason?: string }[] };
}

export interface RequestOptions {
  readonly body?: unknown;
  readonly contentType?: string;
  /** Until the end of the answer. Default 10 s. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
/** Bound on the time until the headers of a watch's answer. */
const HEAD_TIMEOUT_MS = 20_000;
/** Bound on a page of the list: 500 objects of etcd's largest size would be more; real pods have 5 to 20 KB. */
const ANSWER_BYTES_MAX = 128 * 1024 * 1024;
/** First TCP probe on a quiet connection: with Node's ten probes, one a second, a dead host is noticed after 25 s. */
const KEEP_ALIVE_MS = 15_000;
const CONNECTIONS_MAX = 32;

/** Codes of errors that a certificate or its authority causes. */
const UNTRUSTED = /^(UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|CERT_|ERR_TLS_|ERR_SSL_)/;

/** Requests to the API server (HTTP/1.1; a watch has a connection of its own). */
export class ApiClient {
  readonly #access: ClusterAccess;
  readonly #agent: HttpAgent | HttpsAgent;
  /** A watch holds its connection: the bound on connections is for requests that end. */
  readonly #watchAgent: HttpAgent | HttpsAgent;
  readonly #answered: (path: string, status: number) => void;

  /** @param answered told the status of every answer; 0 = none came */
  constructor(access: ClusterAccess, answered: (path: string, status: number) => void = () => {}) {
    this.#access = access;
    this.#answered = answered;
    const Agent = access.server.protocol === 'http:' ? HttpAgent : HttpsAgent;
    this.#agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS_MAX, maxFreeSockets: 2 });
    this.#watchAgent = new Agent({ keepAlive: true, maxFreeSockets: 2 });
  }

  /** Closes all connections; requests under way fail. */
  close(): void {
    this.#agent.destroy();
    this.#watchAgent.destroy();
  }

  /** Resolves to the JSON of a 2xx answer. Rejects with ApiFailure. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<unknown> {
    const signal = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
    const response = await this.#send(method, path, options, signal);
    const answer = await this.#bytes(response, path);
    return JSON.parse(answer.toString('utf8')) as unknown;
  }

  /**
   * Reads a list, and hands on its objects one by one. Resolves to the list without them. Rejects with ApiFailure.
   * @param fields of the objects that are read; undefined = all
   */
  async list(path: string, fields: KeptFields | undefined, take: (object: unknown) => void): Promise<unknown> {
    const response = await this.#send('GET', path, {}, AbortSignal.timeout(TIMEOUT_MS));
    const reader = fields && new KeptFieldsReader(fields);
    const parse = (json: Buffer) => (reader === undefined ? JSON.parse(json.toString('utf8')) : reader.parse(json));
    const elements = new ListElements((json) => take(parse(json)));
    for await (const piece of this.#pieces(response, path)) elements.add(piece);
    return elements.rest();
  }

  /** Resolves to the open body of a 200 answer. Rejects with ApiFailure. */
  async open(path: string, signal: AbortSignal): Promise<IncomingMessage> {
    const head = new AbortController();
    const giveUp = setTimeout(() => head.abort(new Error('no answer')), HEAD_TIMEOUT_MS);
    try {
      return await this.#send('GET', path, {}, AbortSignal.any([signal, head.signal]), this.#watchAgent);
    } finally {
      clearTimeout(giveUp);
    }
  }

  async #send(
    method: string,
    path: string,
    options: RequestOptions,
    signal: AbortSignal,
    agent = this.#agent,
  ): Promise<IncomingMessage> {
    let response: IncomingMessage;
    try {
      response = await this.#answer(method, path, options, signal, agent);
    } catch (error) {
      this.#answered(path, 0);
      throw this.#noAnswer(error as NodeJS.ErrnoException);
    }
    const status = response.statusCode!;
    this.#answered(path, status);
    if (status >= 200 && status <= 299) return response;
    if (status === 401) this.#access.rejected();
    throw failureOf(status, response, await this.#bytes(response, path).then(String, () => ''));
  }

  async #answer(
    method: string,
    path: string,
    options: RequestOptions,
    signal: AbortSignal,
    agent: HttpAgent | HttpsAgent,
  ): Promise<IncomingMessage> {
    const { server, serverName, insecure } = this.#access;
    const { token, ca, cert, key } = await this.#access.credentials();
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    const common = {
      agent,
      method,
      signal,
      host: server.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: server.port || (server.protocol === 'http:' ? 80 : 443),
      path: server.pathname.replace(/\/$/, '') + path,
      headers: {
        host: server.host,
        accept: 'application/json',
        'user-agent': 'pointsman',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : bodyHeaders(body, options.contentType)),
      },
    };
    const tls = { ca, cert, key, rejectUnauthorized: !insecure, ...(serverName && { servername: serverName }) };
    return new Promise((resolve, reject) => {
      const sent = server.protocol === 'http:' ? httpRequest(common) : httpsRequest({ ...common, ...tls });
      sent.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
      sent.on('error', reject);
      sent.on('response', resolve);
      sent.end(body);
    });
  }

  #noAnswer(error: NodeJS.ErrnoException): ApiFailure {
    if (error instanceof ApiFailure) return error;
    if (UNTRUSTED.test(error.code ?? '')) this.#access.untrusted();
    const timedOut = error.name === 'TimeoutError' || error.name === 'AbortError';
    const why = timedOut ? 'no answer in time' : error.message || String(error.code);
    return new ApiFailure(`${this.#access.server.origin}: ${why}`, 0);
  }

  async #bytes(response: IncomingMessage, path: string): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for await (const piece of this.#pieces(response, path)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  async *#pieces(response: IncomingMessage, path: string): AsyncIterable<Buffer> {
    let bytes = 0;
    try {
      for await (const piece of response as AsyncIterable<Buffer>) {
        bytes += piece.length;
        if (bytes > ANSWER_BYTES_MAX) throw new Error(`${path}: an answer of more than ${ANSWER_BYTES_MAX} bytes`);
        yield piece;
      }
    } catch (error) {
      throw this.#noAnswer(error as NodeJS.ErrnoException);
    }
  }
}

function bodyHeaders(body: string, contentType = 'application/json') {
  return { 'content-type': contentType, 'content-length': Buffer.byteLength(body) };
}

function failureOf(status: number, response: IncomingMessage, text: string): ApiFailure {
  let object: StatusObject = {};
  try {
    object = JSON.parse(text) as StatusObject;
  } catch {
    // A proxy in between answers in words of its own.
  }
  const seconds = object.details?.retryAfterSeconds ?? Number(response.headers['retry-after'] ?? Number.NaN);
  return new ApiFailure(object.message ?? `status ${status}${text === '' ? '' : `: ${text.slice(0, 200)}`}`, status, {
    ...statusDetails(object),
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined,
  });
}

/** The failure that a Status object inside a stream tells of. */
export function statusFailure(object: StatusObject): ApiFailure {
  const seconds = object.details?.retryAfterSeconds;
  return new ApiFailure(object.message ?? 'an error without a message', object.code ?? 500, {
    ...statusDetails(object),
    retryAfterMs: seconds === undefined ? undefined : seconds * 1000,
  });
}

function statusDetails({ reason, details }: StatusObject) {
  const causes = (details?.causes ?? []).flatMap((cause) => (cause.reason === undefined ? [] : [cause.reason]));
  return { reason: reason ?? '', causes };
}
