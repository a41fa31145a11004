import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that a backend received, body and all. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export type Behaviour = (received: Received, response: ServerResponse, backend: Backend) => void;

/** A model server under the test's control: records what it receives, answers as the test says, looks idle. */
export interface Backend {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly received: Received[];
  stop(): Promise<void>;
}

/** The metrics of a vLLM server with nothing to do. */
export const IDLE_PAGE = [
  'vllm:num_requests_running{engine="0",model_name="m"} 0',
  'vllm:num_requests_waiting{engine="0",model_name="m"} 0',
  'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0',
  'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="24000"} 1.0',
  '',
].join('\n');

/** Answers at once with the model that was asked for and the name of the server. */
export const answerAtOnce: Behaviour = (received, response, backend) => {
  const model = received.body.length === 0 ? '' : (JSON.parse(received.body.toString()) as { model?: string }).model;
  const answer = JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model,
    choices: [{ index: 0, message: { role: 'assistant', content: backend.name }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  });
  response.writeHead(200, { 'content-type': 'application/json', 'x-inference-pod': backend.name });
  response.end(answer);
};

export async function startBackend(
  name: string,
  behaviour: Behaviour = answerAtOnce,
  port = 0,
  address = '127.0.0.1',
): Promise<Backend> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    if (request.url === '/metrics') {
      response.end(IDLE_PAGE);
      return;
    }
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { method, url, headers } = request;
      const whole = { method: method!, path: url!, headers, body: Buffer.concat(pieces) };
      received.push(whole);
      behaviour(whole, response, backend);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  const place = server.address() as AddressInfo;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const backend: Backend = { name, address: place.address, port: place.port, received, stop };
  return backend;
}

/** Resolves and re-arms: each `next()` waits for the next `go()`. */
export class Gate {
  #waiting: (() => void)[] = [];
  #passes = 0;

  next(): Promise<void> {
    if (this.#passes > 0) {
      this.#passes--;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  go(): void {
    const first = this.#waiting.shift();
    if (first === undefined) this.#passes++;
    else first();
  }
}

/** A server-sent event as vLLM writes it. */
export function sseEvent(model: string, content: string): string {
  const chunk = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    model,
    choices: [{ index: 0, delta: { content } }],
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
