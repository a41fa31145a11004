// Discovery from Kubernetes. `kubernetes/…` needs an API server (scripts/install-kubernetes.sh) for the rows with real
// pods; rows of the process of a picker start processes of their own, so that no other work counts.
import { setTimeout as pause } from 'node:timers/promises';
import type { PoolUpdate } from '../dist/src/contract/endpoint.js';
import { KubernetesDiscovery } from '../dist/src/pool/discovery/kubernetes/kubernetes.js';
import { type PodRecord, readPod } from '../dist/src/pool/discovery/kubernetes/objects.js';
import { type ClusterView, project } from '../dist/src/pool/discovery/kubernetes/projection.js';
import { SlotTable } from '../dist/src/pool/slots.js';
import { ApiServer, kubernetesBinaries } from '../test/kubernetes/api-server-process.ts';
import { type Cluster, gieCrds } from '../test/kubernetes/cluster.ts';
import { writeKubeconfig } from '../test/kubernetes/kubeconfig.ts';
import { Kubelet } from '../test/kubernetes/kubelet.ts';
import { model, objective, pool, rewrite } from '../test/kubernetes/objects.ts';
import { type Bench, type Figure, type Report, round } from './bench.ts';
import { ExtProcClient } from './compat/ext-proc.ts';
import { clientOf, sourceOf } from './kubernetes/cluster-client.ts';
import { metricsTimesInFlood } from './kubernetes/flood.ts';
import {
  endpointsFlags,
  plainKubeconfig,
  startFirstState,
  startObservedPicker,
  startStandInProcess,
  startToServingMs,
} from './kubernetes/processes.ts';
import { line, podAddress, podObject, startStandIn } from './kubernetes/stand-in.ts';

const SELECTED = sourceOf();

/** A real API server. Tests' fixtures make the pods. */
async function realServer() {
  if (kubernetesBinaries === undefined) throw new Error('no Kubernetes API server: run scripts/install-kubernetes.sh');
  const server = new ApiServer();
  await server.start();
  const cluster = server.cluster();
  await cluster.installCrds(gieCrds('v1.5.0'));
  return {
    server,
    cluster,
    stop: async () => {
      cluster.close();
      await server.stop();
    },
  };
}

/** A namespace with a pool and its pods, and pods that are not the pool's. */
async function fill(cluster: Cluster, pods: number, others = 0): Promise<string> {
  const namespace = await cluster.makeNamespace();
  await cluster.create(pool(namespace));
  const kubelet = new Kubelet(cluster, namespace);
  await inEights(pods, (i) => kubelet.run(`vllm-${i}`, { ip: podAddress(i) }));
  await inEights(others, (i) => cluster.create(kubelet.pod(`other-${i}`, { labels: { app: 'other' } })));
  return namespace;
}

async function inEights(count: number, make: (i: number) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < count; i += 8) {
    await Promise.all(Array.from({ length: Math.min(8, count - i) }, (_, j) => make(i + j)));
  }
}

