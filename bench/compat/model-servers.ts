// Model servers that only have a metrics page. Both pickers read the same ones.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What one page says. */
export interface Load {
  readonly waiting: number;
  readonly running: number;
  readonly kvUsage: number;
}

export class ModelServer {
  readonly #server: Server;
  #page = '';
  /** Times that the page was read. */
  reads = 0;

  private constructor() {
    this.#server = createServer((request, response) => {
      if (request.url?.startsWith('/metrics') === true) this.reads++;
      response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(this.#page);
    });
  }

  /** @param host an address of the loopback network: llm-d-router tells the endpoints of a subset hint by IP alone */
  static async start(host: string): Promise<ModelServer> {
    const server = new ModelServer();
    server.show({ waiting: 0, running: 0, kvUsage: 0 });
    await new Promise<void>((resolve) => server.#server.listen(0, host, resolve));
    return server;
  }

  get address(): AddressInfo {
    return this.#server.address() as AddressInfo;
  }

  show({ waiting, running, kvUsage }: Load): void {
    const gauge = (name: string, value: number) => `# TYPE ${name} gauge\n${name}{model_name="m"} ${value}\n`;
    this.#page =
      gauge('vllm:num_requests_waiting', waiting) +
      gauge('vllm:num_requests_running', running) +
      gauge('vllm:kv_cache_usage_perc', kvUsage);
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
