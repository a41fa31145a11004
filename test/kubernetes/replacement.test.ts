import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePorts } from '../../dist/cli/port.js';
import { skipReason as envoySkipReason } from '../envoy/envoy.ts';
import { eventually } from '../gateway/client.ts';
import { metric, metricsPage, type ServeProcess, startServe } from '../picker/serving.ts';
import { type ApiServer, skipReason as serverSkipReason, startApiServer } from './api-server.ts';
import { Callers } from './callers.ts';
import { type Cluster, gieCrds } from './cluster.ts';
import { EnginePods } from './engine-pods.ts';
import { type EngineProcess, startEngineProcess } from './engine-process.ts';
import { type PickersEnvoy, startEnvoyOfPickers } from './envoy-of-pickers.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { Kubelet } from './kubelet.ts';
import { pool } from './objects.ts';

const skipReason = envoySkipReason || serverSkipReason;

/** Streaming callers of the route by ORIGINAL_DST, and others of the route that tries again on another server. */
const CALLERS = { streaming: 44, retried: 20 };
const CHURN_MS = 60_000;
const TEST_MS_MAX = 180_000;
const SPEEDUP = 0.5;
/** Loopback network of this process alone, so that two runs on one machine do not share pod addresses. */
const NETWORK = `127.${16 + ((process.pid >> 8) % 200)}.${process.pid % 256}`;

const podName = (number: number) => `pod-${number}`;
const podIp = (number: number) => `${NETWORK}.${number}`;
const LABELS = { app: 'vllm' };
const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
/** The pod whose engine is killed. */
const KILLED = 8;

