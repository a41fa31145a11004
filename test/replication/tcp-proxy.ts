import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** A TCP proxy whose connections can be delayed, stopped and cut. */
export class TcpProxy {
  /** Delay of every byte in both directions. */
  delayMs = 0;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #open = true;
  #stalled = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server);
    server.on('connection', (client) => proxy.#accept(client, targetPort));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  #accept(client: Socket, targetPort: number): void {
    if (!this.#open) return void client.destroy();
    const target = connect(targetPort, '127.0.0.1');
    const pair = [client, target] as const;
    this.#pairs.add(pair);
    this.#pipe(client, target);
    this.#pipe(target, client);
    for (const socket of pair) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#pairs.delete(pair);
        client.destroy();
        target.destroy();
      });
    }
    if (this.#stalled) target.pause();
  }

  #pipe(from: Socket, to: Socket): void {
    from.on('data', (bytes) => {
      if (this.delayMs === 0) to.write(bytes);
      else setTimeout(() => to.write(bytes), this.delayMs);
    });
  }

  /** Ends every connection; new ones are taken. */
  cut(): void {
    for (const [client, target] of this.#pairs) {
      client.destroy();
      target.destroy();
    }
  }

  /** Ends every connection and takes no new one until `heal`. */
  partition(): void {
    this.#open = false;
    this.cut();
  }

  heal(): void {
    this.#open = true;
  }

  /** Takes nothing from the server any more, as a slow consumer, or goes on. */
  stall(stalled: boolean): void {
    this.#stalled = stalled;
    for (const [, target] of this.#pairs) {
      if (stalled) target.pause();
      else target.resume();
    }
  }

  async close(): Promise<void> {
    this.partition();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
