import { afterEach, describe, expect, it } from 'vitest';
import { startGateway } from '../../dist/tools/gateway/gateway.js';
import { startFleet } from '../../dist/tools/simulator/server/fleet.js';
import { type ModelServer, startModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { Callers, killed, pause } from '../tools/gateway/callers.ts';
import { ask, chatBody, eventually } from '../tools/gateway/client.ts';
import { metric, Setting, startServe } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Simulated servers behind a picker and the embedded gateway. */
async function bed(servers: number, ...flags: string[]) {
  const fleet = await startFleet(servers, { engine: { speedup: 10 } });
  cleanups.push(() => fleet.stop());
  const setting = await Setting.create(fleet.servers.map(({ name, port }) => ({ name, port })));
  cleanups.push(() => setting.remove());
  const serve = await startServe([...setting.flags, ...flags]);
  cleanups.push(() => serve.kill());
  const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: serve.grpcPort } });
  cleanups.push(() => gateway.stop());
  const state = (name: string) => metric(serve.metricsPort, 'pointsman_endpoint_ejection_state', `endpoint="${name}"`);
  return { fleet, serve, gateway, state };
}

describe('endpoints whose processes are killed', () => {
  it('endpoints whose processes are killed, two of three, fail the requests in flight and one probe a second at most', async () => {
    const { fleet, gateway, serve, state } = await bed(3);
    const callers = new Callers(gateway.port, 20);
    await eventually('every server has served', () => fleet.servers.every((server) => server.stats().requests > 20));
    const [first, second, third] = fleet.servers as [ModelServer, ModelServer, ModelServer];
    const atFirst = await killed(() => first.stop());
    await pause(3_000);
    const atSecond = await killed(() => second.stop());
    await pause(3_000);
    await callers.stop();
    const inFlight = callers.inFlightDuring(atFirst) + callers.inFlightDuring(atSecond);
    // Each of the 20 callers has one at each kill, and its next one until the first refusal has come.
    expect(inFlight).toBeLessThanOrEqual(80);
    expect(callers.failures.length - inFlight).toBeLessThanOrEqual(6);
    expect([await state(first.name), await state(second.name), await state(third.name)]).toEqual([3, 3, 0]);
    expect(await metric(serve.metricsPort, 'pointsman_dead_endpoints')).toBe(2);
    expect(await metric(serve.metricsPort, 'pointsman_endpoint_deaths_total')).toBe(2);
    expect(await metric(serve.metricsPort, 'pointsman_ejected_endpoints')).toBe(0);
    expect(await metric(serve.metricsPort, 'pointsman_endpoint_prefix_blocks', `endpoint="${first.name}"`)).toBe(0);
    expect(serve.log()).toContain('endpoint dead: it refuses connections');
  });

  it('an endpoint whose process was killed takes its share again when it listens', async () => {
    const { fleet, gateway, state } = await bed(2);
    const [gone] = fleet.servers as [ModelServer];
    await gone.stop();
    await eventually('it is dead', async () => (await state(gone.name)) === 3);
    const again = await startModelServer({ name: gone.name, port: gone.port });
    cleanups.push(() => again.stop());
    await eventually('it takes its share', async () => {
      await Promise.all([1, 2, 3, 4].map((n) => ask(gateway.port, { body: chatBody(`${n} ${Math.random()}`) })));
      return again.stats().requests > 2;
    });
    expect(await state(gone.name)).toBe(0);
  });

  it('a pool whose endpoints are all gone answers 503 at once, and serves with the first that listens', async () => {
    const { fleet, gateway, serve, state } = await bed(2);
    const [gone] = fleet.servers as [ModelServer];
    const scraped = (name: string) => metric(serve.metricsPort, 'pointsman_endpoint_scraped', `endpoint="${name}"`);
    await eventually('both are reached', async () => {
      const reached = await Promise.all(fleet.servers.map(({ name }) => scraped(name)));
      return reached.every((each) => each === 1);
    });
    await fleet.stop();
    await eventually('both are dead', async () => {
      const states = await Promise.all(fleet.servers.map(({ name }) => state(name)));
      return states.every((each) => each === 3);
    });
    const statuses = await Promise.all(
      [1, 2, 3].map(async (n) => (await ask(gateway.port, { body: chatBody(`${n}`) })).status),
    );
    expect(statuses).toEqual([503, 503, 503]);
    const again = await startModelServer({ name: gone.name, port: gone.port });
    cleanups.push(() => again.stop());
    await eventually('it serves', async () => (await ask(gateway.port, { body: chatBody('again') })).status === 200);
  });

  it('endpoints that answer 503 are not dead: half of them stays among the picks', async () => {
    const { fleet, gateway, serve } = await bed(2);
    for (const server of fleet.servers) server.failWith(503);
    for (let i = 0; i < 20; i++) await ask(gateway.port, { body: chatBody(`${i}`) });
    expect(await metric(serve.metricsPort, 'pointsman_endpoint_deaths_total')).toBe(0);
    for (const server of fleet.servers) expect(server.stats().requests).toBeGreaterThan(0);
  });

  it('endpoints whose processes are gone stay among the picks with --disable-endpoint-ejection', async () => {
    const { fleet, gateway, serve } = await bed(2, '--disable-endpoint-ejection');
    const [server] = fleet.servers as [ModelServer];
    let body = '';
    await eventually('a prompt is held there', async () => {
      body = chatBody(`${Math.random()} `.repeat(200));
      return (await ask(gateway.port, { body })).headers['x-inference-pod'] === server.name;
    });
    await server.stop();
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push((await ask(gateway.port, { body })).status);
    const failed = statuses.filter((status) => status !== 200);
    // Two failures in a row would have taken it out.
    expect(failed.length).toBeGreaterThan(2);
    expect(await metric(serve.metricsPort, 'pointsman_endpoint_deaths_total')).toBe(0);
  });
});

describe('an endpoint that was never reached', () => {
  it('an endpoint that was never reached has a signal age from its joining on, and is told to be unscraped', async () => {
    const { fleet, serve } = await bed(1);
    const [server] = fleet.servers as [ModelServer];
    const labels = `endpoint="${server.name}"`;
    const scraped = () => metric(serve.metricsPort, 'pointsman_endpoint_scraped', labels);
    await eventually('it is scraped', async () => (await scraped()) === 1);
    const absent = await startModelServer();
    await absent.stop();
    const setting = await Setting.create([{ name: 'absent', port: absent.port }]);
    cleanups.push(() => setting.remove());
    const alone = await startServe(setting.flags);
    cleanups.push(() => alone.kill());
    const age = () => metric(alone.metricsPort, 'pointsman_endpoint_signal_age_seconds', 'endpoint="absent"');
    await eventually('its age grows', async () => ((await age()) ?? 0) > 0.1);
    expect(await metric(alone.metricsPort, 'pointsman_endpoint_scraped', 'endpoint="absent"')).toBe(0);
  });
});