describe.skipIf(skipReason !== '')(
  `9. ${CALLERS.streaming + CALLERS.retried} callers through Envoy${skipReason}`,
  { timeout: TEST_MS_MAX },
  () => {
    const cleanups: (() => unknown)[] = [];
    let server: ApiServer;
    let cluster: Cluster;
    let namespace: string;
    let kubelet: Kubelet;
    let pods: EnginePods;
    let killed: EngineProcess;
    let port: number;
    let pickerPorts: readonly number[];
    let picker: ServeProcess;
    let streaming: Callers;
    let retried: Callers;

    beforeAll(async () => {
      pickerPorts = await freePorts(2);
      [port] = (await freePorts(1)) as [number];
      server = await startApiServer();
      cleanups.push(() => server.stop());
      cluster = server.cluster();
      cleanups.push(() => cluster.close());
      await cluster.installCrds(gieCrds('v1.5.0'));
      namespace = await cluster.makeNamespace();
      kubelet = new Kubelet(cluster, namespace);
      pods = new EnginePods(kubelet, { ports: [port], preStopMs: 1_000, graceSeconds: 10, speedup: SPEEDUP });
      cleanups.push(() => pods.stop());
      await cluster.create(pool(namespace, { targetPorts: [{ number: port }] }));
      for (const number of numbers.slice(0, -1)) await pods.run(podName(number), podIp(number), LABELS);
      killed = await startEngineProcess(podIp(KILLED), [port], SPEEDUP);
      cleanups.push(() => killed.kill());
      await kubelet.run(podName(KILLED), podShape(KILLED));
      picker = await startPicker(pickerPorts[0]!);
      const servers = numbers.map((number) => ({ address: podIp(number), port }));
      const envoy: PickersEnvoy = await startEnvoyOfPickers(pickerPorts, servers);
      cleanups.push(() => envoy.stop());
      await has(numbers);
      streaming = new Callers({ port: envoy.port, count: CALLERS.streaming, tokens: 24 });
      retried = new Callers({ port: envoy.retryingPort, count: CALLERS.retried, tokens: 24, stream: false });
      cleanups.push(() => Promise.all([streaming.stop(), retried.stop()]));
    }, 120_000);

    afterAll(async () => {
      for (const cleanup of cleanups.reverse()) await cleanup();
    });

    function podShape(number: number) {
      const containers = [{ name: 'engine', ports: [port], id: 'containerd://1' }];
      return { ip: podIp(number), labels: LABELS, containers };
    }

    async function startPicker(grpcPort: number): Promise<ServeProcess> {
      const kubeconfig = writeKubeconfig(cluster);
      cleanups.push(() => kubeconfig.remove());
      process.env.KUBECONFIG = kubeconfig.file;
      const started = await startServe([
        ...['--pool-name=pool', `--pool-namespace=${namespace}`, '--secure-serving=false'],
        ...[`--grpc-port=${grpcPort}`, '--grpc-health-port=0', '--metrics-port=0', '--metrics-endpoint-auth=false'],
      ]);
      delete process.env.KUBECONFIG;
      cleanups.push(async () => {
        started.child.kill('SIGKILL');
        await started.ended;
      });
      return started;
    }

    /** Waits until a picker has the endpoints of these pods and no others, all live. */
    async function has(all: readonly number[], of = picker): Promise<void> {
      const wanted = all.map((number) => `${podName(number)}-rank-0`).join();
      const check = async () => {
        const page = await metricsPage(of.metricsPort);
        const found = [...page.matchAll(/^pointsman_endpoint_inflight_requests\{endpoint="([^"]*)"\}/gm)];
        const names = found.map(([, name]) => name!).sort();
        return names.join() === wanted && page.includes(`\nllm_d_epp_ready_endpoints{name="pool"} ${all.length}\n`);
      };
      await eventually(`the picker has ${wanted}`, check, 30_000);
    }

    async function traffic(): Promise<void> {
      await Promise.all([streaming.more(2), retried.more(2)]);
      expect([streaming.takeFailures(), retried.takeFailures()]).toEqual([[], []]);
    }

    /** One change of each kind, of the pods that are not killed. */
    const CHANGES: readonly ((number: number) => Promise<unknown>)[] = [
      async (number) => {
        await kubelet.annotate(podName(number), { 'pointsman/drain': 'true' });
        await pause(500);
        await kubelet.annotate(podName(number), { 'pointsman/drain': null });
      },
      async (number) => {
        await kubelet.ready(podName(number), false);
        await pause(500);
        await kubelet.ready(podName(number), true);
      },
      async (number) => {
        await kubelet.label(podName(number), { app: 'other' });
        await pause(500);
        await kubelet.label(podName(number), { app: 'vllm' });
      },
      async (number) => {
        await pods.delete(podName(number), podIp(number));
        await pods.run(podName(number), podIp(number), LABELS);
      },
    ];

    it('callers through Envoy have no failed request for a minute in which pods come, go, drain, rest and are relabelled', async () => {
      await traffic();
      const end = performance.now() + CHURN_MS;
      for (let i = 0; performance.now() < end; i++) {
        await CHANGES[i % CHANGES.length]!(1 + (i % (KILLED - 1)));
        expect([streaming.takeFailures(), retried.takeFailures()]).toEqual([[], []]);
      }
      await has(numbers);
      await traffic();
      expect(pods.cutOff).toEqual([]);
    });

    it('callers through Envoy have no failed request while the picker is replaced within its drain window, and the next picker answers', async () => {
      const next = await startPicker(pickerPorts[1]!);
      await has(numbers, next);
      const asked = () => metric(next.metricsPort, 'llm_d_epp_request_total');
      await eventually('Envoy asks the next picker', async () => ((await asked()) ?? 0) > 0, 20_000);
      picker.child.kill('SIGTERM');
      expect(await picker.ended).toBe(0);
      picker = next;
      const before = (await asked()) ?? 0;
      await traffic();
      expect(await asked()).toBeGreaterThan(before);
    });

    it('callers through Envoy lose what runs on an engine that is killed, and nothing on the route that tries again', async () => {
      const running = await killed.running();
      await killed.kill();
      await streaming.more(1);
      await kubelet.ready(podName(KILLED), false);
      await Promise.all([streaming.more(2), retried.more(2)]);
      const failures = streaming.takeFailures();
      expect(running).toBeGreaterThan(0);
      // What ran there when it was killed, which is more than ran when it was asked; what was on its way; and what was sent
      // there before two refused connections had ejected it: of no caller twice.
      expect(failures.length).toBeLessThan(CALLERS.streaming);
      expect(pods.cutOff).toEqual([]);
      expect(retried.takeFailures()).toEqual([]);
      await traffic();
    });

    it('callers through Envoy leave no charge, no block of pods that are gone, and the state of a fresh start', async () => {
      await Promise.all([streaming.stop(), retried.stop()]);
      const of = (name: string, labels = '') => metric(picker.metricsPort, name, labels);
      await eventually('every charge is released', async () => (await of('pointsman_ledger_entries')) === 0);
      for (const name of ['active_blocks', 'inflight_requests', 'inflight_tokens'])
        expect(await of(`pointsman_endpoint_${name}`)).toBe(0);
      for (const number of numbers.slice(0, -1)) {
        await pods.delete(podName(number), podIp(number));
        await pods.run(podName(number), podIp(number), LABELS);
      }
      await kubelet.finish(podName(KILLED));
      await has(numbers.slice(0, -1));
      const fresh = await startPicker(0);
      await has(numbers.slice(0, -1), fresh);
      const gauges = async ({ metricsPort }: ServeProcess) => {
        const page = await metricsPage(metricsPort);
        const lines = page.split('\n').filter((line) => STATE_GAUGES.some((name) => line.startsWith(name)));
        return lines.sort();
      };
      await eventually(
        'the gauges are those of a fresh start',
        async () => (await gauges(picker)).join('\n') === (await gauges(fresh)).join('\n'),
      ).catch(async (error: Error) => {
        expect(await gauges(picker)).toEqual(await gauges(fresh));
        throw error;
      });
      expect((await gauges(fresh)).length).toBeGreaterThan(numbers.length);
    });
  },
);

/** Gauges of what a picker holds of each endpoint and in its index; other series of the index count what has ever been. */
const STATE_GAUGES = [
  ...['inflight_requests', 'inflight_tokens', 'active_blocks', 'prefix_blocks'].map(
    (name) => `pointsman_endpoint_${name}{`,
  ),
  ...['blocks', 'segments', 'sets', 'memberships', 'active_entries'].map(
    (what) => `pointsman_prefix_index{what="${what}"}`,
  ),
  'llm_d_epp_ready_endpoints{',
];
