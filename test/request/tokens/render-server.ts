import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RenderCall {
  readonly path: string;
  readonly body: unknown;
}

/** A server that renders prompts: one token for each letter of the prompt. */
export class RenderServer {
  readonly calls: RenderCall[] = [];
  connections = 0;
  /** What it does with a call; the default answers. */
  behave: (call: RenderCall, response: ServerResponse) => void = (call, response) => this.answer(call, response);
  readonly #server = createServer((request, response) => this.#serve(request, response));

  static async start(): Promise<RenderServer> {
    const server = new RenderServer();
    server.#server.on('connection', () => server.connections++);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  answer({ path, body }: RenderCall, response: ServerResponse): void {
    const { prompt, messages } = body as { prompt?: string; messages?: { content: string }[] };
    const text = prompt ?? messages!.map(({ content }) => content).join('');
    const rendered = { token_ids: [...text].map((letter) => letter.charCodeAt(0)) };
    response.end(JSON.stringify(path.includes('chat') ? rendered : [rendered]));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    // A scrape, where the server plays an endpoint.
    if (request.method === 'GET') return void response.end();
    const call = { path: request.url!, body: JSON.parse(Buffer.concat(pieces).toString()) as unknown };
    this.calls.push(call);
    this.behave(call, response);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
