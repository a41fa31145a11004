import { createHash, randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { type Gateway, type GatewayOptions, startGateway } from '../../../dist/tools/gateway/gateway.js';
import { type Backend, type Behaviour, Gate, sseEvent, startBackend } from './backend.ts';
import { ask, begin, chatBody, eventually, nextPiece, open } from './client.ts';
import {
  bodyReply,
  headersReply,
  immediateReply,
  type PickerDouble,
  pickInTurn,
  startPickerDouble,
} from './picker-double.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function bed(
  backends = 1,
  options: Partial<GatewayOptions> = {},
  behaviour?: Behaviour,
): Promise<{ gateway: Gateway; double: PickerDouble; servers: Backend[] }> {
  const servers = await Promise.all(
    Array.from({ length: backends }, (_, index) => startBackend(`s${index}`, behaviour)),
  );
  for (const server of servers) stops.push(server.stop);
  const double = await startPickerDouble(servers.map((server) => `127.0.0.1:${server.port}`));
  stops.push(double.stop);
  const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: double.port }, ...options });
  stops.push(gateway.stop);
  return { gateway, double, servers };
}

describe('the request that the picker sees', () => {
  test('the request headers come first, with pseudo headers, raw values and the protocol configuration', async () => {
    const { gateway, double } = await bed();
    await ask(gateway.port, { body: chatBody('hello'), headers: { 'x-team': 'Zürich' } });
    const first = double.streams[0]!.messages[0]!;
    expect(first.kind).toBe('request_headers');
    expect(first.endOfStream).toBe(false);
    expect(first.fields).toEqual([2, 11]);
    expect(first.headers).toMatchObject({
      ':method': 'POST',
      ':path': '/v1/chat/completions',
      ':authority': `127.0.0.1:${gateway.port}`,
      ':scheme': 'http',
      'content-type': 'application/json',
    });
    expect(first.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(first.headers).not.toHaveProperty('connection');
  });

  test('a body ends with an empty message of its own', async () => {
    const { gateway, double } = await bed();
    await ask(gateway.port, { body: chatBody('hello') });
    const bodies = double.streams[0]!.messages.filter((message) => message.kind === 'request_body');
    expect(bodies.map((message) => [message.body.toString(), message.endOfStream])).toEqual([
      [chatBody('hello'), false],
      ['', true],
    ]);
  });

  test('a request without a body ends with its headers', async () => {
    const { gateway, double, servers } = await bed();
    const answer = await ask(gateway.port, { method: 'GET', path: '/v1/models' });
    expect(answer.status).toBe(200);
    expect(double.streams[0]!.messages[0]!.endOfStream).toBe(true);
    expect(servers[0]!.received[0]).toMatchObject({ method: 'GET', path: '/v1/models' });
  });

  test('the response headers carry the status and the endpoint that served', async () => {
    const { gateway, double, servers } = await bed();
    await ask(gateway.port, { body: chatBody('hello') });
    const headers = double.streams[0]!.messages.find((message) => message.kind === 'response_headers')!;
    expect(headers.headers[':status']).toBe('200');
    expect(headers.metadata).toContain('x-gateway-destination-endpoint-served');
    expect(headers.metadata).toContain(`127.0.0.1:${servers[0]!.port}`);
  });

  test('the stream is half-closed after the answer', async () => {
    const { gateway, double } = await bed();
    await ask(gateway.port, { body: chatBody('hello') });
    await eventually('the stream ends', () => double.streams[0]!.ended);
    expect(double.streams[0]!.cancelled).toBe(false);
  });
});

describe('the messages to model server and client', () => {
  test('the chosen endpoint serves, and the header mutations of both phases are applied', async () => {
    const { gateway, servers } = await bed(2);
    const answers = [];
    for (let index = 0; index < 4; index++) answers.push(await ask(gateway.port, { body: chatBody('hello') }));
    expect(answers.map((answer) => answer.headers['x-inference-pod'])).toEqual(['s0', 's1', 's0', 's1']);
    expect(answers[0]!.headers['x-double']).toBe('yes');
    expect(servers[0]!.received[0]!.headers['x-gateway-destination-endpoint']).toBe(`127.0.0.1:${servers[0]!.port}`);
  });

  test('a body edited by the picker arrives with its new length', async () => {
    const { gateway, double, servers } = await bed();
    const edited = chatBody('hello', { model: 'a-much-longer-name' });
    double.script = (message, stream, self) => {
      if (message.kind !== 'request_body') pickInTurn(message, stream, self);
      else if (message.endOfStream) {
        const headers = {
          'x-gateway-destination-endpoint': self.destinations[0]!,
          'Content-Length': String(edited.length),
        };
        stream.call.write(headersReply('request', headers));
        stream.call.write(bodyReply('request', Buffer.from(edited), true));
      }
    };
    await ask(gateway.port, { body: chatBody('hello') });
    expect(servers[0]!.received[0]!.body.toString()).toBe(edited);
    expect(servers[0]!.received[0]!.headers['content-length']).toBe(String(edited.length));
  });

  test('five megabytes arrive and come back byte for byte', async () => {
    const echo: Behaviour = (received, response) => response.end(received.body);
    const { gateway } = await bed(1, {}, echo);
    const body = randomBytes(5 * 1024 * 1024);
    const answer = await ask(gateway.port, { body });
    expect(sha(answer.body)).toBe(sha(body));
  });

  test('server-sent events pass one by one, each before the next is written', async () => {
    const gate = new Gate();
    const lockstep: Behaviour = async (_received, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let index = 0; index < 5; index++) {
        response.write(sseEvent('m', `token ${index}`));
        await gate.next();
      }
      response.end('data: [DONE]\n\n');
    };
    const { gateway } = await bed(1, {}, lockstep);
    const { answer } = await begin(gateway.port, { body: chatBody('hello', { stream: true }) });
    for (let index = 0; index < 5; index++) {
      expect(await nextPiece(answer)).toBe(sseEvent('m', `token ${index}`));
      gate.go();
    }
    expect(await nextPiece(answer)).toBe('data: [DONE]\n\n');
  });

  test('an empty answer ends with its headers', async () => {
    const { gateway, double } = await bed(1, {}, (_received, response) => response.writeHead(204).end());
    const answer = await ask(gateway.port, { body: chatBody('hello') });
    expect(answer.status).toBe(204);
    expect(double.streams[0]!.messages.at(-1)).toMatchObject({ kind: 'response_headers', endOfStream: true });
  });

  test('an immediate response is the answer, with its headers', async () => {
    const { gateway, double, servers } = await bed();
    double.script = (message, stream) => {
      if (message.endOfStream) stream.call.write(immediateReply(429, 'inference error: no', { 'retry-after': '1' }));
    };
    const answer = await ask(gateway.port, { body: chatBody('hello') });
    expect(answer.status).toBe(429);
    expect(answer.headers['retry-after']).toBe('1');
    expect(answer.body.toString()).toBe('inference error: no');
    expect(servers[0]!.received).toHaveLength(0);
  });

  test('the destination that the client asks for is overwritten', async () => {
    const { gateway } = await bed();
    const headers = { 'x-gateway-destination-endpoint': '127.0.0.1:1' };
    expect((await ask(gateway.port, { body: chatBody('hello'), headers })).status).toBe(200);
  });
});

