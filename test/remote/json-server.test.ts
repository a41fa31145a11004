import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { JsonServers, UnexpectedStatus } from '../../dist/src/remote/json-server.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function server(answer: RequestListener): Promise<string> {
  const http = createServer(answer);
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    http.closeAllConnections();
    return new Promise((resolve) => http.close(resolve));
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

function connections(answerBytesMax = 1_000): JsonServers {
  const made = new JsonServers({ connections: 1, answerBytesMax });
  cleanups.push(() => made.close());
  return made;
}

const waits = new AbortController().signal;

describe('a server that takes JSON', () => {
  it('a server that takes JSON gets what is posted, with its path and its type, and its answer comes back as text', async () => {
    const url = await server(async (request, response) => {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece as Buffer);
      response.end(`${request.method} ${request.url} ${request.headers['content-type']} ${Buffer.concat(pieces)}`);
    });
    const made = connections();
    expect(await made.post(`${url}/a?b=c`, '{"d":1}', waits)).toBe('POST /a?b=c application/json {"d":1}');
    expect(await made.post(`${url}/a`, Buffer.from('é'), waits)).toBe('POST /a application/json é');
  });

  it('a server that takes JSON is told by its status when that is no success, and the connection stays of use', async () => {
    let asked = 0;
    const url = await server((_request, response) => {
      response.writeHead(asked++ === 0 ? 422 : 201).end('{}');
    });
    const made = connections();
    const refused = await made.post(url, '{}', waits).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(UnexpectedStatus);
    expect(refused).toMatchObject({ status: 422, message: `${url} has answered with status 422` });
    expect(await made.post(url, '{}', waits)).toBe('{}');
  });

  it('a server that takes JSON is given up when its answer is longer than allowed', async () => {
    const url = await server((_request, response) => response.end('x'.repeat(1_001)));
    await expect(connections().post(url, '{}', waits)).rejects.toThrow('an answer of more than 1000 bytes');
    expect(await connections(1_001).post(url, '{}', waits)).toHaveLength(1_001);
  });

  it('a server that takes JSON is given up when the signal says so, and when the connections are closed', async () => {
    const ending = new AbortController();
    const url = await server(() => ending.abort());
    await expect(connections().post(url, '{}', ending.signal)).rejects.toThrow('abort');
    const made = connections();
    const closing = await server(() => void made.close());
    await expect(made.post(closing, '{}', waits)).rejects.toThrow();
  });
});
