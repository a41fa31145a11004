import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePorts } from '../../dist/src/serve/port.js';
import { skipReason as envoySkipReason } from '../envoy/envoy.ts';
import { metric, metricsPage, type ServeProcess } from '../picker/serving.ts';
import { eventually } from '../tools/gateway/client.ts';
import { type ApiServer, skipReason as serverSkipReason, startApiServer } from './api-server.ts';
import { Callers } from './callers.ts';
import { type Cluster, gieCrds } from './cluster.ts';
import { startClusterPicker } from './cluster-picker.ts';
import { EnginePods } from './engine-pods.ts';
import { startEngineProcess } from './engine-process.ts';
import { startEnvoyOfPickers } from './envoy-of-pickers.ts';
import { Kubelet } from './kubelet.ts';
import { pool } from './objects.ts';

const skipReason = envoySkipReason || serverSkipReason;

const PODS = 8;
/** Streaming callers of the route by ORIGINAL_DST, and others of the route that tries again on another server. */
const CALLERS = { streaming: 64, retried: 20 };
const TOKENS = 24;
const SPEEDUP = 0.5;
const CHURN_MS = 60_000;
/** Long enough for a machine that is busy with other things. */
const WITHIN_MS = 120_000;
const TEST_MS_MAX = 900_000;
/** Loopback network of this process alone, so that two runs on one machine do not share pod addresses. */
const NETWORK = `127.${16 + ((process.pid >> 8) % 200)}.${process.pid % 256}`;

const podName = (number: number) => `pod-${number}`;
const podIp = (number: number) => `${NETWORK}.${number}`;
/** Pods with an even number are of the tier that the narrower selector asks for. */
const labelsOf = (number: number) => ({ app: 'vllm', tier: number % 2 === 0 ? 'even' : 'odd' });
const numbers = Array.from({ length: PODS }, (_, index) => index + 1);
/** Pods that replace the first four, and the second address of pod 4. */
const REPLACEMENTS = [11, 12, 13, 14];
const MOVED_IP = podIp(104);
/** The pod whose engine is killed. */
const KILLED = 10;

