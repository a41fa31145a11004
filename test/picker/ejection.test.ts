import { afterEach, describe, expect, it } from 'vitest';
import { type Gateway, startGateway } from '../../dist/tools/gateway/gateway.js';
import { type Fleet, startFleet } from '../../dist/tools/simulator/server/fleet.js';
import { startModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { ask, chatBody, eventually } from '../tools/gateway/client.ts';
import { metric, type ServeProcess, Setting, startServe } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface TestBed {
  readonly fleet: Fleet;
  readonly serve: ServeProcess;
  readonly gateway: Gateway;
}

/** Four simulated servers behind a picker and the embedded gateway. */
async function bed(...flags: string[]): Promise<TestBed> {
  const fleet = await startFleet(4, { engine: { speedup: 100 } });
  cleanups.push(() => fleet.stop());
  const setting = await Setting.create(fleet.servers.map(({ name, port }) => ({ name, port })));
  cleanups.push(() => setting.remove());
  const serve = await startServe([...setting.flags, ...flags]);
  cleanups.push(() => serve.kill());
  const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: serve.grpcPort } });
  cleanups.push(() => gateway.stop());
  return { fleet, serve, gateway };
}

let prompts = 0;
/** One request after the other, none like another; resolves to their statuses. */
async function requests({ gateway }: TestBed, count: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i++) {
    const body = chatBody(`prompt ${prompts++} ${Math.random()}`, { max_tokens: 1 });
    statuses.push((await ask(gateway.port, { body })).status);
  }
  return statuses;
}

const state = ({ serve }: TestBed, server: string) =>
  metric(serve.metricsPort, 'pointsman_endpoint_ejection_state', `endpoint="${server}"`);

async function untilEjected(all: TestBed, server: string): Promise<void> {
  await eventually(`${server} is out`, async () => {
    await requests(all, 4);
    return (await state(all, server)) !== 0;
  });
}

describe('an endpoint that answers 503', () => {
  it('an endpoint that answers 503 is out of the picks, counted and shown, and back after a good probe', async () => {
    const all = await bed();
    const failing = all.fleet.servers[0]!;
    failing.failWith(503);
    await untilEjected(all, failing.name);
    expect(await metric(all.serve.metricsPort, 'pointsman_endpoint_ejections_total')).toBe(1);
    expect(await metric(all.serve.metricsPort, 'pointsman_ejected_endpoints')).toBe(1);
    expect(all.serve.log()).toContain('endpoint ejected');
    const before = failing.stats().requests;
    const statuses = await requests(all, 40);
    const reached = failing.stats().requests - before;
    // An endpoint that is out gets probes alone; only they may fail.
    expect(reached).toBeLessThanOrEqual(4);
    expect(statuses.filter((status) => status !== 200)).toHaveLength(reached);
    failing.failWith(undefined);
    await eventually('it is back', async () => {
      await requests(all, 4);
      return (await state(all, failing.name)) === 0;
    });
    expect(await metric(all.serve.metricsPort, 'pointsman_ejected_endpoints')).toBe(0);
    const recovered = failing.stats().requests;
    await eventually('it takes its share', async () => {
      await requests(all, 4);
      return failing.stats().requests > recovered + 2;
    });
  });

  it('an endpoint that answers 503 stays among the picks with --disable-endpoint-ejection', async () => {
    const all = await bed('--disable-endpoint-ejection');
    const failing = all.fleet.servers[0]!;
    failing.failWith(503);
    await eventually('it was asked well beyond what ejects', async () => {
      await requests(all, 4);
      return failing.stats().requests >= 10;
    });
    expect(await state(all, failing.name)).toBe(0);
    expect(await metric(all.serve.metricsPort, 'pointsman_endpoint_ejections_total')).toBe(0);
  });
});

describe('an endpoint whose process is gone', () => {
  it('an endpoint whose process is gone fails four requests at most, and is back when it listens again', async () => {
    const all = await bed();
    const gone = all.fleet.servers[1]!;
    await gone.stop();
    const statuses: number[] = [];
    await eventually('it is out', async () => {
      statuses.push(...(await requests(all, 20)));
      return (await state(all, gone.name)) !== 0;
    });
    statuses.push(...(await requests(all, 200)));
    expect(statuses.filter((status) => status !== 200).length).toBeLessThanOrEqual(4);
    expect(await metric(all.serve.metricsPort, 'pointsman_ledger_entries')).toBe(0);
    const again = await startModelServer({ name: gone.name, port: gone.port });
    cleanups.push(() => again.stop());
    await eventually('it takes its share', async () => {
      await requests(all, 4);
      return again.stats().requests > 2;
    });
    expect(await state(all, gone.name)).toBe(0);
  });
});
