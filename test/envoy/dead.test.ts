import { afterEach, describe, expect, it } from 'vitest';
import { Callers, killed, pause } from '../tools/gateway/callers.ts';
import { eventually } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { startRetryingEnvoy } from './retrying-envoy.ts';
import { type ServerProcess, startServerProcesses } from './server-process.ts';
import { pickerMetric, startTestBed, type TestBed } from './test-bed.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function threeServers(profile?: string): Promise<TestBed<ServerProcess>> {
  const bed = await startTestBed(await startServerProcesses(3, 10), profile === undefined ? {} : { profile });
  cleanups.push(() => bed.stop());
  return bed;
}

/** Prefixes and queues as by default, and three destinations for each request. */
const LISTS = `plugins:
- type: queue-scorer
- type: prefix-cache-scorer
- {type: max-score-picker, parameters: {maxNumOfEndpoints: 3}}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: prefix-cache-scorer, weight: 3}
  - {pluginRef: max-score-picker}
`;

const said = ({ failures }: Callers) => failures.map(({ startedAt, said }) => `${startedAt} ${said}`).join('\n');

describe.skipIf(skipReason !== '')(`servers killed behind Envoy${skipReason}`, () => {
  it('servers killed behind Envoy, two of three, fail the requests in flight and one probe a second at most', async () => {
    const { envoy, servers, picker } = await threeServers();
    const callers = new Callers(envoy.port, 20);
    await eventually('the load runs', () => callers.answered > 200);
    const atFirst = await killed(() => servers[0]!.kill());
    await pause(3_000);
    const atSecond = await killed(() => servers[1]!.kill());
    await pause(3_000);
    await callers.stop();
    const inFlight = callers.inFlightDuring(atFirst) + callers.inFlightDuring(atSecond);
    // Each of the 20 callers has one at each kill, and its next one until the first refusal has come.
    expect(inFlight).toBeLessThanOrEqual(80);
    expect(callers.failures.length - inFlight, said(callers)).toBeLessThanOrEqual(6);
    expect(await pickerMetric(picker, 'pointsman_dead_endpoints')).toBe(2);
  });

  it.each([
    ['that tells who served', true, undefined, 4],
    ['that does not tell who served', false, undefined, 4],
    ['that takes a list of destinations', true, LISTS, 0],
  ])('a server killed behind an Envoy that retries, %#: one %s', async (_, tellsServed, profile, most) => {
    const { servers, picker } = await threeServers(profile);
    const envoy = await startRetryingEnvoy({ pickerPort: picker.grpcPort, servers, tellsServed });
    cleanups.push(() => envoy.stop());
    const callers = new Callers(envoy.port, 60, 250);
    await eventually('the load runs', () => callers.answered > 200);
    await servers[0]!.kill();
    await pause(4_000);
    await callers.stop();
    expect(callers.answered).toBeGreaterThan(600);
    expect(callers.failures.length, said(callers)).toBeLessThanOrEqual(most);
    expect(await pickerMetric(picker, 'pointsman_dead_endpoints')).toBe(1);
  });
});
