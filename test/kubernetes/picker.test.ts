import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freePorts } from '../../dist/src/serve/port.js';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { checkHealth, collect, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { ask, askAndEnd, metric, metricsPage, type ServeProcess } from '../picker/serving.ts';
import { eventually } from '../tools/gateway/client.ts';
import { type ApiServer, PICKER_TOKEN, sharedCluster, skipReason, startApiServer } from './api-server.ts';
import { Cluster } from './cluster.ts';
import { startClusterPicker } from './cluster-picker.ts';
import { Kubelet } from './kubelet.ts';
import { objective, pool } from './objects.ts';

const WITHIN_MS = 30_000;
const READINESS = ['', 'readiness', 'inference-extension'];
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A picker process that follows the pool `pool` of a namespace. */
const serve = (cluster: Cluster, namespace: string, ...flags: string[]): Promise<ServeProcess> =>
  startClusterPicker(cluster, ['--pool-name=pool', `--pool-namespace=${namespace}`, ...flags], cleanups);

const clients = new Map<number, ProxyClient>();

/** One connection to each port for the time of a test. */
function dial(port: number): ProxyClient {
  const known = clients.get(port);
  if (known !== undefined) return known;
  const client = dialPicker(port);
  clients.set(port, client);
  cleanups.push(() => {
    clients.delete(port);
    client.close();
  });
  return client;
}

const health = (picker: ServeProcess, service = '') => checkHealth(dial(picker.healthPort), service);
const ready = (picker: ServeProcess) =>
  eventually('the picker is ready', async () => (await health(picker)) === 'SERVING', WITHIN_MS);

/** Status or destination of one request. */
async function answer(client: ProxyClient, prompt = 'hello'): Promise<string> {
  const { replies } = await askAndEnd(client, prompt);
  const { status, headers } = decodeReply(replies[0]!);
  return headers['x-gateway-destination-endpoint'] ?? String(status);
}

describe.skipIf(skipReason !== '')(`a picker in a cluster${skipReason}`, () => {
  let cluster: Cluster;
  let namespace: string;
  let kubelet: Kubelet;

  beforeAll(async () => {
    cluster = await sharedCluster();
  });
  afterAll(() => cluster?.close());
  beforeEach(async () => {
    namespace = await cluster.makeNamespace();
    kubelet = new Kubelet(cluster, namespace);
  });

  it('a picker in a cluster picks the pods of its pool, and none that drains, is unready or deleted', async () => {
    await cluster.create(pool(namespace));
    for (const i of [1, 2, 3]) await kubelet.run(`pod-${i}`, { ip: `127.1.9.${i}` });
    const picker = await serve(cluster, namespace);
    await ready(picker);
    const client = dial(picker.grpcPort);
    const picked = async () => {
      const all = await Promise.all(
        Array.from({ length: 12 }, (_, i) => answer(client, `prompt ${i} ${Math.random()}`)),
      );
      return [...new Set(all)].sort().join(' ');
    };
    await eventually('all are picked', async () => (await picked()) === '127.1.9.1:8000 127.1.9.2:8000 127.1.9.3:8000');
    await kubelet.annotate('pod-1', { 'pointsman/drain': 'true' });
    await eventually('the drained one is not', async () => (await picked()) === '127.1.9.2:8000 127.1.9.3:8000');
    await kubelet.delete('pod-2');
    await eventually('the deleted one is not', async () => (await picked()) === '127.1.9.3:8000');
    await kubelet.annotate('pod-1', { 'pointsman/drain': null });
    await kubelet.ready('pod-3', false);
    await eventually('the unready one is not', async () => (await picked()) === '127.1.9.1:8000');
  });

  it('4.1 status: a picker in a cluster writes to none of the objects that it reads', async () => {
    const made = [await cluster.create(pool(namespace)), await cluster.create(objective(namespace, 'fast'))];
    made.push(await kubelet.run('pod-1', { ip: '127.1.9.1' }));
    const picker = await serve(cluster, namespace);
    await ready(picker);
    await eventually('it is picked', async () => (await answer(dial(picker.grpcPort))) === '127.1.9.1:8000');
    const versions = await Promise.all(made.map(async (one) => (await cluster.get(one)).metadata.resourceVersion));
    expect(versions).toEqual(made.map(({ metadata }) => metadata.resourceVersion));
  });

  it('a picker in a cluster keeps slot, cache and charges of an unready pod, not for another UID', async () => {
    await cluster.create(pool(namespace));
    await kubelet.run('pod-1', { ip: '127.1.9.1' });
    const picker = await serve(cluster, namespace);
    await ready(picker);
    const blocks = () => metric(picker.metricsPort, 'pointsman_endpoint_prefix_blocks');
    const call = ask(dial(picker.grpcPort), 'a long prompt '.repeat(400));
    const collected = collect(call);
    await firstReply(call);
    const before = await blocks();
    expect(before).toBeGreaterThan(0);
    await kubelet.ready('pod-1', false);
    await eventually('it is not picked', async () => (await answer(dial(picker.grpcPort))) === '503');
    expect(await metric(picker.metricsPort, 'pointsman_ledger_entries')).toBe(1);
    await kubelet.ready('pod-1', true);
    await eventually('it is picked again', async () => (await answer(dial(picker.grpcPort))) === '127.1.9.1:8000');
    expect(await blocks()).toBeGreaterThanOrEqual(before!);
    call.end();
    await collected;
    await kubelet.finish('pod-1');
    await kubelet.run('pod-1', { ip: '127.1.9.1' });
    await eventually('the new one knows nothing', async () => (await blocks()) === 0);
  });

  it('a picker in a cluster is not ready without its pool, says why, and is ready when it comes', async () => {
    const picker = await serve(cluster, namespace);
    await kubelet.run('pod-1', { ip: '127.1.9.1' });
    for (const service of READINESS) expect(await health(picker, service)).toBe('NOT_SERVING');
    expect(await health(picker, 'liveness')).toBe('SERVING');
    expect(await answer(dial(picker.grpcPort))).toBe('503');
    await cluster.create(pool(namespace));
    await ready(picker);
    for (const service of READINESS) expect(await health(picker, service)).toBe('SERVING');
    await eventually('it is picked', async () => (await answer(dial(picker.grpcPort))) === '127.1.9.1:8000');
  });

  it('a picker in a cluster is not ready while none of its parsers speaks the protocol of the pool', async () => {
    await cluster.create(pool(namespace));
    const configuration = [
      ...['apiVersion: llm-d.ai/v1alpha1', 'kind: EndpointPickerConfig', 'plugins: [{type: vllmgrpc-parser}]'],
      'requestHandler: {parsers: [{pluginRef: vllmgrpc-parser}]}',
    ].join('\n');
    const picker = await serve(cluster, namespace, `--config-text=${configuration}`);
    await eventually('it says so', () => picker.log().includes("the pool's appProtocol is http"), WITHIN_MS);
    expect(await health(picker)).toBe('NOT_SERVING');
    await cluster.mergePatch(pool(namespace), { spec: { appProtocol: 'kubernetes.io/h2c' } });
    await ready(picker);
  });

  it('a picker in a cluster serves the pods of a selector, without any custom resource', async () => {
    await kubelet.run('pod-1', { ip: '127.1.9.1', labels: { app: 'sglang' } });
    const flags = [
      '--endpoint-selector=app in (sglang)',
      '--endpoint-target-ports=8001',
      `--pool-namespace=${namespace}`,
    ];
    const picker = await startClusterPicker(cluster, flags, cleanups);
    await ready(picker);
    await eventually('it is picked', async () => (await answer(dial(picker.grpcPort))) === '127.1.9.1:8001');
  });

  it('a picker in a cluster shows on its metrics page how each kind is followed', async () => {
    await cluster.create(pool(namespace));
    const picker = await serve(cluster, namespace);
    await ready(picker);
    const of = (name: string, labels = '') => metric(picker.metricsPort, `pointsman_kubernetes_${name}`, labels);
    expect(await of('synced', 'kind="Pod"')).toBe(1);
    expect(await of('synced', 'kind="InferencePool"')).toBe(1);
    expect(await of('relists_total', 'kind="Pod"')).toBe(1);
    expect(await of('requests_total', 'resource="pods",code="200"')).toBeGreaterThanOrEqual(1);
    expect(await of('last_heard_seconds', 'kind="Pod"')).toBeLessThan(60);
  });

  describe('4.5 metrics port', () => {
    it('the metrics port answers 401 without a token, 403 to who may not read, and 200 to who may', async () => {
      await cluster.create(pool(namespace));
      const reader = await cluster.serviceAccountToken(namespace, 'prometheus');
      const stranger = await cluster.serviceAccountToken(namespace, 'stranger');
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: `reader-${namespace}` };
      await cluster.create({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: `reader-${namespace}` },
        rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }],
      });
      await cluster.create({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: `reader-${namespace}` },
        roleRef,
        subjects: [{ kind: 'ServiceAccount', name: 'prometheus', namespace }],
      });
      const picker = await serve(cluster, namespace, '--metrics-endpoint-auth=true');
      const get = async (path: string, token?: string) => {
        const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
        const got = await fetch(`http://127.0.0.1:${picker.metricsPort}${path}`, { headers });
        return `${got.status} ${got.status === 200 ? '' : (await got.text()).trim()}`;
      };
      expect(await get('/metrics')).toBe('401 a bearer token of the cluster is needed');
      expect(await get('/metrics', 'made-up')).toBe('401 the API server does not accept the bearer token');
      const user = `system:serviceaccount:${namespace}`;
      expect(await get('/metrics', stranger)).toBe(`403 user ${user}:stranger may not get /metrics`);
      expect(await get('/metrics', reader)).toBe('200 ');
      expect(await get('/debug/decisions', reader)).toBe(`403 user ${user}:prometheus may not get /debug/decisions`);
    });

    it('the metrics port says at the start which rights are missing to ask', async () => {
      const picker = await serve(cluster.as(PICKER_TOKEN), namespace, '--metrics-endpoint-auth=true');
      await eventually('it says so', () =>
        picker.log().includes('nobody can read the metrics: the service account may not create tokenreviews'),
      );
      const rule = `inferencepools.inference.networking.k8s.io: get, list, watch in namespace ${namespace}`;
      await eventually('it names the rule', () => picker.log().includes(rule));
    });
  });

  it('4.2 more pods than --max-endpoints: the oldest stay, others are reported and take free slots', async () => {
    await cluster.create(pool(namespace));
    const picker = await serve(cluster, namespace, '--max-endpoints=64');
    const numbers = Array.from({ length: 66 }, (_, i) => i + 1);
    for (const i of numbers) await kubelet.run(`pod-${i}`, { ip: `127.1.9.${i}` });
    const names = async () => {
      const page = await metricsPage(picker.metricsPort);
      const series = page.matchAll(/^pointsman_endpoint_inflight_requests\{endpoint="([^"]*)-rank-0"\}/gm);
      return [...series].map(([, name]) => name!);
    };
    const all = numbers.map((i) => `pod-${i}`);
    await eventually('the pool is full', async () => (await names()).length === 64, WITHIN_MS);
    expect((await names()).sort()).toEqual(all.slice(0, 64).sort());
    for (const i of [65, 66]) {
      const reported = `endpoint ${namespace}/pod-${i}-rank-0 is left out: pool full: raise --max-endpoints`;
      await eventually('the others are reported', () => picker.log().includes(reported), WITHIN_MS);
    }
    const leftOut = () => metric(picker.metricsPort, 'pointsman_left_out_endpoints');
    expect(await leftOut()).toBe(2);
    await kubelet.finish('pod-1');
    await eventually('the next one has its slot', async () => (await names()).includes('pod-65'), WITHIN_MS);
    expect((await names()).sort()).toEqual(all.slice(1, 65).sort());
    expect(await leftOut()).toBe(1);
  }, 90_000);

  describe('4.4 leader election', () => {
    it('a standby takes over from a leader that was killed', async () => {
      await cluster.create(pool(namespace));
      const a = await serve(cluster, namespace, '--ha-enable-leader-election');
      await ready(a);
      const b = await serve(cluster, namespace, '--ha-enable-leader-election');
      await eventually('the standby has the pool', () => b.log().includes('the first state of the pool'), WITHIN_MS);
      await a.kill();
      expect(await health(b)).toBe('NOT_SERVING');
      await ready(b);
      expect(await metric(b.metricsPort, 'pointsman_kubernetes_leader')).toBe(1);
    }, 90_000);

    it('only the leader is ready, a standby answers as well, and SIGTERM hands over', async () => {
      await cluster.create(pool(namespace));
      await kubelet.run('pod-1', { ip: '127.1.9.1' });
      const a = await serve(cluster, namespace, '--ha-enable-leader-election', '--drain-timeout=0s');
      await ready(a);
      const b = await serve(cluster, namespace, '--ha-enable-leader-election');
      await eventually('the standby has the pool', async () => (await answer(dial(b.grpcPort))) === '127.1.9.1:8000');
      for (const service of READINESS) expect(await health(b, service)).toBe('NOT_SERVING');
      expect(await health(b, 'liveness')).toBe('SERVING');
      expect(await metric(b.metricsPort, 'pointsman_kubernetes_leader')).toBe(0);
      a.child.kill('SIGTERM');
      expect(await a.ended).toBe(0);
      await ready(b);
      expect(await metric(b.metricsPort, 'pointsman_kubernetes_leader')).toBe(1);
      const reference = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: `epp-${namespace}-pool.llm-d.ai`, namespace },
      };
      expect((await cluster.get(reference)).spec.leaseTransitions).toBeGreaterThan(0);
    }, 60_000);
  });
});