/** From the start of a discovery to its first state. */
async function firstState(client: ReturnType<typeof clientOf>, endpoints: number) {
  const discovery = new KubernetesDiscovery({ client, namespace: 'llm', source: SELECTED, inform: () => {} });
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

const startOf10000: Bench = {
  name: 'kubernetes/first-state-10000-pods-of-9-kb',
  runsMin: 5,
  async setup() {
    const server = await startStandIn(10_000);
    const client = clientOf(server.url);
    return {
      run: () => firstState(client, 10_000),
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
    const server = await startStandIn(1_000);
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
        for (let i = 0; i < CHANGES; i++) text += line('MODIFIED', podObject(i * 7, version++, { labels }));
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
    const pods = Array.from({ length: 1_000 }, (_, i) => readPod(podObject(i, i + 1)) as PodRecord);
    const view: ClusterView = {
      ...{ reference: undefined, absent: '', objectives: [], rewrites: [], models: [], nowMs: Date.now() },
      pool: { ports: [8000], appProtocol: undefined, deleting: false, ownLabels: {} },
      pods,
    };
    return { run: () => void project(view) };
  },
};

export const benches: readonly Bench[] = [startOf10000, changes, projection];

/** Rows that processes of their own give. */
interface Measurement {
  /** The beginning of the names of its figures. */
  readonly name: string;
  readonly measure: () => Promise<readonly Figure[]>;
}

const NS_PER_MS = 1e6;

function sorted(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}

const median = (values: readonly number[]) => sorted(values)[values.length >> 1]!;
const quantile = (values: readonly number[], share: number) => sorted(values)[Math.ceil(values.length * share) - 1]!;

/** Of several runs: their median, and the largest in the place of a 99th percentile. */
function figure(name: string, unit: Figure['unit'], values: readonly number[]): Figure {
  const scaled = unit === 'ns' ? values.map((ms) => ms * NS_PER_MS) : values;
  return { name, unit, median: round(median(scaled)), p99: round(Math.max(...scaled)), runs: values.length };
}

const STARTS = 5;
/** Endpoints of the largest pool of these rows, and more. */
const MAX_ENDPOINTS = '--max-endpoints=1024';
const SETTLED_MS = 2_000;

/** A start to SERVING, and memory, against a picker with the same endpoints from a file; runs take turns. */
const overFile: Measurement = {
  name: 'kubernetes/over-file',
  async measure() {
    const { cluster, stop } = await realServer();
    const figures: Figure[] = [];
    for (const pods of [100, 1_000]) {
      const namespace = await fill(cluster, pods);
      const kubeconfig = writeKubeconfig(cluster);
      const file = endpointsFlags(Array.from({ length: pods }, (_, i) => podAddress(i)));
      const flags = [MAX_ENDPOINTS, '--pool-name=pool', `--pool-namespace=${namespace}`];
      const times: number[] = [];
      for (let run = 0; run < STARTS; run++) {
        const plain = await startToServingMs('', [MAX_ENDPOINTS, ...file.flags]);
        times.push((await startToServingMs(kubeconfig.file, flags)) - plain);
      }
      figures.push(figure(`kubernetes/start-${pods}-pods-over-file`, 'ns', times));
      if (pods === 100) figures.push(await memoryOverFile(kubeconfig.file, flags, file.flags));
      file.remove();
      kubeconfig.remove();
    }
    await stop();
    return figures;
  },
};

async function memoryOverFile(kubeconfig: string, flags: readonly string[], file: readonly string[]): Promise<Figure> {
  const memory: number[] = [];
  for (let run = 0; run < 3; run++) {
    const pickers = [await startObservedPicker('', file), await startObservedPicker(kubeconfig, flags)];
    await pause(SETTLED_MS);
    const [plain, inCluster] = await Promise.all(pickers.map((picker) => picker.usage()));
    memory.push(inCluster!.rssMb - plain!.rssMb);
    await Promise.all(pickers.map((picker) => picker.stop()));
  }
  return figure('kubernetes/memory-100-pods-over-file', 'MB', memory);
}

/** The API server selects: a large namespace costs no more than the pool. */
const selected: Measurement = {
  name: 'kubernetes/200-of-10000-pods',
  async measure() {
    const { server, cluster, stop } = await realServer();
    const namespace = await fill(cluster, 200, 9_800);
    const where = { url: server.url, ca: server.ca, token: cluster.access.token, namespace, pool: 'pool' };
    const states = [];
    for (let run = 0; run < STARTS; run++) {
      const started = await startFirstState(where);
      states.push(started.state);
      await started.stop();
    }
    await stop();
    return [
      figure(
        'kubernetes/200-of-10000-pods-first-state',
        'ns',
        states.map(({ ms }) => ms),
      ),
      figure(
        'kubernetes/200-of-10000-pods-memory',
        'MB',
        states.map(({ rssMb }) => rssMb.after - rssMb.before),
      ),
    ];
  },
};

const all: Measurement = {
  name: 'kubernetes/10000-selected-pods',
  async measure() {
    const server = await startStandInProcess(10_000);
    const states = [];
    for (let run = 0; run < STARTS; run++) {
      const started = await startFirstState({ url: server.url, namespace: 'llm' });
      states.push(started.state);
      await started.stop();
    }
    await server.stop();
    return [
      figure(
        'kubernetes/10000-selected-pods-first-state',
        'ns',
        states.map(({ ms }) => ms),
      ),
      figure(
        'kubernetes/10000-selected-pods-longest-pause',
        'ns',
        states.map(({ pauseMs }) => pauseMs),
      ),
      figure(
        'kubernetes/10000-selected-pods-peak-memory',
        'MB',
        states.map(({ rssMb }) => rssMb.peak - rssMb.before),
      ),
    ];
  },
};

const CHURN_SECONDS = 5;
const CHURN_RUNS = 3;

/** 100 changes a second: labels, readiness, deletions and new pods. The idle picker's own use is taken off. */
const churn: Measurement = {
  name: 'kubernetes/100-changes-a-second-among-1000-pods',
  async measure() {
    const server = await startStandInProcess(1_000);
    const kubeconfig = plainKubeconfig(server.url);
    const source = ['--endpoint-selector=app=vllm', '--endpoint-target-ports=8000', '--pool-namespace=llm'];
    const picker = await startObservedPicker(kubeconfig.file, [MAX_ENDPOINTS, ...source]);
    const delays: number[] = [];
    const control: number[] = [];
    const process: number[] = [];
    await pause(SETTLED_MS);
    for (let run = 0; run < CHURN_RUNS; run++) {
      const spent = async (order: Parameters<typeof server.order>[0]) => {
        server.order(order);
        await pause(1_000);
        await picker.usage();
        await pause(CHURN_SECONDS * 1_000);
        return picker.usage();
      };
      const quiet = await spent({ kind: 'quiet' });
      const busy = await spent({ kind: 'churn', perSecond: 100 });
      control.push((busy.controlCpuMs / busy.seconds - quiet.controlCpuMs / quiet.seconds) / 10);
      process.push((busy.cpuMs / busy.seconds - quiet.cpuMs / quiet.seconds) / 10);
      delays.push(...busy.delaysMs);
    }
    await picker.stop();
    await server.stop();
    kubeconfig.remove();
    const delay = { median: round(median(delays) * NS_PER_MS), p99: round(quantile(delays, 0.99) * NS_PER_MS) };
    return [
      figure('kubernetes/100-changes-a-second-control-thread', '%', control),
      figure('kubernetes/100-changes-a-second-all-threads', '%', process),
      { name: 'kubernetes/change-to-every-shard', unit: 'ns', ...delay, runs: delays.length },
    ];
  },
};

const IDLE_SECONDS = 60;
const IDLE_PODS = 1_000;

/** Kinds of which a picker has a complete first state, from its metrics. */
async function followedKinds(metricsPort: number): Promise<number> {
  const page = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  return [...page.matchAll(/^pointsman_kubernetes_synced\{[^}]*\} 1$/gm)].length;
}

/**
 * A minute of five watches on a quiet cluster: a picker that follows pods, pool, objectives, rewrites and models, and
 * beside it one with the same endpoints from a file.
 */
const idle: Measurement = {
  name: 'kubernetes/idle-1000-pods',
  async measure() {
    const { cluster, stop } = await realServer();
    await cluster.installCrds(gieCrds('v0.5.1', 'InferenceModel'));
    const namespace = await fill(cluster, IDLE_PODS);
    await cluster.create(objective(namespace, 'fast', { priority: 1 }));
    await cluster.create(rewrite(namespace, 'chat', [{ targets: [{ modelRewrite: 'chat-v2', weight: 1 }] }]));
    await cluster.create(model(namespace, 'chat', { modelName: 'chat', criticality: 'Critical' }));
    const kubeconfig = writeKubeconfig(cluster);
    const file = endpointsFlags(Array.from({ length: IDLE_PODS }, (_, i) => podAddress(i)));
    const flags = [MAX_ENDPOINTS, '--pool-name=pool', `--pool-namespace=${namespace}`];
    const pickers = [
      await startObservedPicker(kubeconfig.file, flags),
      await startObservedPicker('', [MAX_ENDPOINTS, ...file.flags]),
    ];
    await pause(SETTLED_MS);
    const followed = await followedKinds(pickers[0]!.metricsPort);
    if (followed !== 5) throw new Error(`the picker follows ${followed} kinds, not 5`);
    await Promise.all(pickers.map((picker) => picker.usage()));
    await pause(IDLE_SECONDS * 1_000);
    const [inCluster, plain] = await Promise.all(pickers.map((picker) => picker.usage()));
    await Promise.all(pickers.map((picker) => picker.stop()));
    await stop();
    file.remove();
    kubeconfig.remove();
    const share = (cpuMs: number) => cpuMs / inCluster!.seconds / 10;
    const row = (name: string, percent: number) => figure(`kubernetes/idle-1000-pods-${name}`, '%', [percent]);
    return [
      row('control-thread', share(inCluster!.controlCpuMs)),
      row('all-threads', share(inCluster!.cpuMs)),
      row('control-thread-over-file', share(inCluster!.controlCpuMs - plain!.controlCpuMs)),
      row('all-threads-over-file', share(inCluster!.cpuMs - plain!.cpuMs)),
    ];
  },
};

const CALLERS = 8;
const PICK_SECONDS = 3;
const PICK_ROUNDS = 4;

/** Requests of callers that each wait for their answer, in milliseconds, for some seconds. */
async function pickTimes(client: ExtProcClient): Promise<number[]> {
  const times: number[] = [];
  const end = performance.now() + PICK_SECONDS * 1_000;
  const call = async () => {
    while (performance.now() < end) {
      const began = performance.now();
      const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: `prompt ${Math.random()}` }] });
      const exchange = await client.ask({ path: '/v1/chat/completions', headers: [], body, subset: undefined });
      times.push(performance.now() - began);
      await exchange.finish();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  return times;
}

