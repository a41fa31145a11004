import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { closedLoop } from '../../bench/process/http-client.ts';

const HEAD = 'HTTP/1.1 200 OK\r\n';
const chat = { promptBytes: 100, stream: false };
let server: Server;

afterEach(() => server.close());

/** A server that answers each request with these pieces, each in a packet of its own. */
async function answering(...pieces: string[]): Promise<number> {
  const answer = async (socket: Socket) => {
    for await (const _request of socket) {
      for (const piece of pieces) {
        socket.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    }
  };
  server = createServer((socket) => void answer(socket.setNoDelay()).catch(() => undefined));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

describe('chats of a benchmark over HTTP/1.1', () => {
  it.each([
    ['JSON in one piece', [`${HEAD}content-length: 2\r\n\r\n{}`]],
    ['JSON whose body comes later', [`${HEAD}content-length: 2\r\n\r\n`, '{}']],
    ['chunks', [`${HEAD}transfer-encoding: chunked\r\n\r\n`, '2\r\n{}\r\n', '0\r\n\r\n']],
  ])('chats of a benchmark go on behind %s', async (_, pieces) => {
    expect(await closedLoop(await answering(...pieces), chat, 2, 100)).toBeGreaterThanOrEqual(4);
  });

  it('chats of a benchmark end with an error at an answer that is none', async () => {
    const port = await answering('HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n');
    await expect(closedLoop(port, chat, 1, 1_000)).rejects.toThrow('a chat was answered with HTTP/1.1 503');
  });
});