describe('a picker that answers nonsense', () => {
  test('a status that HTTP does not know becomes 500', async () => {
    const { gateway, double } = await bed();
    double.script = (message, stream) => {
      if (message.endOfStream) stream.call.write(immediateReply(7, 'odd'));
    };
    expect((await ask(gateway.port, { body: chatBody('hello') })).status).toBe(500);
  });

  test.each([
    ['bytes that are not protobuf', [Buffer.from([7, 7, 7])]],
    ['the body before the headers', [bodyReply('request', Buffer.from('x'), true)]],
    ['response headers before the request', [headersReply('response', {})]],
    ['the headers twice', [headersReply('request', {}), headersReply('request', {})]],
    [
      'a path that is none',
      [headersReply('request', { ':path': 'a b\r\nc', 'x-gateway-destination-endpoint': '127.0.0.1:1' })],
    ],
  ])('%s is answered 500', async (_what, replies) => {
    const { gateway, double } = await bed();
    double.script = (message, stream) => {
      if (message.endOfStream) for (const reply of replies) stream.call.write(reply);
    };
    expect((await ask(gateway.port, { body: chatBody('hello') })).status).toBe(500);
  });
});

describe('destinations', () => {
  test('the next of the list serves when the first refuses', async () => {
    const { gateway, double } = await bed();
    double.destinations = [`127.0.0.1:1, ${double.destinations[0]}`];
    const answer = await ask(gateway.port, { body: chatBody('hello') });
    expect(answer.headers['x-inference-pod']).toBe('s0');
  });

  test('the client gets 503 when all destinations refuse, and the picker hears of it', async () => {
    const { gateway, double } = await bed();
    double.destinations = ['127.0.0.1:1'];
    const answer = await ask(gateway.port, { body: chatBody('hello') });
    expect(answer.status).toBe(503);
    const headers = double.streams[0]!.messages.find((message) => message.kind === 'response_headers')!;
    expect(headers.headers[':status']).toBe('503');
    expect(double.streams[0]!.messages.at(-1)).toMatchObject({ kind: 'response_body', endOfStream: true });
  });

  test('a destination that is not host:port is answered 503', async () => {
    const { gateway, double } = await bed();
    double.destinations = ['nowhere'];
    const answer = await ask(gateway.port, { body: chatBody('hello') });
    expect(answer.status).toBe(503);
    expect(answer.body.toString()).toContain('"nowhere" is not host:port');
  });
});

