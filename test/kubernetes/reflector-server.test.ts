import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterAccess } from '../../dist/src/kubernetes/access.js';
import { ApiClient } from '../../dist/src/kubernetes/api-client.js';
import { poolKind } from '../../dist/src/kubernetes/kinds.js';
import { eventually } from '../tools/gateway/client.ts';
import { type ApiServer, PICKER_TOKEN, sharedCluster, skipReason, startApiServer } from './api-server.ts';
import { Cluster, gieCrds } from './cluster.ts';
import { Kubelet } from './kubelet.ts';
import { clientOf, ObservedReflector, VLLM } from './observed-reflector.ts';
import { SilentProxy } from './silent-proxy.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Options = ConstructorParameters<typeof ObservedReflector>[1];

function follow(cluster: Cluster, namespace: string, options: Options = {}, token?: string): ObservedReflector {
  const observed = new ObservedReflector(clientOf(cluster, token), {
    namespace,
    labels: VLLM,
    backoffMsMax: 1_000,
    ...options,
  });
  cleanups.push(() => observed.stop());
  return observed;
}

const synced = (observed: ObservedReflector) => eventually('the first state', () => observed.reflector.synced, 20_000);

describe.skipIf(skipReason !== '')(`a reflector of an API server${skipReason}`, () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await sharedCluster();
  });
  afterAll(() => cluster?.close());

  async function pods(...names: string[]): Promise<Kubelet> {
    const kubelet = new Kubelet(cluster, await cluster.makeNamespace());
    for (const name of names) await kubelet.run(name);
    return kubelet;
  }

  it('a reflector of an API server gets its first state over the watch', async () => {
    const kubelet = await pods('a', 'b');
    await kubelet.run('other', { labels: { app: 'web' } });
    const observed = follow(cluster, kubelet.namespace);
    await synced(observed);
    expect(observed.told).toEqual(['+a', '+b', '|']);
    expect(observed.reflector.state).toBe('watching');
  });

  it('a reflector of an API server sees a pod leave the selector and come back', async () => {
    const kubelet = await pods('a', 'b');
    const observed = follow(cluster, kubelet.namespace);
    await synced(observed);
    await kubelet.label('a', { app: 'web' });
    await eventually('it left', () => observed.names.join() === 'b');
    await kubelet.label('a', { app: 'vllm' });
    await eventually('it is back', () => observed.names.join() === 'a,b');
  });

  it('a reflector of an API server sees a pod that is deleted and made again under its name as another one', async () => {
    const kubelet = await pods('a');
    const observed = follow(cluster, kubelet.namespace);
    await synced(observed);
    const [before] = observed.reflector.values();
    await kubelet.finish('a');
    await kubelet.run('a');
    await eventually('it is another', () => {
      const [now] = observed.reflector.values();
      return now !== undefined && now.uid !== before!.uid;
    });
    expect(observed.told.filter((one) => one === '-a')).toHaveLength(1);
  });

  it('a reflector of an API server is forbidden without a RoleBinding, says what is missing, and begins once it is allowed', async () => {
    const kubelet = await pods('a');
    const { namespace } = kubelet;
    const observed = follow(cluster, namespace, {}, PICKER_TOKEN);
    await eventually('it is refused', () => observed.reports.length > 0);
    expect(observed.reflector.state).toBe('forbidden');
    expect(observed.reports[0]).toContain(`pods: get, list, watch in namespace ${namespace}: forbidden`);
    expect(observed.reports[0]).toContain('User "picker" cannot');
    await allowPods(cluster, namespace);
    const again = follow(cluster, namespace, {}, PICKER_TOKEN);
    await synced(again);
    expect(again.names).toEqual(['a']);
  });

  it('a reflector of an API server takes fresh credentials after 401', async () => {
    const kubelet = await pods('a');
    let token = 'no such token';
    let rejected = 0;
    class Renewed extends ClusterAccess {
      override async credentials() {
        return { ...(await super.credentials()), token };
      }
      override rejected() {
        rejected++;
        token = cluster.access.token;
      }
    }
    const renewed = new Renewed({
      ...{ server: cluster.access.url, namespace: undefined, ca: { text: cluster.access.ca }, serverName: undefined },
      ...{
        insecure: false,
        token: undefined,
        tokenFile: undefined,
        certificate: undefined,
        key: undefined,
        exec: undefined,
      },
    });
    const observed = new ObservedReflector(new ApiClient(renewed), { namespace: kubelet.namespace });
    cleanups.push(() => observed.stop());
    await synced(observed);
    expect(rejected).toBe(1);
    expect(observed.reports).toEqual([]);
  });

  it('a reflector of an API server notices a dead connection and goes on at its last version', async () => {
    const kubelet = await pods('a', 'b');
    const proxy = await SilentProxy.start(Number(new URL(cluster.access.url).port));
    cleanups.push(() => proxy.close());
    const behind = new Cluster({ ...cluster.access, url: `https://127.0.0.1:${proxy.port}` });
    cleanups.push(() => behind.close());
    const observed = follow(behind, kubelet.namespace, { silenceMs: 2_000 });
    await synced(observed);
    proxy.silence();
    await kubelet.finish('b');
    await eventually('the silence is noticed', () => observed.reflector.counts.reconnects.has('silence'), 20_000);
    expect(observed.names).toEqual(['a', 'b']);
    await proxy.open();
    await eventually('the deletion is known', () => observed.names.join() === 'a', 45_000);
    expect(observed.reflector.counts.relists).toEqual(new Map([['start', 1]]));
  }, 90_000);
});

