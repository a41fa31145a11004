import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePorts } from '../../dist/cli/port.js';
import { type Envoy, skipReason as envoySkipReason, startEnvoy } from '../envoy/envoy.ts';
import { eventually } from '../gateway/client.ts';
import { metric, metricsPage, type ServeProcess, startServe } from '../picker/serving.ts';
import { type ApiServer, skipReason as serverSkipReason, startApiServer } from './api-server.ts';
import { Callers } from './callers.ts';
import { type Cluster, gieCrds } from './cluster.ts';
import { EnginePods } from './engine-pods.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { Kubelet } from './kubelet.ts';
import { pool } from './objects.ts';

const skipReason = envoySkipReason || serverSkipReason;

const PODS = 8;
const CALLERS = 24;
const WITHIN_MS = 20_000;
const TEST_MS_MAX = 90_000;
/** Loopback network of this process alone, so that two runs on one machine do not share pod addresses. */
const NETWORK = `127.${16 + ((process.pid >> 8) % 200)}.${process.pid % 256}`;

const podName = (number: number) => `pod-${number}`;
const podIp = (number: number) => `${NETWORK}.${number}`;
/** Pods with an even number are of the tier that the narrower selector asks for. */
const labelsOf = (number: number) => ({ app: 'vllm', tier: number % 2 === 0 ? 'even' : 'odd' });
const numbers = Array.from({ length: PODS }, (_, index) => index + 1);

