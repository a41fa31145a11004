import { Agent } from 'undici';

export interface JsonServerOptions {
  /** Connections to one server at once. */
  readonly connections: number;
  /** Time for which an idle connection stays open, in milliseconds; left out = undici's usual time. */
  readonly keepAliveMs?: number;
  /** Bound on an answer, in bytes. */
  readonly answerBytesMax: number;
}

/** The server has answered, with a status that is no success. */
export class UnexpectedStatus extends Error {
  readonly status: number;
  /** First line of the answer, at most 200 characters. */
  readonly firstLine: string;

  constructor(origin: string, status: number, firstLine: string) {
    super(`${origin} has answered with status ${status}`);
    this.status = status;
    this.firstLine = firstLine;
  }
}

/** Bytes of an error's answer that are read, and characters of it that are kept. */
const ERROR_BYTES_MAX = 4_096;
const LINE_CHARACTERS_MAX = 200;

/** First line of an answer; its connection is given up when the answer is long. */
async function firstLineOf(body: AsyncIterable<unknown>): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes >= ERROR_BYTES_MAX) break;
  }
  const [line = ''] = Buffer.concat(pieces).toString('utf8').trim().split(/\r?\n/, 1);
  return line.slice(0, LINE_CHARACTERS_MAX);
}

/** Connections to servers that take JSON and answer with text. */
export class JsonServers {
  readonly #agent: Agent;
  readonly #answerBytesMax: number;

  constructor({ connections, keepAliveMs, answerBytesMax }: JsonServerOptions) {
    const keepAlive = keepAliveMs === undefined ? {} : { keepAliveTimeout: keepAliveMs };
    this.#agent = new Agent({ connections, pipelining: 1, ...keepAlive });
    this.#answerBytesMax = answerBytesMax;
  }

  /**
   * Post JSON to a URL; resolves to the text of the answer. Rejects with UnexpectedStatus when the status is not 2xx,
   * and with any other error when there is no answer, when the answer is too long, or when the signal is aborted.
   */
  async post(address: string, payload: string | Buffer, signal: AbortSignal): Promise<string> {
    const url = new URL(address);
    const { statusCode, body } = await this.#agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: payload,
      signal,
    });
    if (statusCode < 200 || statusCode > 299) {
      throw new UnexpectedStatus(url.origin, statusCode, await firstLineOf(body));
    }
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of body as AsyncIterable<Buffer>) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > this.#answerBytesMax) throw new Error(`an answer of more than ${this.#answerBytesMax} bytes`);
    }
    return Buffer.concat(pieces).toString('utf8');
  }

  /** Closes all connections; what is under way is rejected. */
  close(): Promise<void> {
    return this.#agent.destroy();
  }
}