describe.skipIf(skipReason !== '')(
  `9. ${CALLERS.streaming} streaming callers through Envoy${skipReason}`,
  { timeout: TEST_MS_MAX },
  () => {
    const cleanups: (() => unknown)[] = [];
    let server: ApiServer;
    let cluster: Cluster;
    let namespace: string;
    let kubelet: Kubelet;
    let pods: EnginePods;
    let ports: readonly number[];
    let pickerPorts: readonly number[];
    let picker: ServeProcess;
    let streaming: Callers;
    let retried: Callers;

    beforeAll(async () => {
      const free = await freePorts(4);
      ports = free.slice(0, 2);
      pickerPorts = free.slice(2);
      server = await startApiServer();
      cleanups.push(() => server.stop());
      cluster = server.cluster();
      cleanups.push(() => cluster.close());
      await cluster.installCrds(gieCrds('v1.5.0'));
      namespace = await cluster.makeNamespace();
      kubelet = new Kubelet(cluster, namespace);
      pods = new EnginePods(kubelet, { ports, preStopMs: 1_000, graceSeconds: 60, speedup: SPEEDUP });
      cleanups.push(() => pods.stop());
      await cluster.create(pool(namespace, { targetPorts: [{ number: ports[0] }] }));
      for (const number of numbers) await pods.run(podName(number), podIp(number), labelsOf(number));
      picker = await startPicker(pickerPorts[0]!);
      const addresses = [...numbers, 9, KILLED, ...REPLACEMENTS].map(podIp).concat(MOVED_IP);
      const servers = addresses.flatMap((address) => ports.map((port) => ({ address, port })));
      const envoy = await startEnvoyOfPickers(pickerPorts, servers);
      cleanups.push(() => envoy.stop());
      await served(numbers);
      streaming = new Callers({ name: 'streaming', port: envoy.port, count: CALLERS.streaming, tokens: TOKENS });
      retried = new Callers({
        ...{ name: 'retried', port: envoy.retryingPort, count: CALLERS.retried, tokens: TOKENS },
        stream: false,
      });
      cleanups.push(() => Promise.all([streaming.stop(), retried.stop()]));
    }, 120_000);

    afterAll(async () => {
      for (const cleanup of cleanups.reverse()) await cleanup();
    });

    function startPicker(grpcPort: number): Promise<ServeProcess> {
      const flags = ['--pool-name=pool', `--pool-namespace=${namespace}`, `--grpc-port=${grpcPort}`];
      return startClusterPicker(cluster, flags, cleanups);
    }

    /** Names of the endpoints on the picker's metrics page, draining ones included. */
    async function endpoints(of: ServeProcess): Promise<string[]> {
      const page = await metricsPage(of.metricsPort);
      const series = page.matchAll(/^pointsman_endpoint_inflight_requests\{endpoint="([^"]*)"\}/gm);
      return [...series].map(([, name]) => name!).sort();
    }

    const nameOf = (number: number, rank = 0) => `${podName(number)}-rank-${rank}`;
    const ready = (of: ServeProcess) => metric(of.metricsPort, 'llm_d_epp_ready_endpoints');

    /** Waits until a picker has these endpoints, and `live` of them take new requests. */
    async function has(names: readonly string[], live = names.length, of = picker): Promise<void> {
      const wanted = `${live} live of ${[...names].sort()}`;
      let found = '';
      const check = async () => {
        found = `${await ready(of)} live of ${await endpoints(of)}`;
        return found === wanted;
      };
      await eventually(wanted, check, WITHIN_MS).catch((error: Error) => {
        throw new Error(`${error.message}; found: ${found}`);
      });
    }

    /** Waits until a picker has the endpoints of these pods and no others; all are live but those that drain. */
    const served = (all: readonly number[], draining = 0, of = picker) =>
      has(
        all.map((number) => nameOf(number)),
        all.length - draining,
        of,
      );
    const without = (...gone: number[]) => numbers.filter((number) => !gone.includes(number));

    const more = (each: number) => Promise.all([streaming.more(each), retried.more(each)]);
    const takeFailures = () => [...streaming.takeFailures(), ...retried.takeFailures()];

    /** Callers go on and have no failed request; a pod that takes no new request gets none. */
    async function traffic(restingPod?: number): Promise<void> {
      await more(1);
      const before = restingPod === undefined ? 0 : pods.requests(podIp(restingPod));
      await more(2);
      expect(takeFailures()).toEqual([]);
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
      for (const number of REPLACEMENTS) {
        await pods.run(podName(number), podIp(number), labelsOf(number));
        await pods.delete(podName(number - 10), podIp(number - 10));
      }
      await served([...without(1, 2, 3, 4), ...REPLACEMENTS]);
      await traffic();
      for (const number of [1, 2, 3, 4]) await pods.run(podName(number), podIp(number), labelsOf(number));
      await Promise.all(REPLACEMENTS.map((number) => pods.delete(podName(number), podIp(number))));
      await served(numbers);
      await traffic();
      expect(pods.cutOff).toEqual([]);
    });

    it('streaming callers through Envoy have no failed request while a pod is drained by annotation and back', async () => {
      await kubelet.annotate(podName(1), { 'pointsman/drain': 'true' });
      await served(numbers, 1);
      await traffic(1);
      await kubelet.annotate(podName(1), { 'pointsman/drain': null });
      await served(numbers);
      await traffic();
    });

    it('streaming callers through Envoy have no failed request while a pod becomes unready and ready', async () => {
      await kubelet.ready(podName(2), false);
      await served(numbers, 1);
      await traffic(2);
      await kubelet.ready(podName(2), true);
      await served(numbers);
      for (const ready of [false, true, false, true]) await kubelet.ready(podName(2), ready);
      await served(numbers);
      await traffic();
    });

    it('streaming callers through Envoy have no failed request while a pod is relabelled out of the pool and back', async () => {
      await kubelet.label(podName(3), { app: 'other' });
      await served(without(3));
      await traffic(3);
      await kubelet.label(podName(3), { app: 'vllm' });
      await served(numbers);
      await traffic();
    });

    it('streaming callers through Envoy have no failed request while a pod moves to another address and back', async () => {
      await pods.move(podName(4), podIp(4), MOVED_IP);
      await eventually('it serves there', () => pods.requests(MOVED_IP) > 0, WITHIN_MS);
      await traffic();
      await pods.move(podName(4), MOVED_IP, podIp(4));
      await eventually('it serves again', () => pods.requests(podIp(4)) > 0, WITHIN_MS);
      await traffic();
      expect(pods.cutOff).toEqual([]);
    });

    const setPorts = (...chosen: number[]) =>
      cluster.mergePatch(pool(namespace), { spec: { targetPorts: chosen.map((number) => ({ number })) } });
    const select = (tier: string | null) =>
      cluster.mergePatch(pool(namespace), { spec: { selector: { matchLabels: { tier } } } });

    it('streaming callers through Envoy have no failed request while the pool gets a second port and loses it', async () => {
      await setPorts(ports[0]!, ports[1]!);
      await has(numbers.flatMap((number) => [nameOf(number, 0), nameOf(number, 1)]));
      const idle = () => numbers.filter((number) => pods.requests(podIp(number), ports[1]) === 0);
      await eventually('every second port serves', () => idle().length === 0, WITHIN_MS);
      await traffic();
      await setPorts(ports[0]!);
      await served(numbers);
      await traffic();
    });

    it('streaming callers through Envoy have no failed request while the only port of the pool is replaced, and back', async () => {
      for (const port of [ports[1]!, ports[0]!]) {
        const sum = () => numbers.reduce((all, number) => all + pods.requests(podIp(number), port), 0);
        const before = sum();
        await setPorts(port);
        await eventually('its engines serve', () => sum() > before, WITHIN_MS);
        await served(numbers);
        await traffic();
      }
    });

    it('streaming callers through Envoy have no failed request while the selector halves the pool, and returns', async () => {
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

    it('streaming callers through Envoy have no failed request while the API server is away and when it is back', async () => {
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

    /** Changes of a pod that are over after a moment. */
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
        await pods.run(podName(number), podIp(number), labelsOf(number));
      },
    ];

    it('streaming callers through Envoy have no failed request while pods come, go, drain and are relabelled', async () => {
      const end = performance.now() + CHURN_MS;
      for (let i = 0; performance.now() < end; i++) {
        await CHANGES[i % CHANGES.length]!(1 + (i % PODS));
        expect(takeFailures()).toEqual([]);
      }
      await served(numbers);
      await traffic();
      expect(pods.cutOff).toEqual([]);
    });

    it('streaming callers through Envoy have no failed request while the next picker takes over from the draining one', async () => {
      const next = await startPicker(pickerPorts[1]!);
      await served(numbers, 0, next);
      const asked = async () => (await metric(next.metricsPort, 'llm_d_epp_request_total')) ?? 0;
      await eventually('Envoy asks the next picker', async () => (await asked()) > 0, WITHIN_MS);
      picker.child.kill('SIGTERM');
      expect(await picker.ended).toBe(0);
      picker = next;
      const before = await asked();
      await traffic();
      expect(await asked()).toBeGreaterThan(before);
    });

    /** Ids of the last requests that the picker has charged to an endpoint. */
    async function chargedTo(endpoint: string): Promise<(string | undefined)[]> {
      const page = await fetch(`http://127.0.0.1:${picker.metricsPort}/debug/decisions?limit=1000`);
      const { decisions } = (await page.json()) as { decisions: { requestId?: string; endpoint?: string }[] };
      return decisions.filter((one) => one.endpoint === `${namespace}/${endpoint}`).map(({ requestId }) => requestId);
    }

    it('streaming callers through Envoy lose only what a killed engine had, and nothing where the route tries again', async () => {
      const killed = await startEngineProcess(podIp(KILLED), ports, SPEEDUP);
      cleanups.push(() => killed.kill());
      const containers = [{ name: 'engine', ports, id: 'containerd://1' }];
      await kubelet.run(podName(KILLED), { ip: podIp(KILLED), labels: labelsOf(KILLED), containers });
      await served([...numbers, KILLED]);
      await eventually('streams run there', async () => (await killed.running()) >= 4, WITHIN_MS);
      const running = (await killed.kill()).filter((id) => id.startsWith('streaming'));
      await streaming.more(1);
      await kubelet.ready(podName(KILLED), false);
      await more(2);
      const charged = await chargedTo(nameOf(KILLED));
      const failures = streaming.takeFailures();
      const failed = failures.map(({ id }) => id);
      expect(running.length).toBeGreaterThan(0);
      expect(running.filter((id) => !failed.includes(id))).toEqual([]);
      expect(failed.filter((id) => !charged.includes(id))).toEqual([]);
      // What did not run there yet was on its way: Envoy had no connection to answer from.
      const onTheWay = failures.filter(({ id }) => !running.includes(id));
      expect(onTheWay.filter(({ flaw }) => !flaw.startsWith('503 upstream connect error'))).toEqual([]);
      expect(retried.takeFailures()).toEqual([]);
      await kubelet.finish(podName(KILLED));
      await served(numbers);
      await traffic();
      expect(pods.cutOff).toEqual([]);
    });

    it('streaming callers through Envoy leave no charge, no block of pods that are gone, and the state of a fresh start', async () => {
      await Promise.all([streaming.stop(), retried.stop()]);
      expect(takeFailures()).toEqual([]);
      const of = (name: string) => metric(picker.metricsPort, name);
      await eventually('every charge is released', async () => (await of('pointsman_ledger_entries')) === 0);
      for (const name of ['active_blocks', 'inflight_requests', 'inflight_tokens'])
        expect(await of(`pointsman_endpoint_${name}`)).toBe(0);
      await Promise.all(
        numbers.map(async (number) => {
          await pods.delete(podName(number), podIp(number));
          await pods.run(podName(number), podIp(number), labelsOf(number));
        }),
      );
      await served(numbers);
      const fresh = await startPicker(0);
      await served(numbers, 0, fresh);
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

/**
 * Gauges of what a picker holds of each endpoint and in its index; other series of the index count what has ever been.
 */
const STATE_GAUGES = [
  ...['inflight_requests', 'inflight_tokens', 'active_blocks', 'prefix_blocks'].map(
    (name) => `pointsman_endpoint_${name}{`,
  ),
  ...['blocks', 'segments', 'sets', 'memberships', 'active_entries'].map(
    (what) => `pointsman_prefix_index{what="${what}"}`,
  ),
  'llm_d_epp_ready_endpoints{',
];
