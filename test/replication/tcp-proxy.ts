import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** Which side of a connection takes nothing: the client (a slow consumer) or the server. */
export type StalledSide = 'client' | 'server';

/** A TCP proxy whose connections can be delayed, stopped and cut. */
export class TcpProxy {
  /** Delay of every byte in both directions. May change at any time: bytes keep their order. */
  delayMs = 0;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  readonly #stalled = new Set<StalledSide>();
  #open = true;

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
    if (this.#stalled.has('client')) target.pause();
    if (this.#stalled.has('server')) client.pause();
  }

  #pipe(from: Socket, to: Socket): void {
    const waiting: Buffer[] = [];
    from.on('data', (bytes) => {
      if (this.delayMs === 0 && waiting.length === 0) return void to.write(bytes);
      waiting.push(bytes);
      // Each timer sends the oldest bytes, so a shorter delay never lets later bytes overtake.
      setTimeout(() => to.write(waiting.shift()!), this.delayMs);
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

  /** Passes nothing more to one side, as if that side read nothing, or goes on. */
  stall(stalled: boolean, side: StalledSide = 'client'): void {
    if (stalled) this.#stalled.add(side);
    else this.#stalled.delete(side);
    for (const [client, target] of this.#pairs) {
      const source = side === 'client' ? target : client;
      if (stalled) source.pause();
      else source.resume();
    }
  }

  async close(): Promise<void> {
    this.partition();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
