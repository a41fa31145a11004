import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { createServer as createRawServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { EndpointSignals } from '../../dist/src/core/endpoint-table.js';
import { EngineTable } from '../../dist/src/pool/engines/engine-table.js';
import type { MetricsInformerOptions } from '../../dist/src/pool/sources/informer-options.js';
import { MetricsInformer } from '../../dist/src/pool/sources/metrics-informer.js';
import { PageReader } from '../../dist/src/pool/sources/page-reader.js';
import { CERTIFICATE, CERTIFICATE_KEY } from './certificate.js';
import { endpointOf } from './endpoints.js';
import { makePlainScanner } from './plain-scanner.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function listen<T extends Server>(server: T, host = '127.0.0.1'): Promise<number> {
  server.listen(0, host);
  await once(server, 'listening');
  cleanups.push(() => server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** A model server; `answer` may be exchanged while it runs. */
async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void, host?: string) {
  const connections = new Set<Socket>();
  const seen = { requests: 0, connections: 0, answer };
  const server = createServer((request, response) => {
    seen.requests += 1;
    seen.answer(request, response);
  });
  server.on('connection', (socket) => {
    seen.connections += 1;
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
  });
  const port = await listen(server, host);
  const dropConnections = () => {
    for (const socket of connections) socket.destroy();
  };
  cleanups.push(dropConnections);
  return { port, seen, dropConnections, connections };
}

/** A server that answers every request with the raw bytes of `answer()`. */
async function serveRaw(answer: (socket: Socket, request: number) => void) {
  const sockets = new Set<Socket>();
  const seen = { requests: 0, connections: 0 };
  const server = createRawServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    seen.connections += 1;
    socket.on('error', () => {});
    socket.on('data', () => {
      seen.requests += 1;
      answer(socket, seen.requests);
    });
  });
  const port = await listen(server);
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
  });
  return { port, seen };
}

interface Published {
  readonly slot: number;
  readonly generation: number;
  readonly signals: EndpointSignals;
}

/** An informer whose sink and log can be waited for. */
function inform(options: Partial<MetricsInformerOptions> = {}) {
  const published: Published[] = [];
  const stale: number[] = [];
  const logged: string[] = [];
  const waiters: (() => void)[] = [];
  const wake = () => {
    for (const waiter of waiters.splice(0)) waiter();
  };
  const log = (_: object, message: string) => {
    logged.push(message);
    wake();
  };
  const informer = new MetricsInformer({
    reader: new PageReader(makePlainScanner(), new EngineTable(), 8 << 20, { info: log, warn: log }, () => {}),
    log: { info: log, warn: log },
    intervalMs: 10,
    sink: {
      publish(slot, generation, signals) {
        published.push({ slot, generation, signals });
        wake();
        return true;
      },
      stale(slot) {
        stale.push(slot);
        wake();
        return true;
      },
    },
    ...options,
  });
  cleanups.push(() => informer.stop());
  /** Waits until something holds; looked at after every call of sink or log. */
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise<void>((resolve) => waiters.push(resolve));
  };
  const poll = (port: number, labels = {}, generation = 1) =>
    informer.setEndpoints([{ slot: 0, generation, endpoint: endpointOf('a', '127.0.0.1', port, labels) }]);
  return { informer, published, stale, logged, until, poll };
}

const page = (waiting: number) => `# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting ${waiting}\n`;
const answerPage = (waiting: number) => (_: IncomingMessage, response: ServerResponse) => response.end(page(waiting));

