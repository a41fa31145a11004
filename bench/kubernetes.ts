import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { selectedLabels } from '../dist/cli/flag-values.js';
import { ClusterAccess } from '../dist/kubernetes/access.js';
import { ApiClient } from '../dist/kubernetes/api-client.js';
import { KubernetesDiscovery } from '../dist/pool/discovery/kubernetes/kubernetes.js';
import { readPod } from '../dist/pool/discovery/kubernetes/objects.js';
import { type ClusterView, project } from '../dist/pool/discovery/kubernetes/projection.js';
import type { PoolUpdate } from '../dist/pool/endpoint.js';
import { SlotTable } from '../dist/pool/slots.js';
import { ApiServer, kubernetesBinaries } from '../test/kubernetes/api-server-process.ts';
import { gieCrds } from '../test/kubernetes/cluster.ts';
import { Kubelet } from '../test/kubernetes/kubelet.ts';
import { pool } from '../test/kubernetes/objects.ts';
import type { Bench } from './bench.ts';

/** A pod of a model server as kubelets and controllers write it: with this filling it has 8.9 KB, as real ones. */
const FILLING = Array.from({ length: 60 }, (_, i) => ({
  name: `VARIABLE_${i}`,
  value: `value of variable ${i} `.repeat(5),
}));

function podObject(i: number, version: number, labels: object = {}) {
  const creationTimestamp = new Date(Date.UTC(2026, 7, 1) + i * 1000).toISOString();
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `vllm-${i}`,
      namespace: 'llm',
      uid: `00000000-0000-0000-0000-${String(i).padStart(12, '0')}`,
      resourceVersion: String(version),
      creationTimestamp,
      labels: { app: 'vllm', ...labels },
    },
    spec: {
      nodeName: `node-${i % 50}`,
      containers: [{ name: 'engine', image: 'vllm', ports: [{ containerPort: 8000 }], env: FILLING }],
    },
    status: {
      phase: 'Running',
      podIP: `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`,
      hostIP: `192.168.0.${i % 50}`,
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: creationTimestamp }],
      containerStatuses: [{ name: 'engine', containerID: `containerd://${i}`, ready: true }],
    },
  };
}

const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;
const END = line('BOOKMARK', {
  metadata: { resourceVersion: '20000', annotations: { 'k8s.io/initial-events-end': 'true' } },
});

/** An API server that has as many pods as no real one makes in the time of a benchmark. */
async function standIn(pods: number) {
  const first = Buffer.from(Array.from({ length: pods }, (_, i) => line('ADDED', podObject(i, i + 1))).join('') + END);
  let watch: ServerResponse | undefined;
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    if (request.url!.includes('sendInitialEvents')) response.write(first);
    watch = response;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const port = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${port}`,
    send: (text: string) => watch!.write(text),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function clientOf(server: string, ca?: string, token?: string): ApiClient {
  const none = { serverName: undefined, tokenFile: undefined, certificate: undefined, key: undefined, exec: undefined };
  const authority = ca === undefined ? undefined : { text: ca };
  return new ApiClient(
    new ClusterAccess({ ...none, server, namespace: undefined, ca: authority, insecure: false, token }),
  );
}

const SELECTED = { kind: 'selector', labels: selectedLabels('app=vllm'), ports: [8000] } as const;

/** From the start of a discovery to its first state. */
async function firstState(client: ApiClient, namespace: string, source: KubernetesSource, endpoints: number) {
  const discovery = new KubernetesDiscovery({ client, namespace, source, inform: () => {} });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  await discovery.start(
    (update) => {
      if ('endpoints' in update && update.endpoints.length === endpoints) resolve();
      else reject(new Error('the first state has another number of endpoints'));
    },
    // A slow start is reported after 3 s, and is no failure.
    () => {},
  );
  await promise;
  await discovery.stop();
}

type KubernetesSource = ConstructorParameters<typeof KubernetesDiscovery>[0]['source'];

/** A real API server with a pool of 1,000 pods in one namespace, and 200 in another that has 1,000 besides. */
async function realServer() {
  if (kubernetesBinaries === undefined) throw new Error('no Kubernetes API server: run scripts/install-kubernetes.sh');
  const server = new ApiServer();
  await server.start();
  const cluster = server.cluster();
  await cluster.installCrds(gieCrds('v1.5.0'));
  const namespace = await cluster.makeNamespace();
  await cluster.create(pool(namespace));
  const kubelet = new Kubelet(cluster, namespace);
  const runOne = (i: number) => kubelet.run(`vllm-${i}`, { ip: `10.0.${i >> 8}.${i & 255}` });
  for (let i = 0; i < 1_000; i += 8) await Promise.all([...Array(8).keys()].map((j) => runOne(i + j)));
  return { server, cluster, namespace };
}

const startOf1000: Bench = {
  name: 'kubernetes/first-state-1000-pods',
  runsMin: 10,
  async setup() {
    const { server, cluster, namespace } = await realServer();
    const client = clientOf(server.url, server.ca, cluster.access.token);
    const source = { kind: 'pool', name: 'pool', group: 'inference.networking.k8s.io' } as const;
    return {
      run: () => firstState(client, namespace, source, 1_000),
      teardown: async () => {
        client.close();
        cluster.close();
        await server.stop();
      },
    };
  },
};

const startOf10000: Bench = {
  name: 'kubernetes/first-state-10000-pods-of-9-kb',
  runsMin: 5,
  async setup() {
    const server = await standIn(10_000);
    const client = clientOf(server.url);
    return {
      run: () => firstState(client, 'llm', SELECTED, 10_000),
      teardown: () => {
        client.close();
        server.close();
      },
    };
  },
};

const CHANGES = 100;

/** 100 changed pods among 1,000, one at a time: from the bytes of the event to the slots that have changed. */
const changes: Bench = {
  name: 'kubernetes/change-among-1000-pods',
  async setup() {
    const server = await standIn(1_000);
    const client = clientOf(server.url);
    const slots = new SlotTable(4096);
    let told: () => void = () => {};
    const discovery = new KubernetesDiscovery({ client, namespace: 'llm', source: SELECTED, inform: () => {} });
    const first = new Promise<void>((resolve) => {
      told = resolve;
    });
    await discovery.start(
      (update: PoolUpdate) => {
        if ('endpoints' in update) slots.apply(update.endpoints);
        else slots.applyChanges(update);
        told();
      },
      () => {},
    );
    await first;
    let version = 30_000;
    return {
      opsPerRun: CHANGES,
      run: async () => {
        const labels = { changed: String(version) };
        const done = new Promise<void>((resolve) => {
          told = resolve;
        });
        let text = '';
        for (let i = 0; i < CHANGES; i++) text += line('MODIFIED', podObject(i * 7, version++, labels));
        server.send(text);
        await done;
      },
      teardown: async () => {
        await discovery.stop();
        client.close();
        server.close();
      },
    };
  },
};

const projection: Bench = {
  name: 'kubernetes/projection-1000-pods',
  async setup() {
    const pods = Array.from({ length: 1_000 }, (_, i) => readPod(podObject(i, i + 1)));
    const view: ClusterView = {
      ...{ reference: undefined, absent: '', objectives: [], rewrites: [], models: [], nowMs: Date.now() },
      pool: { ports: [8000], appProtocol: undefined, deleting: false },
      pods,
    };
    return { run: () => void project(view) };
  },
};

export const benches: readonly Bench[] = [startOf1000, startOf10000, changes, projection];
