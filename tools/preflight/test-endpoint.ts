import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Header that carries the id of a test request through the gateway. */
export const TEST_HEADER = 'x-pointsman-preflight';
/** Header and trailers of answers, by which they are known as those of the test endpoint. */
export const ENDPOINT_HEADER = 'x-pointsman-preflight-endpoint';
export const TRAILER = 'x-pointsman-preflight-trailer';

/** Answer that the test endpoint gives to one test request. */
export interface AnswerPlan {
  /** Status; 200 without. */
  readonly status?: number;
  /** Milliseconds of silence before the head of the answer. */
  readonly delayMs?: number;
  /** Pieces of a streamed answer, and the milliseconds between two of them; one whole answer without. */
  readonly pieces?: number;
  readonly pauseMs?: number;
  /** Whether the answer has a trailer. */
  readonly trailer?: boolean;
  /** Whether the endpoint breaks the connection instead of an answer. */
  readonly reset?: boolean;
  /** Promise that the answer waits for. */
  readonly hold?: Promise<void>;
}

/** Observations of the test endpoint about one test request. */
export interface Seen {
  /** Number of arrivals: more than 1 = the request was repeated. */
  tries: number;
  bytes: number;
  digest: string;
  trailer: string | undefined;
  /** Whether the gateway closed the connection before the end of the answer. */
  aborted: boolean;
}

export interface TestEndpoint {
  readonly address: string;
  readonly port: number;
  /** Sets the answer to the request with this id. */
  expect(id: string, plan: AnswerPlan): void;
  /** Observations about the request with this id; undefined = none has arrived. */
  seen(id: string): Seen | undefined;
  stop(): Promise<void>;
}

/** Digest of a body as `Seen` has it. */
export function digestOf(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex');
}

/**
 * Starts the endpoint that a preflight sends its requests to. It answers `/metrics` as a vLLM server without load, so
 * that a picker accepts it as a model server. Rejects when the address is in use.
 */
export async function startTestEndpoint(host: string, port: number): Promise<TestEndpoint> {
  const endpoint = new Endpoint();
  const server = createServer((request, response) => void endpoint.handle(request, response));
  server.keepAliveTimeout = 60_000;
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, 2_048, resolve);
  });
  const place = server.address() as AddressInfo;
  return {
    address: place.address,
    port: place.port,
    expect: (id, plan) => endpoint.plans.set(id, plan),
    seen: (id) => endpoint.seen.get(id),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const METRICS = `# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="preflight"} 0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="preflight"} 0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="preflight"} 0
`;

class Endpoint {
  readonly plans = new Map<string, AnswerPlan>();
  readonly seen = new Map<string, Seen>();

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/metrics') {
      response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(METRICS);
      return;
    }
    const id = String(request.headers[TEST_HEADER] ?? '');
    const seen = this.seen.get(id) ?? { tries: 0, bytes: 0, digest: '', trailer: undefined, aborted: false };
    seen.tries++;
    this.seen.set(id, seen);
    response.on('close', () => {
      if (!response.writableFinished) seen.aborted = true;
    });
    try {
      await read(request, seen);
      await this.#answer(this.plans.get(id) ?? { status: 404 }, seen, response);
    } catch {
      // The gateway has closed the connection: `aborted` says so.
      seen.aborted = true;
    }
  }

  async #answer(plan: AnswerPlan, seen: Seen, response: ServerResponse): Promise<void> {
    await plan.hold;
    if (plan.delayMs !== undefined) await pause(plan.delayMs);
    if (plan.reset === true) {
      response.socket?.resetAndDestroy();
      return;
    }
    const { pieces, pauseMs = 0, trailer = false, status = 200 } = plan;
    const type = pieces === undefined ? 'application/json' : 'text/event-stream';
    response.writeHead(status, {
      'content-type': type,
      [ENDPOINT_HEADER]: seen.digest,
      ...(trailer ? { trailer: TRAILER } : {}),
    });
    for (let piece = 0; piece < (pieces ?? 0) && !response.destroyed; piece++) {
      response.write(`data: {"object":"chat.completion.chunk","choices":[{"index":${piece}}]}\n\n`);
      await pause(pauseMs);
    }
    if (trailer) response.addTrailers({ [TRAILER]: 'answer' });
    response.end(pieces === undefined ? whole(seen, status) : 'data: [DONE]\n\n');
  }
}

function whole({ bytes }: Seen, status: number): string {
  if (status !== 200) return JSON.stringify({ error: { message: 'asked for by the preflight', code: status } });
  const usage = { prompt_tokens: Math.ceil(bytes / 4), completion_tokens: 1, total_tokens: Math.ceil(bytes / 4) + 1 };
  return JSON.stringify({
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'ok' } }],
    usage,
  });
}

async function read(request: IncomingMessage, seen: Seen): Promise<void> {
  const hash = createHash('sha256');
  seen.bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    seen.bytes += piece.length;
    hash.update(piece);
  }
  seen.digest = hash.digest('hex');
  seen.trailer = request.trailers[TRAILER];
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