describe('MetricsInformer', () => {
  it('MetricsInformer publishes what the page of an endpoint says, to its slot and generation', async () => {
    const { port } = await serve(answerPage(7));
    const { published, until, poll } = inform();
    poll(port, {}, 3);
    await until(() => published.length > 0);
    expect(published[0]).toMatchObject({ slot: 0, generation: 3, signals: { waiting: 7, running: undefined } });
  });

  it('MetricsInformer asks for its path in plain text, uncompressed, with the endpoint as host', async () => {
    let request: IncomingMessage | undefined;
    const { port } = await serve((asked, response) => {
      request = asked;
      response.end(page(1));
    });
    const { published, until, poll } = inform({ path: '/other/metrics' });
    poll(port);
    await until(() => published.length > 0);
    expect([request?.method, request?.url, request?.headers.host]).toEqual([
      'GET',
      '/other/metrics',
      `127.0.0.1:${port}`,
    ]);
    expect(request?.headers['accept-encoding']).toBeUndefined();
    expect(request?.headers.accept).toContain('text/plain');
  });

  it('MetricsInformer scrapes another port than the endpoint serves on when told so', async () => {
    const { port } = await serve(answerPage(2));
    const { published, until, poll } = inform({ locate: () => ({ host: '127.0.0.1', port }) });
    poll(1);
    await until(() => published.length > 0);
    expect(published[0]?.signals.waiting).toBe(2);
  });

  it('MetricsInformer scrapes an IPv6 endpoint', async () => {
    const { port } = await serve(answerPage(4), '::1');
    const { informer, published, until } = inform();
    informer.setEndpoints([{ slot: 5, generation: 1, endpoint: endpointOf('a', '::1', port) }]);
    await until(() => published.length > 0);
    expect(published[0]).toMatchObject({ slot: 5, signals: { waiting: 4 } });
  });

  describe('over https', () => {
    const answerSecurely = async () => {
      let connections = 0;
      const server = createSecureServer({ cert: CERTIFICATE, key: CERTIFICATE_KEY }, answerPage(8));
      server.on('secureConnection', () => {
        connections += 1;
      });
      cleanups.push(() => server.closeAllConnections());
      return { port: await listen(server), connections: () => connections };
    };

    it('MetricsInformer over https takes any certificate by default and keeps the connection', async () => {
      const { port, connections } = await answerSecurely();
      const { published, until, poll } = inform({ scheme: 'https' });
      poll(port);
      await until(() => published.length >= 5);
      expect([published[0]?.signals.waiting, connections()]).toEqual([8, 1]);
    });

    it('MetricsInformer over https takes a certificate that the given authority has signed', async () => {
      const { port } = await answerSecurely();
      const { published, until, poll } = inform({
        scheme: 'https',
        tls: { insecureSkipVerify: false, ca: CERTIFICATE },
      });
      poll(port);
      await until(() => published.length > 0);
      expect(published[0]?.signals.waiting).toBe(8);
    });

    it('MetricsInformer over https refuses an unknown certificate when it is to be verified', async () => {
      const { port } = await answerSecurely();
      const { informer, logged, until, poll } = inform({ scheme: 'https', tls: { insecureSkipVerify: false } });
      poll(port);
      await until(() => logged.length > 0);
      expect(logged[0]).toContain('self-signed certificate');
      expect(informer.counts.faults.connect).toBeGreaterThan(0);
    });

    it('MetricsInformer over https counts a server that speaks plain HTTP as not reached', async () => {
      const { port } = await serve(answerPage(1));
      const { informer, logged, until, poll } = inform({ scheme: 'https' });
      poll(port);
      await until(() => logged.length > 0);
      expect(informer.counts.faults.connect).toBeGreaterThan(0);
    });

    it('MetricsInformer over https refuses a certificate that is none when it is made', () => {
      expect(() => inform({ scheme: 'https', tls: { insecureSkipVerify: true, cert: 'x', key: 'y' } })).toThrow();
    });
  });

  it('MetricsInformer keeps one connection over many scrapes', async () => {
    const { port, seen } = await serve(answerPage(1));
    const { published, until, poll } = inform();
    poll(port);
    await until(() => published.length >= 10);
    expect(seen.connections).toBe(1);
  });

  it('MetricsInformer goes on at once, without a fault, when the server has closed the idle connection', async () => {
    const { port, seen } = await serveRaw((socket, request) => {
      // Every second request meets a connection that is closed instead of answered.
      if (request % 2 === 0) socket.destroy();
      else socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${page(request).length}\r\n\r\n${page(request)}`);
    });
    const { informer, published, until, poll } = inform();
    poll(port);
    await until(() => published.length >= 3);
    expect(Object.values(informer.counts.faults).every((count) => count === 0)).toBe(true);
    expect(seen.connections).toBeGreaterThanOrEqual(3);
  });

  it('MetricsInformer does not retry for ever: a server that closes every connection is a fault', async () => {
    const { port } = await serveRaw((socket) => socket.end());
    const { informer, logged, until, poll } = inform();
    poll(port);
    await until(() => logged.length > 0);
    expect(logged[0]).toMatch(/closed the connection/);
    expect(informer.counts.faults.closed).toBeGreaterThan(0);
  });

  it('MetricsInformer takes a page that comes in pieces, chunked, and one that ends with the connection', async () => {
    const body = page(6);
    const { port } = await serveRaw((socket, request) => {
      if (request % 2 === 1) {
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chun');
        setImmediate(() => socket.write(`ked\r\n\r\n${body.length.toString(16)};x=y\r\n${body.slice(0, 9)}`));
        setImmediate(() => setImmediate(() => socket.write(`${body.slice(9)}\r\n0\r\nT: t\r\n\r\n`)));
      } else socket.end(`HTTP/1.1 200 OK\r\n\r\n${body}`);
    });
    const { published, until, poll } = inform();
    poll(port);
    await until(() => published.length >= 4);
    expect(published.map(({ signals }) => signals.waiting)).toEqual(published.map(() => 6));
  });

  it('MetricsInformer takes a page larger than one read', async () => {
    const { port } = await serve((_, response) => response.end(`${'# noise\n'.repeat(60_000)}${page(3)}`));
    const { published, until, poll } = inform();
    poll(port);
    await until(() => published.length > 0);
    expect(published[0]?.signals.waiting).toBe(3);
  });

  it('MetricsInformer follows a page that has moved on its server, and asks there from then on', async () => {
    const asked: string[] = [];
    const { port } = await serve((request, response) => {
      asked.push(request.url!);
      // Where an application is mounted, its server leads to the path with a slash.
      const location = `http://${request.headers.host}/prometheus/metrics/`;
      if (request.url === '/prometheus/metrics') response.writeHead(307, { location }).end('moved');
      else response.end(page(4));
    });
    const { informer, published, logged, until, poll } = inform({ path: '/prometheus/metrics' });
    poll(port);
    await until(() => published.length > 2);
    expect(published[0]?.signals.waiting).toBe(4);
    expect(asked.slice(0, 3)).toEqual(['/prometheus/metrics', '/prometheus/metrics/', '/prometheus/metrics/']);
    expect([informer.counts.faults.status, logged]).toEqual([0, []]);
  });

  it('MetricsInformer asks for its own path again when the place of a redirect has no page any more', async () => {
    let moved = true;
    const { port } = await serve((request, response) => {
      if (request.url === '/metrics' && moved) response.writeHead(308, { location: 'new?a=b' }).end();
      else if (request.url === (moved ? '/new?a=b' : '/metrics')) response.end(page(moved ? 1 : 2));
      else response.writeHead(404).end();
    });
    const { informer, published, until, poll } = inform();
    poll(port);
    await until(() => published.length > 1);
    moved = false;
    await until(() => published.at(-1)?.signals.waiting === 2);
    expect(informer.counts.faults.status).toBe(1);
  });

  const elsewhere = {
    'to another server': 'http://127.0.0.1:9/metrics',
    'in a circle': '/metrics',
    nowhere: 'http://[',
  };
  for (const [where, location] of Object.entries(elsewhere)) {
    it(`MetricsInformer counts a redirect that leads ${where} as a fault, and says where it leads`, async () => {
      const { port } = await serve((_, response) => response.writeHead(302, { location }).end());
      const { informer, logged, until, poll } = inform();
      poll(port);
      await until(() => logged.length > 0);
      expect(logged).toEqual([
        `metrics cannot be scraped yet: the server answered 302 in place of 200 and leads to "${location}": ` +
          'name scheme, port and path of the page in the data source',
      ]);
      expect(informer.counts.faults.status).toBe(1);
    });
  }

  const faults: [string, string, (socket: Socket) => void, Partial<MetricsInformerOptions>?][] = [
    ['status', 'another status than 200', (socket) => socket.write('HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n')],
    ['malformed', 'what is not HTTP', (socket) => socket.write('220 smtp\r\n\r\n')],
    ['closed', 'half a page', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc')],
    [
      'too large',
      'a page over the limit',
      (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n'),
      { pageBytesMax: 100 },
    ],
    ['timeout', 'no answer', () => {}, { timeoutMs: 20 }],
  ];
  for (const [kind, name, answer, options] of faults) {
    it(`MetricsInformer counts ${name} as a fault (${kind}) and says so once`, async () => {
      const { port, seen } = await serveRaw(answer);
      const { informer, published, logged, until, poll } = inform(options);
      poll(port);
      await until(() => logged.length > 0);
      while (seen.requests < 3) await new Promise((resolve) => setImmediate(resolve));
      expect(informer.counts.faults[kind as 'status']).toBeGreaterThanOrEqual(2);
      expect([published.length, logged.length]).toEqual([0, 1]);
    });
  }

  it('MetricsInformer counts a refused connection', async () => {
    const server = createRawServer();
    const port = await listen(server);
    await new Promise((resolve) => server.close(resolve));
    const { informer, logged, until, poll } = inform();
    poll(port);
    await until(() => logged.length > 0);
    expect(informer.counts.faults.connect).toBeGreaterThan(0);
  });

  it('MetricsInformer makes signals stale after the set time without a scrape, fresh with the next', async () => {
    const { port, seen } = await serve(answerPage(1));
    const { informer, published, stale, logged, until, poll } = inform({ stalenessMs: 60 });
    poll(port);
    await until(() => published.length > 0);
    expect(informer.freshness).toMatchObject({ endpoints: 1, stale: 0 });
    seen.answer = (_, response) => response.writeHead(503).end();
    await until(() => stale.length > 0);
    const before = published.length;
    const requests = seen.requests;
    while (seen.requests < requests + 2) await new Promise((resolve) => setImmediate(resolve));
    expect(stale).toEqual([0]);
    expect(informer.freshness).toMatchObject({ endpoints: 1, stale: 1 });
    expect(informer.freshness.oldestMs).toBeGreaterThanOrEqual(60);
    expect(logged.some((message) => message.includes('answered 503'))).toBe(true);
    seen.answer = answerPage(2);
    await until(() => published.length > before && logged.includes('metrics are scraped again'));
    expect(published.at(-1)?.signals.waiting).toBe(2);
  });

  it('MetricsInformer tells the sink again that signals are stale when it could not take it', async () => {
    const { port, seen } = await serve(answerPage(1));
    let tries = 0;
    const waiters: (() => void)[] = [];
    const told = new Promise<void>((resolve) => waiters.push(resolve));
    const { poll } = inform({
      stalenessMs: 30,
      sink: {
        publish() {
          seen.answer = (_, response) => response.writeHead(503).end();
          return true;
        },
        stale() {
          tries += 1;
          if (tries === 3) waiters[0]?.();
          return tries >= 3;
        },
      },
    });
    poll(port);
    await told;
    expect(tries).toBe(3);
  });

  it('MetricsInformer asks a failing endpoint less often', async () => {
    const bad = await serve((_, response) => response.writeHead(500).end());
    const good = await serve(answerPage(1));
    const { informer, published, until } = inform();
    informer.setEndpoints([
      { slot: 0, generation: 1, endpoint: endpointOf('bad', '127.0.0.1', bad.port) },
      { slot: 1, generation: 1, endpoint: endpointOf('good', '127.0.0.1', good.port) },
    ]);
    await until(() => published.length >= 40);
    expect(bad.seen.requests).toBeLessThan(20);
  });

  it('MetricsInformer never has two scrapes of one endpoint under way', async () => {
    let open = 0;
    let most = 0;
    let answered = 0;
    const { port } = await serve((_, response) => {
      open += 1;
      most = Math.max(most, open);
      setTimeout(() => {
        open -= 1;
        answered += 1;
        response.end(page(answered));
      }, 35);
    });
    const { published, until, poll } = inform();
    poll(port);
    await until(() => published.length >= 4);
    expect(most).toBe(1);
  });

  it('MetricsInformer reads the page as the engine of the labels, and follows when they change', async () => {
    const { port } = await serve((_, response) => response.end(`${page(1)}sglang:num_queue_reqs 2\n`));
    const { published, until, poll } = inform();
    poll(port);
    await until(() => published.length > 0);
    poll(port, { 'llm-d.ai/engine-type': 'sglang' });
    await until(() => published.at(-1)?.signals.waiting === 2);
    expect(published[0]?.signals.waiting).toBe(1);
  });

  it('MetricsInformer says once that an engine is unknown and that a page holds none of the metrics', async () => {
    const { port } = await serve((_, response) => response.end('other 1\n'));
    const { informer, published, logged, until, poll } = inform();
    poll(port, { 'llm-d.ai/engine-type': 'mystery' });
    await until(() => published.length >= 3);
    expect(logged.filter((message) => message.includes('engine "mystery" is unknown'))).toHaveLength(1);
    expect(logged.filter((message) => message.includes('none of the metrics of engine vllm'))).toHaveLength(1);
    expect(informer.counts.pagesWithoutSignals).toBeGreaterThanOrEqual(3);
    expect(published[0]?.signals.waiting).toBeUndefined();
  });

  it('MetricsInformer stops polling an endpoint that has gone and closes its connection', async () => {
    const { port, connections } = await serve(answerPage(1));
    const { informer, published, until, poll } = inform();
    poll(port);
    await until(() => published.length > 0);
    const [socket] = connections;
    const closed = once(socket!, 'close');
    informer.setEndpoints([]);
    const before = published.length;
    await closed;
    expect(published.length).toBe(before);
  });

  it('MetricsInformer starts anew when a slot passes to another generation', async () => {
    const { port } = await serve(answerPage(1));
    const { published, until, poll } = inform();
    poll(port, {}, 1);
    await until(() => published.length > 0);
    poll(port, {}, 2);
    await until(() => published.at(-1)?.generation === 2);
    const last = published.length;
    await until(() => published.length >= last + 3);
    expect(published.slice(last).every(({ generation }) => generation === 2)).toBe(true);
  });

  it('MetricsInformer goes on when scanner or sink throw', async () => {
    const { port } = await serve(answerPage(1));
    let calls = 0;
    let reached: () => void = () => {};
    const third = new Promise<void>((resolve) => {
      reached = resolve;
    });
    const { informer, poll } = inform({
      sink: {
        publish() {
          calls += 1;
          if (calls === 3) reached();
          throw new Error('no lock');
        },
        stale: () => true,
      },
    });
    poll(port);
    await third;
    expect(informer.counts.faults.scan).toBeGreaterThanOrEqual(2);
  });

  it('MetricsInformer polls many endpoints evenly, each with its own signals', async () => {
    const servers = await Promise.all(Array.from({ length: 30 }, (_, i) => serve(answerPage(i))));
    const { informer, published, until } = inform();
    informer.setEndpoints(
      servers.map(({ port }, slot) => ({ slot, generation: 1, endpoint: endpointOf(`${slot}`, '127.0.0.1', port) })),
    );
    await until(() => published.length >= 600);
    expect(published.every(({ slot, signals }) => signals.waiting === slot)).toBe(true);
    for (const { seen } of servers) expect(seen.requests).toBeGreaterThan(5);
  });

  for (const [field, options] of [
    ['intervalMs', { intervalMs: 0 }],
    ['timeoutMs', { timeoutMs: Number.NaN }],
    ['path', { path: 'metrics' }],
    ['path', { path: '/a b' }],
  ] as const) {
    it(`MetricsInformer refuses ${field} ${Object.values(options)[0]}`, () => {
      expect(() => inform(options)).toThrow(field);
    });
  }
});

/** Intervals as they are while polls take their share. */
const stretched = (busyMs: number, quietMs: number) => ({
  intervals: { busyMs, quietMs },
  usedShare: 0,
  isStretched: true,
  isOver: false,
  spent() {},
  polled() {},
  look() {},
});

describe('MetricsInformer while polls take their share of a core', () => {
  it('MetricsInformer asks endpoints with traffic, and with signals that change, more often than others', async () => {
    const seen = [0, 0, 0];
    const servers = await Promise.all(
      seen.map((_, i) =>
        serve((_request, response) => {
          seen[i]! += 1;
          response.end(page(i === 2 ? seen[i]! : 0));
        }),
      ),
    );
    // Time runs ten times as fast: an endpoint counts as quiet a tenth of a second after its last change.
    const now = () => performance.now() * 10;
    const { informer, until } = inform({ now, pace: stretched(100, 4_000), hasTraffic: (slot) => slot === 1 });
    informer.setEndpoints(
      servers.map(({ port }, slot) => ({ slot, generation: 1, endpoint: endpointOf(`${slot}`, '127.0.0.1', port) })),
    );
    await until(() => seen[1]! >= 60 && seen[2]! >= 60);
    expect(seen[0]).toBeLessThan(30);
    expect([0, 1, 2].map((slot) => informer.polled(slot)?.intervalMs)).toEqual([4_000, 100, 100]);
  });

  it('MetricsInformer asks a quiet endpoint soon after it has got a request', async () => {
    const { port, seen } = await serve(answerPage(0));
    const now = () => performance.now() * 10;
    let traffic = false;
    const { informer, until, poll } = inform({ now, pace: stretched(100, 1e9), hasTraffic: () => traffic });
    poll(port);
    await until(() => informer.polled(0)?.intervalMs === 1e9);
    const before = seen.requests;
    traffic = true;
    await until(() => seen.requests > before + 2);
    expect(informer.polled(0)?.intervalMs).toBe(100);
  });

  it('MetricsInformer tells once that endpoints with traffic are asked rarely for ten seconds', async () => {
    const { port } = await serve(answerPage(0));
    const now = () => performance.now() * 50;
    const { logged, published, until, poll } = inform({ now, pace: stretched(100, 1_000), hasTraffic: () => true });
    const began = now();
    poll(port);
    const told = () => logged.filter((line) => line.includes('endpoints with traffic are scraped more rarely'));
    await until(() => told().length > 0);
    expect(now() - began).toBeGreaterThanOrEqual(10_000);
    const pages = published.length;
    await until(() => published.length >= pages + 20);
    expect(told()).toEqual([expect.stringContaining('raise --scrape-cpu-percent')]);
  });

  it('MetricsInformer takes signals that are asked for rarely neither for old nor for unknown', async () => {
    const { port } = await serve(answerPage(0));
    const now = () => performance.now() * 50;
    const ages: number[] = [];
    const stale: number[] = [];
    const sink = {
      publish: (_slot: number, _generation: number, _signals: EndpointSignals, nowMs: number, agesFromMs: number) =>
        ages.push(agesFromMs - nowMs) > 0,
      stale: (slot: number) => stale.push(slot) > 0,
    };
    const { informer, poll } = inform({ now, pace: stretched(10, 4_010), stalenessMs: 500, sink });
    poll(port);
    while (informer.polled(0)?.intervalMs !== 4_010) await new Promise((resolve) => setImmediate(resolve));
    // As long as it counted as busy, a pause of the test could make them unknown.
    stale.length = 0;
    while (informer.polled(0)!.ageMs < 2_000) await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect([ages[0], ages.at(-1), stale]).toEqual([0, 4_000, []]);
  });
});
