import { afterEach, describe, expect, it } from 'vitest';
import { startGateway } from '../../dist/tools/gateway/gateway.js';
import { startModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { metricsPage, Setting, startPicker } from '../picker/serving.ts';
import { ask, chatBody, eventually } from '../tools/gateway/client.ts';
import { metricsProblems, promtoolSkipReason, promtoolWanted } from './promtool.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const PROFILE = `featureGates: [flowControl]
flowControl: {sessions: {mode: shadow}}
plugins:
- {type: queue-scorer}
- {type: prefix-cache-scorer}
- {type: precise-prefix-cache-producer}
- {type: predicted-latency-producer, parameters: {trainingServerURL: 'http://127.0.0.1:9'}}
`;

/** What promtool objects to in names that others have given, and why they stay. */
const KEPT: readonly (readonly [what: RegExp, reason: string])[] = [
  [/^llm_d_\S+ metric names should not contain abbreviated units$/, 'names of llm-d-router, whose "d" is no day'],
  [
    /^nodejs_active_(handles|requests|resources)_total non-counter metrics/,
    'names of prom-client, which dashboards of Node.js read',
  ],
];

/** Metrics port of a picker whose requests have gone to a simulated server. */
async function busyPicker(): Promise<number> {
  const server = await startModelServer({ name: 'one', engine: { speedup: 20, seed: 1 } });
  cleanups.push(() => server.stop());
  const setting = await Setting.create([{ name: 'one', port: server.port }], PROFILE);
  cleanups.push(() => setting.remove());
  const flags = ['--enable-grpc-stream-metrics', '--allow-experimental-plugins'];
  const { picker, ports } = await startPicker([...setting.flags, ...flags, `--candidate-config=${setting.configFile}`]);
  cleanups.push(() => picker.stop(0));
  const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: ports.grpcPort } });
  cleanups.push(() => gateway.stop());
  const stream = { stream: true, max_tokens: 10, stream_options: { include_usage: true } };
  for (let next = 0; next < 40; next++) {
    expect((await ask(gateway.port, { body: chatBody(`prompt ${next}`, stream) })).status).toBe(200);
  }
  const learned = 'pointsman_adaptation_latency_seconds{time="first_output",source="observed",quantile="0.9"}';
  await eventually('times are learned', async () => (await metricsPage(ports.metricsPort)).includes(learned));
  return ports.metricsPort;
}

/** Names of the metrics of a page. */
function namesOf(page: string): readonly string[] {
  return [...page.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!);
}

describe.skipIf(!promtoolWanted)(`promtool check metrics${promtoolSkipReason}`, () => {
  it('promtool finds nothing to object to in the metrics that have names of our own', async () => {
    const problems = await metricsProblems(await metricsPage(await busyPicker()));
    expect(problems.filter((problem) => !KEPT.some(([what]) => what.test(problem)))).toEqual([]);
    for (const [what, reason] of KEPT)
      expect(
        problems.some((problem) => what.test(problem)),
        reason,
      ).toBe(true);
  });

  it('promtool finds nothing to object to in the page under names for Prometheus, which has all metrics', async () => {
    const port = await busyPicker();
    const renamed = await (await fetch(`http://127.0.0.1:${port}/metrics?names=prometheus`)).text();
    expect(await metricsProblems(renamed)).toEqual([]);
    const names = namesOf(await metricsPage(port)).filter((name) => !/^nodejs_active_\w+_total$/.test(name));
    expect(names).toContain('llm_d_epp_request_total');
    expect(namesOf(renamed)).toEqual(names.map((name) => name.replace(/^llm_d_/, 'pointsman_')));
    expect(new Set(namesOf(renamed)).size).toBe(names.length);
  });
});
