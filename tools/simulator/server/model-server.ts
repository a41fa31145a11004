import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { seededRandom } from '../../../src/runtime/seeded-random.js';
import { Answer } from './answer.js';
import { type AnswerLength, type Api, type Generation, RefusedRequest, readGeneration } from './api.js';
import { DEFAULT_ENGINE, Engine, type EngineOptions, type EngineTotals, type Sequence } from './engine.js';
import { type LoraOptions, MetricsPage } from './metrics-page.js';
import { EnginePacing } from './pacing.js';

/** One simulated model server. */
export interface ModelServerOptions {
  /** Answered as `x-inference-pod`. */
  readonly name?: string;
  readonly host?: string;
  /** 0 = a free port. */
  readonly port?: number;
  /** Label of the metrics and entry of `/v1/models`. Requests may name any model: it is answered as requested. */
  readonly model?: string;
  readonly lora?: LoraOptions;
  readonly engine?: Partial<EngineOptions>;
  /** Tokens of an answer whose length the client leaves open. */
  readonly answerLength?: AnswerLength;
  /** Prompt and answer together, in tokens. */
  readonly maxModelLength?: number;
  /** Larger bodies are refused with 413. */
  readonly maxBodyBytes?: number;
}

/** Counters and current load of a server. */
export interface ModelServerStats extends EngineTotals {
  /** Generation requests that arrived, refused ones included. */
  readonly requests: number;
  readonly running: number;
  readonly waiting: number;
  readonly blocksUsed: number;
  readonly blocksCached: number;
}

export interface ModelServer {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  stats(): ModelServerStats;
  /** Answers every generation request with this status (a fault) from now on, or again as usual. */
  failWith(status: number | undefined): void;
  /**
   * From now on no generation request reaches the engine, as in a server whose engine is stuck: heads of streams are
   * sent, no byte of output follows, and health and metrics are served. false = those that hang are generated, and
   * further ones as usual.
   */
  hang(isHanging: boolean): void;
  /** Makes every step take `factor` times as long from now on, as on a throttled GPU; 1 = as usual. Above 0. */
  slowDown(factor: number): void;
  /** Closes the port and drops every connection, as a killed server does. */
  stop(): Promise<void>;
}

const DEFAULT_MODEL = 'demo-model';
const BODY_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Starts a simulated vLLM server: OpenAI chat and completions (streaming or not), `/v1/models`, `/health`, `/metrics`,
 * a block-level prefix cache, and the timing documented in docs/simulated-servers.md.
 * Rejects when the address is in use.
 */