describe('ends before the end', () => {
  test('a client that hangs up ends the ext_proc stream without an end of stream', async () => {
    const { gateway, double } = await bed(1, {}, () => {});
    const request = open(gateway.port, { body: chatBody('hello') });
    request.on('error', () => {});
    request.end(chatBody('hello'));
    await eventually('the picker chose', () => double.streams[0]?.messages.at(-1)?.endOfStream === true);
    request.destroy();
    await eventually('the stream ends', () => double.streams[0]!.ended || double.streams[0]!.cancelled);
    expect(double.streams[0]!.messages.some((message) => message.kind === 'response_headers')).toBe(false);
  });

  test('a model server that breaks off breaks the answer off', async () => {
    const gate = new Gate();
    const broken: Behaviour = async (_received, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sseEvent('m', 'half'));
      await gate.next();
      response.destroy();
    };
    const { gateway, double } = await bed(1, {}, broken);
    const { answer } = await begin(gateway.port, { body: chatBody('hello') });
    expect(await nextPiece(answer)).toBe(sseEvent('m', 'half'));
    const brokenOff = new Promise((resolve) => answer.on('error', resolve));
    gate.go();
    await brokenOff;
    await eventually('the stream ends', () => double.streams[0]!.ended);
  });

  test('more requests than allowed are answered 503 at once', async () => {
    const { gateway, servers } = await bed(1, { maxRequests: 1 }, () => {});
    const first = open(gateway.port, { body: chatBody('hello') });
    first.on('error', () => {});
    first.end(chatBody('hello'));
    await eventually('the first is on its way', () => servers[0]!.received.length === 1);
    const answer = await ask(gateway.port, { body: chatBody('hello') });
    expect(answer.status).toBe(503);
    expect(answer.headers['retry-after']).toBe('1');
    first.destroy();
  });

  test('a picker that does not answer in time is answered 504', async () => {
    const { gateway, double } = await bed(1, { messageTimeoutMs: 50 });
    double.script = () => {};
    expect((await ask(gateway.port, { body: chatBody('hello') })).status).toBe(504);
  });
});