describe.skipIf(skipReason !== '')(
  `9. ${CALLERS} streaming callers through Envoy${skipReason}`,
  { timeout: TEST_MS_MAX },
  () => {
    const cleanups: (() => unknown)[] = [];
    let server: ApiServer;
    let cluster: Cluster;
    let namespace: string;
    let kubelet: Kubelet;
    let pods: EnginePods;
    let ports: readonly number[];
    let picker: ServeProcess;
    let callers: Callers;

    beforeAll(async () => {
      ports = await freePorts(2);
      server = await startApiServer();
      cleanups.push(() => server.stop());
      cluster = server.cluster();
      cleanups.push(() => cluster.close());
      await cluster.installCrds(gieCrds('v1.5.0'));
      namespace = await cluster.makeNamespace();
      kubelet = new Kubelet(cluster, namespace);
      pods = new EnginePods(kubelet, { ports, preStopMs: 1_000, graceSeconds: 5, speedup: 0.5 });
      cleanups.push(() => pods.stop());
      await cluster.create(pool(namespace, { targetPorts: [{ number: ports[0] }] }));
      for (const number of numbers) await pods.run(podName(number), podIp(number), labelsOf(number));
      picker = await startPicker();
      const envoy: Envoy = await startEnvoy('envoy.yaml', picker.grpcPort);
      cleanups.push(() => envoy.stop());
      await served(numbers);
      callers = new Callers({ port: envoy.port, count: CALLERS, tokens: 24 });
      cleanups.push(() => callers.stop());
    }, 120_000);

    afterAll(async () => {
      for (const cleanup of cleanups.reverse()) await cleanup();
    });

    async function startPicker(): Promise<ServeProcess> {
      const kubeconfig = writeKubeconfig(cluster);
      cleanups.push(() => kubeconfig.remove());
      process.env.KUBECONFIG = kubeconfig.file;
      const started = await startServe([
        ...['--pool-name=pool', `--pool-namespace=${namespace}`, '--secure-serving=false'],
        ...['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0', '--metrics-endpoint-auth=false'],
      ]);
      delete process.env.KUBECONFIG;
      cleanups.push(async () => {
        started.child.kill('SIGKILL');
        await started.ended;
      });
      return started;
    }

    /** Names of the endpoints on the picker's metrics page, draining ones included. */
    async function endpoints(): Promise<string[]> {
      const page = await metricsPage(picker.metricsPort);
      const series = page.matchAll(/^pointsman_endpoint_inflight_requests\{endpoint="([^"]*)"\}/gm);
      return [...series].map(([, name]) => name!).sort();
    }

    const nameOf = (number: number, rank = 0) => `${podName(number)}-rank-${rank}`;
    const ready = () => metric(picker.metricsPort, 'llm_d_epp_ready_endpoints');

    /** Waits until the picker has these endpoints, and `live` of them take new requests. */
    async function has(names: readonly string[], live = names.length): Promise<void> {
      const wanted = `${live} live of ${[...names].sort()}`;
      let found = '';
      const check = async () => {
        found = `${await ready()} live of ${await endpoints()}`;
        return found === wanted;
      };
      await eventually(wanted, check, WITHIN_MS).catch((error: Error) => {
        throw new Error(`${error.message}; found: ${found}`);
      });
    }

    /** Waits until the picker has the endpoints of these pods and no others; all are live but those that drain. */
    const served = (all: readonly number[], draining = 0) =>
      has(
        all.map((number) => nameOf(number)),
        all.length - draining,
      );
    const without = (...gone: number[]) => numbers.filter((number) => !gone.includes(number));

    /** Callers go on and have no failed request; a pod that takes no new request gets none. */
    async function traffic(restingPod?: number): Promise<void> {
      await callers.more(1);
      const before = restingPod === undefined ? 0 : pods.requests(podIp(restingPod));
      await callers.more(2);
      expect(callers.takeFailures()).toEqual([]);
      if (restingPod !== undefined) expect(pods.requests(podIp(restingPod))).toBe(before);
    }

    it('streaming callers through Envoy have no failed request while nothing changes, and every pod serves them', async () => {
      await traffic();
      const idle = () => numbers.filter((number) => pods.requests(podIp(number)) === 0);
      await eventually('every pod serves', () => idle().length === 0);
      await traffic();
    });

    it('streaming callers through Envoy have no failed request while a pod comes and is deleted gracefully', async () => {
      await pods.run(podName(9), podIp(9), labelsOf(9));
      await served([...numbers, 9]);
      await eventually('it serves', () => pods.requests(podIp(9)) > 0, WITHIN_MS);
      await traffic();
      await pods.delete(podName(9), podIp(9));
      await served(numbers);
      await traffic();
      expect(pods.cutOff).toEqual([]);
    });

    it('streaming callers through Envoy have no failed request while half of the pods are replaced one after the other', async () => {
      for (const number of [1, 2, 3, 4]) {
        await pods.run(podName(number + 10), podIp(number + 10), labelsOf(number));
        await pods.delete(podName(number), podIp(number));
      }
      await served([...without(1, 2, 3, 4), 11, 12, 13, 14]);
      await traffic();
      for (const number of [1, 2, 3, 4]) await pods.run(podName(number), podIp(number), labelsOf(number));
      await Promise.all([1, 2, 3, 4].map((number) => pods.delete(podName(number + 10), podIp(number + 10))));
      await served(numbers);
      await traffic();
      expect(pods.cutOff).toEqual([]);
    });

    it('streaming callers through Envoy have no failed request while a pod is drained by annotation, which gets no request until the annotation leaves', async () => {
      await kubelet.annotate(podName(1), { 'pointsman/drain': 'true' });
      await served(numbers, 1);
      await traffic(1);
      await kubelet.annotate(podName(1), { 'pointsman/drain': null });
      await served(numbers);
      await traffic();
    });

    it('streaming callers through Envoy have no failed request while a pod becomes unready, gets no request, and becomes ready', async () => {
      await kubelet.ready(podName(2), false);
      await served(numbers, 1);
      await traffic(2);
      await kubelet.ready(podName(2), true);
      await served(numbers);
      for (const ready of [false, true, false, true]) await kubelet.ready(podName(2), ready);
      await served(numbers);
      await traffic();
    });

    it('streaming callers through Envoy have no failed request while a pod is relabelled out of the pool, gets no request, and back', async () => {
      await kubelet.label(podName(3), { app: 'other' });
      await served(without(3));
      await traffic(3);
      await kubelet.label(podName(3), { app: 'vllm' });
      await served(numbers);
      await traffic();
    });

    it('streaming callers through Envoy have no failed request while a pod moves to another address and back', async () => {
      await pods.move(podName(4), podIp(4), podIp(104));
      await eventually('it serves there', () => pods.requests(podIp(104)) > 0, WITHIN_MS);
      await traffic();
      await pods.move(podName(4), podIp(104), podIp(4));
      await eventually('it serves again', () => pods.requests(podIp(4)) > 0, WITHIN_MS);
      await traffic();
      expect(pods.cutOff).toEqual([]);
    });

    const setPorts = (...chosen: number[]) =>
      cluster.mergePatch(pool(namespace), { spec: { targetPorts: chosen.map((number) => ({ number })) } });
    const select = (tier: string | null) =>
      cluster.mergePatch(pool(namespace), { spec: { selector: { matchLabels: { tier } } } });

    it('streaming callers through Envoy have no failed request while the pool gets a second port, whose engines serve, and loses it', async () => {
      await setPorts(ports[0]!, ports[1]!);
      await has(numbers.flatMap((number) => [nameOf(number, 0), nameOf(number, 1)]));
      const idle = () => numbers.filter((number) => pods.requests(podIp(number), ports[1]) === 0);
      await eventually('every second port serves', () => idle().length === 0, WITHIN_MS);
      await traffic();
      await setPorts(ports[0]!);
      await served(numbers);
      await traffic();
    });

    it('streaming callers through Envoy have no failed request while the only port of the pool is replaced by another one, and back', async () => {
      for (const port of [ports[1]!, ports[0]!]) {
        const sum = () => numbers.reduce((all, number) => all + pods.requests(podIp(number), port), 0);
        const before = sum();
        await setPorts(port);
        await eventually('its engines serve', () => sum() > before, WITHIN_MS);
        await served(numbers);
        await traffic();
      }
    });

    it('streaming callers through Envoy have no failed request while the selector of the pool changes, which leaves half of the pods, and returns', async () => {
      await select('even');
      await served(numbers.filter((number) => number % 2 === 0));
      await traffic(5);
      // No pod is of both tiers: every endpoint is replaced.
      await select('odd');
      await served(numbers.filter((number) => number % 2 === 1));
      await traffic(4);
      await select(null);
      await served(numbers);
      await traffic();
    });

    it('streaming callers through Envoy have no failed request while the API server is away and when it is back, with what changed meanwhile', async () => {
      await server.kill();
      await traffic();
      await server.start();
      await kubelet.annotate(podName(5), { 'pointsman/drain': 'true' });
      await served(numbers, 1);
      await traffic(5);
      await kubelet.annotate(podName(5), { 'pointsman/drain': null });
      await served(numbers);
      await traffic();
    });

    it('streaming callers through Envoy leave no charge, and the endpoints that a picker has after a fresh start', async () => {
      await callers.stop();
      expect(callers.takeFailures()).toEqual([]);
      const of = (name: string) => metric(picker.metricsPort, name);
      await eventually('every charge is released', async () => (await of('pointsman_ledger_entries')) === 0);
      for (const name of ['active_blocks', 'inflight_requests', 'inflight_tokens'])
        expect(await of(`pointsman_endpoint_${name}`)).toBe(0);
      const found = await endpoints();
      expect(found).toEqual(numbers.map((number) => nameOf(number)).sort());
      picker = await startPicker();
      await has(found);
    });
  },
);
