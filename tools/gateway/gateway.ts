import { Agent, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Exchange } from './exchange.js';
import { type PickerAddress, PickerClient } from './picker-client.js';

export interface GatewayOptions {
  readonly host?: string;
  /** 0 = a free port. */
  readonly port: number;
  readonly picker: PickerAddress;
  /**
   * Whether requests are spread over `endpoints` in turn without the picker, instead of answered with 500. Default:
   * false.
   */
  readonly failOpen?: boolean;
  /** `host:port` of every model server, for `failOpen`. */
  readonly endpoints?: readonly string[];
  /** Requests in progress; more are answered 503. Default: 40,000, as the Envoy configuration in deploy/envoy. */
  readonly maxRequests?: number;
  /** Longest wait for the picker's answer to the request, in milliseconds. Default: 1,000,000, as in deploy/envoy. */
  readonly messageTimeoutMs?: number;
}

export interface Gateway {
  readonly address: string;
  readonly port: number;
  /** Requests in progress. */
  readonly requests: number;
  /** Closes the port and every connection. */
  stop(): Promise<void>;
}

/**
 * Starts the embedded development gateway: an HTTP/1.1 proxy that asks the picker over ext_proc where each request
 * goes, as Envoy does. For one machine and one pool; production traffic belongs behind a real proxy.
 * Rejects when the port is in use.
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const picker = new PickerClient(options.picker);
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 256 });
  const maxRequests = options.maxRequests ?? 40_000;
  const endpoints = options.endpoints ?? [];
  let requests = 0;
  let turn = 0;
  const context = {
    picker,
    agent,
    messageTimeoutMs: options.messageTimeoutMs ?? 1_000_000,
    failOpen: options.failOpen ?? false,
    nextEndpoint: () => endpoints[turn++ % endpoints.length],
  };
  const server = createServer((request, response) => {
    if (requests >= maxRequests) {
      response.writeHead(503, { 'content-type': 'text/plain', 'retry-after': '1' }).end('gateway overloaded');
      return;
    }
    requests++;
    response.on('close', () => requests--);
    new Exchange(context, request, response);
  });
  server.keepAliveTimeout = 60_000;
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host ?? '127.0.0.1', resolve);
  });
  const { address, port } = server.address() as AddressInfo;
  return {
    address,
    port,
    get requests() {
      return requests;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => {
          picker.close();
          agent.destroy();
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
