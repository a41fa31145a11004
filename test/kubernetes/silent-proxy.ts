import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A TCP proxy that can go silent, so that connections stay open on both sides and carry nothing, as behind a dead
 * middle box, and that can break connections off.
 */
export class SilentProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #silent = false;

  private constructor(server: Server, target: number) {
    this.#server = server;
    server.on('connection', (client) => {
      const upstream = connect(target, '127.0.0.1');
      this.#carry(client, upstream);
      this.#carry(upstream, client);
    });
  }

  static async start(target: number): Promise<SilentProxy> {
    const server = createServer();
    const proxy = new SilentProxy(server, target);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** From now on nothing passes, on open and on new connections. */
  silence(): void {
    this.#silent = true;
  }

  /** New connections pass again; those of the silence stay dead. */
  async open(): Promise<void> {
    this.#silent = false;
    for (const socket of this.#sockets) socket.removeAllListeners('data').pause();
  }

  /** Breaks all connections off; new ones pass. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #carry(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      if (!this.#silent) to.destroy();
    });
    from.on('data', (piece) => {
      if (!this.#silent) to.write(piece);
    });
  }
}
