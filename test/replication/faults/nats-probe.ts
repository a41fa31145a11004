import { connect, type Socket } from 'node:net';

/** Asks a nats-server for a sign of life, over a connection of its own. */
export class NatsProbe {
  readonly #port: number;
  #socket: Socket | undefined;
  #answered: () => void = () => undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /** Resolves when the server has answered, or its connection has ended. */
  async ping(): Promise<void> {
    this.#socket ??= this.#connect();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#answered = resolve;
    this.#socket.write('PING\r\n');
    await promise;
  }

  #connect(): Socket {
    const socket = connect(this.#port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#socket = undefined;
      this.#answered();
    });
    socket.on('data', (bytes) => {
      if (bytes.includes('PONG')) this.#answered();
    });
    socket.write('CONNECT {"verbose":false,"pedantic":false}\r\n');
    return socket;
  }

  close(): void {
    this.#socket?.destroy();
  }
}
