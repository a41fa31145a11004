import { execFile } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { type Gateway, startGateway } from '../../dist/tools/gateway/gateway.js';
import { type Fleet, startFleet } from '../../dist/tools/simulator/server/fleet.js';
import { ask, chatBody, eventually } from '../tools/gateway/client.ts';
import { metric, PROGRAM, type ServeProcess, Setting, startServe } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface TestBed {
  readonly fleet: Fleet;
  readonly serve: ServeProcess;
  readonly gateway: Gateway;
}

/** Three simulated servers behind a picker and the embedded gateway. */
async function bed(): Promise<TestBed> {
  const fleet = await startFleet(3, { engine: { speedup: 2 } });
  cleanups.push(() => fleet.stop());
  const setting = await Setting.create(fleet.servers.map(({ name, port }) => ({ name, port })));
  cleanups.push(() => setting.remove());
  const serve = await startServe(setting.flags);
  cleanups.push(() => serve.kill());
  const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: serve.grpcPort } });
  cleanups.push(() => gateway.stop());
  return { fleet, serve, gateway };
}

/** Callers that ask one new prompt after the other, streamed and not, until `stop`; those that hang stay. */
function load({ gateway }: TestBed, callers: number) {
  let isOver = false;
  let answered = 0;
  let prompts = 0;
  const one = async (): Promise<void> => {
    while (!isOver) {
      const body = chatBody(`prompt ${prompts++} ${Math.random()}`, { max_tokens: 8, stream: prompts % 2 === 0 });
      const asked = ask(gateway.port, { body }).then(
        ({ status }) => status,
        () => 0,
      );
      if ((await asked) === 200) answered++;
    }
  };
  const all = Array.from({ length: callers }, one);
  const stop = () => {
    isOver = true;
    return Promise.all(all);
  };
  return { answered: () => answered, stop };
}

const gauge = ({ serve }: TestBed, name: string, server: string) =>
  metric(serve.metricsPort, `pointsman_endpoint_${name}`, `endpoint="${server}"`);

function doctor(port: number): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [PROGRAM, 'doctor', `--picker=http://127.0.0.1:${port}`, '--seconds=0'],
      (_error, stdout) => resolve(stdout),
    );
  });
}

describe('a server whose engine hangs', () => {
  it('a server whose engine hangs gets no new requests but a probe, is named by the doctor, and is back with a byte', async () => {
    const all = await bed();
    const callers = load(all, 12);
    cleanups.push(() => callers.stop());
    await eventually('the picker knows what answers take', () => callers.answered() > 200);
    const silent = all.fleet.servers[1]!;
    cleanups.push(() => silent.hang(false));
    silent.hang(true);
    await eventually('it is silent', async () => (await gauge(all, 'silent', silent.name)) === 1, 40_000);
    expect(await gauge(all, 'ejection_state', silent.name)).not.toBe(0);
    expect(await metric(all.serve.metricsPort, 'pointsman_endpoint_silences_total')).toBe(1);
    expect(all.serve.log()).toContain('endpoint silent');
    const before = { reached: silent.stats().requests, answered: callers.answered() };
    const others = load(all, 4);
    cleanups.push(() => others.stop());
    await eventually('the others serve', () => others.answered() + callers.answered() > before.answered + 400, 40_000);
    // One probe at a time, and none of them is answered.
    expect(silent.stats().requests - before.reached).toBeLessThanOrEqual(2);
    expect(await doctor(all.serve.metricsPort)).toContain(`1 of 3 endpoints get no byte: ${silent.name}`);
    silent.hang(false);
    await eventually('it is back', async () => (await gauge(all, 'silent', silent.name)) === 0);
    expect(await gauge(all, 'ejection_state', silent.name)).toBe(0);
    expect(await metric(all.serve.metricsPort, 'pointsman_ejected_endpoints')).toBe(0);
    const back = silent.stats().requests;
    await eventually('it takes its share', () => silent.stats().requests > back + 10);
    expect(all.serve.log()).toContain('endpoint answers again');
  }, 120_000);
});