describe('without the picker', () => {
  test('failing closed answers 500, and serves again when the picker is back', async () => {
    const { gateway, double } = await bed();
    await double.stop();
    expect((await ask(gateway.port, { body: chatBody('hello') })).status).toBe(500);
    const again = await startPickerDouble(double.destinations, double.port);
    stops.push(again.stop);
    await eventually('it serves', async () => (await ask(gateway.port, { body: chatBody('hello') })).status === 200);
  });

  test('failing open serves the unchanged body from the endpoints in turn', async () => {
    const { gateway, double, servers } = await bed(2);
    const endpoints = servers.map((server) => `127.0.0.1:${server.port}`);
    const picker = { host: '127.0.0.1', port: double.port };
    const open = await startGateway({ port: 0, picker, failOpen: true, endpoints });
    stops.push(open.stop);
    await double.stop();
    const pods = [];
    for (let index = 0; index < 4; index++) {
      pods.push((await ask(open.port, { body: chatBody('hello') })).headers['x-inference-pod']);
    }
    expect(pods).toEqual(['s0', 's1', 's0', 's1']);
    expect(servers[0]!.received[0]!.body.toString()).toBe(chatBody('hello'));
    expect((await ask(gateway.port, { body: chatBody('hello') })).status).toBe(500);
  });

  test.each([
    ['a body that was kept is sent again', 1_000_000, 200],
    ['a body over the bound is lost, and the client is told', 9 * 1024 * 1024, 500],
  ])('failing open with a picker that dies after the body: %s', async (_what, bytes, status) => {
    const { double, servers } = await bed();
    const picker = { host: '127.0.0.1', port: double.port };
    const endpoints = [`127.0.0.1:${servers[0]!.port}`];
    const open = await startGateway({ port: 0, picker, failOpen: true, endpoints });
    stops.push(open.stop);
    double.script = (message, _stream, self) => {
      if (message.endOfStream) self.stop();
    };
    const answer = await ask(open.port, { body: chatBody('x'.repeat(bytes)) });
    expect(answer.status).toBe(status);
  });

  test('failing open lets a stream under way go on to its end', async () => {
    const gate = new Gate();
    const behaviour: Behaviour = async (_received, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sseEvent('m', 'one'));
      await gate.next();
      response.end(sseEvent('m', 'two'));
    };
    const { double, servers } = await bed(1, {}, behaviour);
    const endpoints = servers.map((server) => `127.0.0.1:${server.port}`);
    const picker = { host: '127.0.0.1', port: double.port };
    const gateway = await startGateway({ port: 0, picker, failOpen: true, endpoints });
    stops.push(gateway.stop);
    const { answer } = await begin(gateway.port, { body: chatBody('hello', { stream: true }) });
    expect(await nextPiece(answer)).toBe(sseEvent('m', 'one'));
    await double.stop();
    gate.go();
    expect(await nextPiece(answer)).toBe(sseEvent('m', 'two'));
  });

  test('failing closed breaks a stream under way', async () => {
    const behaviour: Behaviour = (_received, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sseEvent('m', 'one'));
    };
    const { gateway, double } = await bed(1, {}, behaviour);
    const { answer } = await begin(gateway.port, { body: chatBody('hello', { stream: true }) });
    expect(await nextPiece(answer)).toBe(sseEvent('m', 'one'));
    const broken = new Promise((resolve) => answer.on('error', resolve));
    await double.stop();
    await broken;
  });

  test('a picker that ends the stream after the request phase leaves the answer to the gateway', async () => {
    const { gateway, double } = await bed();
    double.script = (message, stream, self) => {
      pickInTurn(message, stream, self);
      if (message.kind === 'request_body' && message.endOfStream) stream.call.end();
    };
    const answer = await ask(gateway.port, { body: chatBody('hello') });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body.toString()).choices[0].message.content).toBe('s0');
  });
});

test('a busy port rejects with EADDRINUSE', async () => {
  const { gateway } = await bed();
  const second = startGateway({ port: gateway.port, picker: { host: '127.0.0.1', port: 1 } });
  await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

function sha(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