it('4.5 the metrics of a picker whose API server cannot be asked are answered with 503 and the reason', async () => {
  const [closed] = await freePorts(1);
  const away = new Cluster({ url: `http://127.0.0.1:${closed}`, ca: '', token: 'token' });
  const picker = await serve(away, 'llm', '--metrics-endpoint-auth=true');
  const headers = { authorization: 'Bearer somebody' };
  const answer = await fetch(`http://127.0.0.1:${picker.metricsPort}/metrics`, { headers });
  expect(answer.status).toBe(503);
  expect(await answer.text()).toMatch(
    /^the API server cannot be asked who may read: http:\/\/127\.0\.0\.1:\d+: connect/,
  );
});

describe.skipIf(skipReason !== '')(`7. a picker without its API server${skipReason}`, () => {
  let server: ApiServer;

  beforeAll(async () => {
    server = await startApiServer();
    const { gieCrds } = await import('./cluster.ts');
    await server.cluster().installCrds(gieCrds('v1.5.0'));
  }, 120_000);
  afterAll(() => server?.stop());

  it('a picker without its API server opens its ports, names what it waits for, and stays ready', async () => {
    const cluster = server.cluster();
    cleanups.push(() => cluster.close());
    const namespace = await cluster.makeNamespace();
    await cluster.create(pool(namespace));
    await new Kubelet(cluster, namespace).run('pod-1', { ip: '127.1.9.1' });
    await server.kill();
    const picker = await serve(cluster, namespace, '--ha-enable-leader-election');
    expect(await health(picker, 'liveness')).toBe('SERVING');
    for (const service of READINESS) expect(await health(picker, service)).toBe('NOT_SERVING');
    expect(await answer(dial(picker.grpcPort))).toBe('503');
    expect(await metric(picker.metricsPort, 'pointsman_kubernetes_synced', 'kind="InferencePool"')).toBe(0);
    const awaited = 'not ready: waiting for inferencepools.inference.networking.k8s.io';
    await eventually('it says what it waits for', () => picker.log().includes(awaited));
    await server.start();
    await ready(picker);
    await eventually('it picks', async () => (await answer(dial(picker.grpcPort))) === '127.1.9.1:8000');
    await server.kill();
    await new Promise((resolve) => setTimeout(resolve, 18_000));
    for (const service of READINESS) expect(await health(picker, service)).toBe('SERVING');
    expect(await answer(dial(picker.grpcPort))).toBe('127.1.9.1:8000');
    expect(await metric(picker.metricsPort, 'pointsman_kubernetes_last_heard_seconds', 'kind="Pod"')).toBeGreaterThan(
      10,
    );
  }, 120_000);
});
