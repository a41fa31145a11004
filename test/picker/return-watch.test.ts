import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { takesConnections } from '../../dist/src/picker/control/endpoint-check.js';
import { ReturnWatch } from '../../dist/src/picker/control/return-watch.js';
import { startModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { endpointOf } from '../pool/endpoints.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const assignment = { slot: 3, generation: 2, endpoint: endpointOf('a', '10.0.0.1', 8000) };

/** A watch over one slot; `told` are the answers that reached the table. */
function watching(answers: () => boolean, ejection = () => 1) {
  const told: [number, number, boolean][] = [];
  const check = vi.fn(async () => answers());
  const table = {
    get ejected() {
      return ejection() === 0 ? 0 : 1;
    },
    read: () => ({ ejection: ejection() }) as never,
    setReachable: (slot: number, generation: number, reachable: boolean) => {
      told.push([slot, generation, reachable]);
      return true;
    },
  };
  const watch = new ReturnWatch({ table, assignments: () => [assignment], now: () => 5, check, everyMs: 1 });
  watch.start();
  cleanups.push(() => watch.stop());
  return { told, check };
}

describe('an endpoint that is out', () => {
  it('an endpoint that is out is told to be away while it refuses connections, and once that it is back', async () => {
    let up = false;
    const { told, check } = watching(() => up);
    await vi.waitFor(() => expect(told.length).toBeGreaterThan(2));
    up = true;
    const before = check.mock.calls.length;
    await vi.waitFor(() => expect(check.mock.calls.length).toBeGreaterThan(before + 4));
    expect(told.filter(([, , reachable]) => reachable)).toEqual([[3, 2, true]]);
  });

  it('an endpoint that is out is left to its own time when it took connections all along', async () => {
    const { told, check } = watching(() => true);
    await vi.waitFor(() => expect(check.mock.calls.length).toBeGreaterThan(3));
    expect(told).toEqual([]);
  });

  it('an endpoint that is out is not asked while no endpoint is out', async () => {
    let state = 0;
    const { check } = watching(
      () => true,
      () => state,
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(check).not.toHaveBeenCalled();
    state = 1;
    await vi.waitFor(() => expect(check).toHaveBeenCalled());
  });
});

describe('a server takes connections', () => {
  const listening = async (server: Server) => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => new Promise((resolve) => server.close(resolve)));
    return endpointOf('a', '127.0.0.1', (server.address() as { port: number }).port);
  };
  /** Answers every connection with these bytes. */
  const saying = (bytes: string) => listening(createServer((socket) => socket.once('data', () => socket.end(bytes))));

  it('a server takes connections when its health page answers, or it speaks another protocol', async () => {
    const server = await startModelServer();
    cleanups.push(() => server.stop());
    expect(await takesConnections(endpointOf('a', '127.0.0.1', server.port))).toBe(true);
    expect(await takesConnections(await saying('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'))).toBe(true);
    expect(await takesConnections(await saying('\u0015\u0003\u0001\u0000\u0002'))).toBe(true);
  });

  it('a server takes no connections when nothing listens or the health page fails', async () => {
    const server = await startModelServer();
    await server.stop();
    expect(await takesConnections(endpointOf('a', '127.0.0.1', server.port))).toBe(false);
    const failing = 'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n';
    expect(await takesConnections(await saying(failing))).toBe(false);
  });
});