export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const served = new ServedEngine(options);
  const server = createServer((request, response) => served.handle(request, response));
  // Longer than the keep-alive of any client here, so that the client's side closes idle connections first.
  server.keepAliveTimeout = 60_000;
  await listen(server, options.port ?? 0, options.host ?? '127.0.0.1');
  const { address, port } = server.address() as AddressInfo;
  served.name = options.name ?? `${address}:${port}`;
  return {
    name: served.name,
    address,
    port,
    stats: () => served.stats(),
    failWith: (status) => {
      served.fault = status;
    },
    hang: (isHanging) => served.hang(isHanging),
    slowDown: (factor) => served.slowDown(factor),
    stop: () => {
      served.pacing.stop();
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

class ServedEngine {
  name = '';
  fault: number | undefined;
  readonly pacing: EnginePacing;
  readonly #options: ModelServerOptions;
  readonly #model: string;
  readonly #engine: Engine;
  readonly #page: MetricsPage;
  readonly #random: () => number;
  #requests = 0;
  #isHanging = false;
  /** Generations that wait while the engine hangs. */
  readonly #hanging: (() => void)[] = [];

  constructor(options: ModelServerOptions) {
    const engine = { ...DEFAULT_ENGINE, ...options.engine };
    this.#options = options;
    this.#model = options.model ?? DEFAULT_MODEL;
    this.#engine = new Engine(engine);
    this.#random = seededRandom(engine.seed ^ 0x5bd1e995);
    this.pacing = new EnginePacing(this.#engine);
    this.#page = new MetricsPage(this.#engine, this.#model, options.lora);
    this.#engine.formed = () => this.#page.stepFormed();
  }

  stats(): ModelServerStats {
    const { cache, totals, running, waiting } = this.#engine;
    return {
      ...totals,
      requests: this.#requests,
      running: running.length,
      waiting: waiting.length,
      blocksUsed: cache.used,
      blocksCached: cache.cached,
    };
  }

  slowDown(factor: number): void {
    this.#engine.slowdown = factor;
  }

  hang(isHanging: boolean): void {
    this.#isHanging = isHanging;
    if (isHanging) return;
    for (const generate of this.#hanging.splice(0)) generate();
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    response.setHeader('x-inference-pod', this.name);
    const path = request.url!.split('?', 1)[0];
    if (path === '/v1/chat/completions') this.#onPost('chat', request, response);
    else if (path === '/v1/completions') this.#onPost('completion', request, response);
    else if (path === '/metrics') this.#answerMetrics(response);
    else if (path === '/v1/models') this.#answerModels(response);
    else if (path === '/health') response.writeHead(200).end();
    else refuse(response, new RefusedRequest(404, 'NotFoundError', 'Not Found'));
  }

  #onPost(api: Api, request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== 'POST') {
      refuse(response, new RefusedRequest(405, 'BadRequestError', 'Method Not Allowed'));
      return;
    }
    this.#requests++;
    readBody(request, this.#options.maxBodyBytes ?? BODY_BYTES_MAX).then(
      (body) => this.#generate(api, body, response),
      (error: unknown) => refuse(response, error),
    );
  }

  #generate(api: Api, body: Buffer, response: ServerResponse): void {
    try {
      if (this.fault !== undefined) throw new RefusedRequest(this.fault, 'InternalServerError', 'simulated fault');
      const generation = readGeneration(api, body, this.#options.answerLength ?? { min: 16, max: 64 }, this.#random);
      this.#submit(generation, response);
    } catch (error) {
      refuse(response, error);
    }
  }

  #submit(generation: Generation, response: ServerResponse): void {
    this.#checkRoom(generation);
    const answer = new Answer(generation);
    const pieces: string[] = [];
    const listener = generation.stream ? this.#streamTo(response, answer) : this.#collectInto(pieces, response, answer);
    if (generation.stream) {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
      response.flushHeaders();
    }
    const generate = () => {
      if (response.destroyed) return;
      const sequence = this.#engine.submit(generation, listener, performance.now());
      response.once('close', () => this.#engine.abort(sequence));
      this.pacing.wake();
    };
    if (this.#isHanging) this.#hanging.push(generate);
    else generate();
  }

  #checkRoom({ prompt, outputTokens }: Generation): void {
    const promptTokens = Math.ceil(prompt.length / 4);
    const longest = this.#options.maxModelLength ?? 131_072;
    if (promptTokens + outputTokens > longest || !this.#engine.fits(prompt.length, outputTokens)) {
      const message =
        `This model's maximum context length is ${longest} tokens. However, you requested ` +
        `${promptTokens + outputTokens} tokens (${promptTokens} in the messages, ${outputTokens} in the completion). ` +
        'Please reduce the length of the messages or completion.';
      throw new RefusedRequest(400, 'BadRequestError', message);
    }
    if (this.#engine.full) throw new RefusedRequest(429, 'TooManyRequestsError', 'the waiting queue is full');
  }

  #streamTo(response: ServerResponse, answer: Answer) {
    return {
      token: (text: string, sequence: Sequence) => {
        const finish = sequence.state === 'finished' ? sequence.request.finishReason : null;
        response.write(answer.tokenEvents(text, finish));
      },
      finished: (sequence: Sequence) => {
        this.#page.finished(sequence);
        response.end(answer.lastEvents(sequence));
      },
    };
  }

  #collectInto(pieces: string[], response: ServerResponse, answer: Answer) {
    return {
      token: (text: string) => {
        pieces.push(text);
      },
      finished: (sequence: Sequence) => {
        this.#page.finished(sequence);
        sendJson(response, 200, answer.whole(pieces.join(''), sequence));
      },
    };
  }

  #answerMetrics(response: ServerResponse): void {
    const page = this.#page.text();
    response.writeHead(200, {
      'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      'content-length': Buffer.byteLength(page),
    });
    response.end(page);
  }

  #answerModels(response: ServerResponse): void {
    const names = [this.#model, ...(this.#options.lora?.names ?? [])];
    const data = names.map((id) => ({ id, object: 'model', created: 0, owned_by: 'vllm', root: this.#model }));
    sendJson(response, 200, JSON.stringify({ object: 'list', data }));
  }
}

function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    request.on('data', (piece: Buffer) => {
      bytes += piece.length;
      if (bytes <= maxBytes) pieces.push(piece);
      else reject(new RefusedRequest(413, 'BadRequestError', `the body is larger than ${maxBytes} bytes`));
    });
    request.on('end', () => resolve(Buffer.concat(pieces)));
    request.on('error', reject);
  });
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) return;
  const refused =
    error instanceof RefusedRequest ? error : new RefusedRequest(500, 'InternalServerError', String(error));
  const { status, type, message } = refused;
  sendJson(response, status, JSON.stringify({ error: { message, type, param: null, code: status } }));
}

function sendJson(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}