describe.skipIf(skipReason !== '')(`a reflector of an API server that fails${skipReason}`, () => {
  let server: ApiServer;

  beforeAll(async () => {
    // Watches end after 2 to 4 s.
    server = await startApiServer(['--min-request-timeout', '2']);
  }, 120_000);
  afterAll(() => server?.stop());

  async function pods(...names: string[]): Promise<Kubelet> {
    const cluster = server.cluster();
    cleanups.push(() => cluster.close());
    const kubelet = new Kubelet(cluster, await cluster.makeNamespace());
    for (const name of names) await kubelet.run(name);
    return kubelet;
  }

  it('a reflector of an API server that fails misses nothing while its watches end every few seconds', async () => {
    const kubelet = await pods('pod-0');
    const observed = follow(server.cluster(), kubelet.namespace);
    await synced(observed);
    for (let i = 1; i <= 40; i++) {
      await kubelet.run(`pod-${i}`);
      if (i > 5) await kubelet.finish(`pod-${i - 5}`);
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    const expected = ['pod-0', ...[36, 37, 38, 39, 40].map((i) => `pod-${i}`)];
    await eventually('the state is the server’s', () => observed.names.join() === expected.join(), 20_000);
    expect(observed.reflector.counts.relists).toEqual(new Map([['start', 1]]));
    expect(observed.told.filter((one) => one === '-pod-20')).toHaveLength(1);
  }, 60_000);

  it('a reflector of an API server that fails keeps its state while the server is away, and then has what happened meanwhile', async () => {
    const kubelet = await pods('a', 'b', 'c');
    const observed = follow(server.cluster(), kubelet.namespace);
    await synced(observed);
    await server.kill();
    await eventually('it knows', () => observed.reflector.state === 'waiting');
    expect(observed.names).toEqual(['a', 'b', 'c']);
    await server.start();
    await kubelet.finish('b');
    await eventually('the deletion is known', () => observed.names.join() === 'a,c', 20_000);
    expect(observed.least).toBeGreaterThanOrEqual(2);
  }, 120_000);

  it('a reflector of an API server that fails takes a first state again when the server has forgotten its version (410)', async () => {
    const kubelet = await pods('a', 'b');
    const observed = follow(server.cluster(), kubelet.namespace);
    await synced(observed);
    server.suspend();
    await server.kill();
    await server.start();
    await kubelet.finish('a');
    await server.kill();
    await server.start();
    await eventually('the deletion is known', () => observed.names.join() === 'b', 30_000);
    expect(observed.least).toBeGreaterThanOrEqual(1);
  }, 120_000);

  it('a reflector of an API server that fails begins anew when etcd is restored from a backup and versions go back', async () => {
    const kubelet = await pods('a');
    const observed = follow(server.cluster(), kubelet.namespace);
    const backup = await server.backUp();
    await server.start();
    // More writes than the server makes by itself after the restore, so that our version stays ahead of its versions.
    for (let i = 0; i < 300; i++) await kubelet.label('a', { round: String(i) });
    await kubelet.run('b');
    await eventually('all are known', () => observed.names.length === 2, 20_000);
    await server.restore(backup);
    await server.start();
    await eventually('the restored state is known', () => observed.names.join() === 'a', 60_000);
  }, 180_000);

  it('a reflector of an API server that fails reads a rotated CA after the server’s certificate was replaced', async () => {
    const kubelet = await pods('a');
    const caFile = join(server.folder, 'rotated.crt');
    copyFileSync(server.caFile, caFile);
    const access = new ClusterAccess({
      ...{ server: server.url, namespace: undefined, ca: { file: caFile }, serverName: undefined, insecure: false },
      ...{ token: 'admin-token', tokenFile: undefined, certificate: undefined, key: undefined, exec: undefined },
    });
    const observed = new ObservedReflector(new ApiClient(access), {
      namespace: kubelet.namespace,
      backoffMsMax: 1_000,
    });
    cleanups.push(() => observed.stop());
    await synced(observed);
    await server.kill();
    await server.start({ certificates: 'rotated-certs' });
    await eventually('the certificate is not trusted', () => observed.reflector.problem.includes('self'), 20_000);
    copyFileSync(server.caFile, caFile);
    const admin = server.cluster();
    cleanups.push(() => admin.close());
    await new Kubelet(admin, kubelet.namespace).run('b');
    await eventually('the new pod is known', () => observed.names.join() === 'a,b', 30_000);
  }, 120_000);

  it('a reflector of an API server that fails follows a CRD that is installed, removed and installed again', async () => {
    const cluster = server.cluster();
    cleanups.push(() => cluster.close());
    const namespace = await cluster.makeNamespace();
    const kind = poolKind('inference.networking.x-k8s.io')!;
    const observed = follow(cluster, namespace, { kind, labels: undefined, absentRetryMs: 200 });
    await eventually('the kind is absent', () => observed.reflector.state === 'absent', 20_000);
    const [definition] = gieCrds('v1.0.0', 'InferencePool').filter(({ spec }) => spec.group === kind.group);
    const pool = {
      apiVersion: 'inference.networking.x-k8s.io/v1alpha2',
      kind: 'InferencePool',
      metadata: { name: 'pool', namespace },
      spec: { selector: { app: 'vllm' }, targetPortNumber: 8000, extensionRef: { name: 'epp' } },
    };
    for (let round = 0; round < 2; round++) {
      await cluster.installCrds([definition!]);
      await cluster.create(pool);
      await eventually('the pool is known', () => observed.names.join() === 'pool', 30_000);
      await cluster.delete({
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: definition!.metadata.name },
      });
      await eventually('the kind is gone', () => observed.reflector.state === 'absent', 30_000);
      expect(observed.names).toEqual([]);
    }
  }, 120_000);
});

async function allowPods(cluster: Cluster, namespace: string): Promise<void> {
  await cluster.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'pods', namespace },
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }],
  });
  await cluster.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'pods', namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'pods' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'picker' }],
  });
}
