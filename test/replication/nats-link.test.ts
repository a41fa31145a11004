import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { NatsLink } from '../../dist/src/replication/nats-link.js';
import { eventually } from '../tools/gateway/client.ts';

const INFO = {
  server_id: 'a',
  version: '2.10.0',
  proto: 1,
  headers: true,
  max_payload: 1_048_576,
  auth_required: true,
};
const REFUSAL = "-ERR 'Authorization Violation'\r\n";

/** A server of the protocol's head that refuses the credentials of some connections. */
class RefusingServer {
  readonly sockets: Socket[] = [];
  readonly #server: Server;

  /** @param refuses whether the connection of this number, from 0, is refused */
  constructor(refuses: (connection: number) => boolean) {
    this.#server = createServer((socket) => {
      const number = this.sockets.push(socket) - 1;
      socket.on('error', () => {});
      socket.write(`INFO ${JSON.stringify(INFO)}\r\n`);
      socket.on('data', (bytes) => {
        const text = bytes.toString();
        if (text.includes('CONNECT') && refuses(number)) return void socket.end(REFUSAL);
        if (text.includes('PING')) socket.write('PONG\r\n');
      });
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `nats://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
  }
}

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe('a link over NATS', () => {
  it('a link over NATS comes back when its credentials were refused for a while after a break', async () => {
    const server = new RefusingServer((connection) => connection >= 1 && connection <= 4);
    cleanups.push(() => server.close());
    const link = new NatsLink({ url: await server.listen(), user: 'u', password: 'p', group: 'g', replica: 'r' });
    const told: string[] = [];
    const events = {
      connected: () => told.push('connected'),
      disconnected: () => told.push('disconnected'),
      message: () => {},
      alone: () => {},
    };
    link.open(events);
    cleanups.push(() => link.close());
    await eventually('the link is there', () => link.connected, 10_000);
    server.sockets[0]!.destroy();
    await eventually('the link is there again', () => told.filter((what) => what === 'connected').length > 1, 20_000);
    // Each refused try is told as a reconnection of its own, all at once.
    await setTimeout(200);
    expect(server.sockets.length).toBeGreaterThan(5);
    expect(told).toEqual(['connected', 'disconnected', 'connected']);
  }, 40_000);
});