/** Picks while 100 pods change a second, against picks of a quiet pool: the two take turns. */
const picksDuringChurn: Measurement = {
  name: 'kubernetes/picks-during-churn',
  async measure() {
    const server = await startStandInProcess(1_000);
    const kubeconfig = plainKubeconfig(server.url);
    const source = ['--endpoint-selector=app=vllm', '--endpoint-target-ports=8000', '--pool-namespace=llm'];
    const picker = await startObservedPicker(kubeconfig.file, [MAX_ENDPOINTS, ...source]);
    const client = new ExtProcClient(picker.grpcPort);
    const times = { quiet: [] as number[], churn: [] as number[] };
    await pause(SETTLED_MS);
    await pickTimes(client);
    for (let turn = 0; turn < PICK_ROUNDS; turn++) {
      server.order({ kind: 'quiet' });
      times.quiet.push(...(await pickTimes(client)));
      server.order({ kind: 'churn', perSecond: 100 });
      times.churn.push(...(await pickTimes(client)));
    }
    client.close();
    await picker.stop();
    await server.stop();
    kubeconfig.remove();
    const row = (name: string, all: readonly number[]): Figure => ({
      name: `kubernetes/${name}`,
      unit: 'ns',
      median: round(median(all) * NS_PER_MS),
      p99: round(quantile(all, 0.99) * NS_PER_MS),
      runs: all.length,
    });
    return [row('pick-without-churn', times.quiet), row('pick-during-churn', times.churn)];
  },
};

/** The page of metrics answers within a second, also in a flood. */
const flood: Measurement = {
  name: 'kubernetes/metrics-in-a-flood',
  measure: async () => [figure('kubernetes/metrics-in-a-flood', 'ns', await metricsTimesInFlood())],
};

const measurements: readonly Measurement[] = [overFile, selected, all, churn, picksDuringChurn, idle, flood];

async function* figuresOf(chosen: readonly Measurement[]): AsyncIterable<Figure> {
  for (const { measure } of chosen) yield* await measure();
}

const report = (name: string, chosen: readonly Measurement[]): Report => ({
  name,
  // They take the time that their processes need, whatever is asked for.
  timeMs: 1_000,
  run: () => figuresOf(chosen),
});

/** All of them by `kubernetes`, and each by its name. */
export const reports: readonly Report[] = [
  report('kubernetes', measurements),
  ...measurements.map((one) => report(one.name, [one])),
];
