import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { startGateway } from '../../dist/tools/gateway/gateway.js';
import { type Fleet, startFleet } from '../../dist/tools/simulator/server/fleet.js';
import { type FileEndpoint, metric, type Ports, PROGRAM, Setting, startPicker } from '../picker/serving.ts';
import { ask, chatBody, eventually } from './gateway/client.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function fleetOf(count: number, options: Parameters<typeof startFleet>[1] = {}): Promise<Fleet> {
  const fleet = await startFleet(count, options);
  cleanups.push(() => fleet.stop());
  return fleet;
}

const filed = ({ servers }: Fleet): readonly FileEndpoint[] => servers.map(({ name, port }) => ({ name, port }));

/** A picker in front of these endpoints, and a gateway in front of it. */
async function serve(endpoints: readonly FileEndpoint[], profile?: string, ...flags: string[]) {
  const setting = await Setting.create(endpoints, profile);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: ports.grpcPort } });
  cleanups.push(() => gateway.stop());
  return { ports, gateway };
}

type Bed = Awaited<ReturnType<typeof serve>>;

let prompts = 0;

/** Callers that ask one new prompt after the other until `stop`, or the end of the test. */
function load({ gateway }: Bed, callers: number, headers: Record<string, string> = {}, tokens = 8) {
  let isOver = false;
  let answered = 0;
  const one = async (): Promise<void> => {
    while (!isOver) {
      const body = chatBody(`prompt ${prompts++}`, { max_tokens: tokens, stream: true });
      const { status } = await ask(gateway.port, { body, headers }).catch(() => ({ status: 0 }));
      if (status === 200) answered++;
    }
  };
  const all = Array.from({ length: callers }, one);
  const stop = () => {
    isOver = true;
    return Promise.all(all);
  };
  cleanups.push(stop);
  return { answered: () => answered, stop };
}

const gauge = ({ ports }: { readonly ports: Ports }, name: string, endpoint = '') =>
  metric(ports.metricsPort, `pointsman_${name}`, endpoint === '' ? '' : `endpoint="${endpoint}"`);

/** One call of the doctor, without blocking this process, which is the picker. */
function doctor({ ports }: { readonly ports: Ports }): Promise<{ readonly code: number; readonly stdout: string }> {
  const argv = [PROGRAM, 'doctor', '--seconds=0', `--picker=http://127.0.0.1:${ports.metricsPort}`];
  return new Promise((resolve) => {
    execFile(process.execPath, argv, (error, stdout) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout });
    });
  });
}

/** A model server whose answers are real and whose metrics page never changes. */
async function frozenServer(): Promise<FileEndpoint> {
  const page = [
    ...['# TYPE vllm:num_requests_running gauge', 'vllm:num_requests_running 0'],
    ...['# TYPE vllm:num_requests_waiting gauge', 'vllm:num_requests_waiting 0'],
    ...['# TYPE vllm:request_success_total counter', 'vllm:request_success_total 17', ''],
  ].join('\n');
  const answer = JSON.stringify({ model: 'm', usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 } });
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      if (request.url === '/metrics') response.end(page);
      else response.setHeader('content-type', 'application/json').end(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { name: 'frozen', port: (server.address() as AddressInfo).port };
}

const SESSIONS =
  'plugins:\n- {type: session-affinity-scorer, parameters: {strategy: session_id}}\n- {type: max-score-picker}\n' +
  'schedulingProfiles: [{name: default, plugins: [{pluginRef: session-affinity-scorer}, ' +
  '{pluginRef: max-score-picker}]}]\n';

const QUEUES =
  'featureGates: [flowControl]\nplugins:\n- {type: concurrency-detector, parameters: {maxConcurrency: 1}}\n' +
  '- {type: queue-scorer}\n- {type: max-score-picker}\n' +
  'schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: max-score-picker}]}]\n' +
  'flowControl: {saturationDetector: {pluginRef: concurrency-detector}}\n';

/** Sessions in shadow mode. */
const agents = (identity: string) =>
  'featureGates: [flowControl]\nplugins:\n- {type: prefix-cache-scorer}\n' +
  '- {type: session-id-producer, name: mine, parameters: {headerName: x-chat}}\n' +
  'schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer}]}]\n' +
  `flowControl: {sessions: {mode: shadow, identity: ${identity}}}\n`;

/** Blocks of a cache that holds two thirds of the histories below. */
const KV_BLOCKS = 512;

/** Conversations side by side, each turn with the whole history. */
async function converse(
  { gateway }: Bed,
  conversations: number,
  turns: number,
  headers: () => Record<string, string> = () => ({}),
): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    for (let i = 0; i < conversations; i++) {
      const history = `conversation ${i} `.repeat(150 + 10 * turn);
      const body = chatBody(history, { max_tokens: 1 });
      expect((await ask(gateway.port, { body, headers: headers() })).status).toBe(200);
    }
  }
}

interface Staged {
  readonly ports: Ports;
  /** What the line of the doctor has beside its severity and its subject. */
  readonly says: string;
}

/** Each stages an incident by the first words of its row in the guide. */
const INCIDENTS: Readonly<Record<string, () => Promise<Staged>>> = {
  'a slow engine': async () => {
    const fleet = await fleetOf(3, { engine: { speedup: 10 } });
    const bed = await serve(filed(fleet), 'plugins:\n- {type: random-picker}\n');
    fleet.servers[1]!.slowDown(1_000);
    const callers = load(bed, 3, {}, 1);
    const served = () => fleet.servers.every((server) => server.stats().finishedByLength >= 8);
    await eventually('each server has answered', served, 60_000);
    await callers.stop();
    return { ports: bed.ports, says: `${fleet.servers[1]!.name} takes ` };
  },
  'a frozen page': async () => {
    const bed = await serve([await frozenServer()]);
    load(bed, 1);
    await eventually('the page is frozen', async () => (await gauge(bed, 'endpoint_metrics_frozen')) === 1, 60_000);
    return { ports: bed.ports, says: 'of 1 of 1 endpoints stands still' };
  },
  'a hot endpoint': async () => {
    const fleet = await fleetOf(3, { engine: { speedup: 50 } });
    const bed = await serve(filed(fleet), SESSIONS, '--decision-columns-every=1', '--allow-experimental-plugins');
    const callers = load(bed, 2, { 'x-session-id': 'everybody' });
    await eventually('many are answered', () => callers.answered() > 40, 60_000);
    await callers.stop();
    return { ports: bed.ports, says: 'they name sessions that are bound to it' };
  },
  'a saturated pool': async () => {
    const fleet = await fleetOf(1);
    const bed = await serve(filed(fleet), QUEUES);
    fleet.servers[0]!.hang(true);
    load(bed, 4);
    cleanups.push(() => fleet.servers[0]!.hang(false));
    const waits = async () => (await metric(bed.ports.metricsPort, 'llm_d_epp_flow_control_queue_size')) === 3;
    await eventually('three wait', waits);
    return { ports: bed.ports, says: 'no endpoint has room: 3 requests waiting' };
  },
  'cut off from NATS': async () => {
    const fleet = await fleetOf(1);
    const bed = await serve(filed(fleet), undefined, '--replication-url=nats://127.0.0.1:9');
    return { ports: bed.ports, says: 'not connected to NATS' };
  },
  'dead on arrival': async () => {
    const fleet = await fleetOf(2);
    const never = await startFleet(1);
    await never.stop();
    const [gone] = filed(never);
    const bed = await serve([...filed(fleet), { name: 'gone', port: gone!.port }]);
    await eventually('it is dead', async () => (await gauge(bed, 'endpoint_ejection_state', 'gone')) === 3, 60_000);
    return { ports: bed.ports, says: '1 of 3 endpoints take no connections: gone' };
  },
  'more agents than fit': async () => {
    const fleet = await fleetOf(1, { engine: { speedup: 500, blocks: KV_BLOCKS } });
    const bed = await serve(filed(fleet), agents('auto'));
    await eventually(
      'the size of the cache is known',
      async () => (await gauge(bed, 'endpoint_scraped', fleet.servers[0]!.name)) === 1,
    );
    await converse(bed, 20, 6);
    return { ports: bed.ports, says: 'turns of agents found no KV cache with room for their history' };
  },
  'a restless session header': async () => {
    const fleet = await fleetOf(1, { engine: { speedup: 500, blocks: 2 * KV_BLOCKS } });
    const bed = await serve(filed(fleet), agents('mine'));
    let number = 0;
    await converse(bed, 4, 30, () => ({ 'x-chat': `name-${number++}` }));
    return { ports: bed.ports, says: 'turns go on from a session that another header names' };
  },
  'a silent engine': async () => {
    const fleet = await fleetOf(3, { engine: { speedup: 2 } });
    const bed = await serve(filed(fleet));
    const callers = load(bed, 6);
    await eventually('the picker knows what answers take', () => callers.answered() > 100, 60_000);
    const hung = fleet.servers[1]!;
    cleanups.push(() => hung.hang(false));
    hung.hang(true);
    await eventually('it is silent', async () => (await gauge(bed, 'endpoint_silent', hung.name)) === 1, 60_000);
    return { ports: bed.ports, says: `1 of 3 endpoints get no byte: ${hung.name}` };
  },
};

/** Rows of the guide's table of incidents: what is staged, and the line that finds it. */
function rows(): readonly (readonly [string, string])[] {
  const guide = readFileSync(new URL('../../docs/guides/doctor.md', import.meta.url), 'utf8');
  const section = guide.split('## Incidents')[1]!.split('\n## ')[0]!;
  const found = [...section.matchAll(/^\| ([^|]+?): [^|]+ \| `([^`]+)` \|$/gm)];
  return found.map(([, incident, line]) => [incident!, line!]);
}

describe('a staged incident', () => {
  it('a staged incident of the guide has a test, and each test a row', () => {
    expect(rows().map(([incident]) => incident)).toEqual(Object.keys(INCIDENTS));
  });

  it.each(rows())(
    'a staged incident, %s, is found by one call of the doctor: "%s"',
    async (incident, line) => {
      const staged = await INCIDENTS[incident]!();
      const [severity, ...about] = line.split(' ');
      const { code, stdout } = await doctor(staged);
      expect(stdout).toMatch(new RegExp(`^${severity} +${about.join(' ')} .*`, 'm'));
      const found = stdout.split('\n').find((each) => new RegExp(`^${severity} +${about.join(' ')} `).test(each));
      expect(found).toContain(staged.says);
      expect(code).toBeGreaterThan(0);
    },
    120_000,
  );
});
