import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decodeReply, requestBody, requestHeaders, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { checkHealth, collect, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { ask, metric, metricsPage, type ServeProcess } from '../picker/serving.ts';
import { eventually } from '../tools/gateway/client.ts';
import { sharedCluster, skipReason } from './api-server.ts';
import type { Cluster } from './cluster.ts';
import { startClusterPicker } from './cluster-picker.ts';
import { Kubelet } from './kubelet.ts';
import { POOL_GROUP, pool, rewrite } from './objects.ts';

const WITHIN_MS = 30_000;
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A pools file that is written in one step. */
class PoolsFile {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async create(): Promise<PoolsFile> {
    const folder = await mkdtemp(join(tmpdir(), 'pointsman-cluster-pools-'));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    return new PoolsFile(folder);
  }

  get path(): string {
    return join(this.#folder, 'pools.yaml');
  }

  async write(...pools: readonly object[]): Promise<void> {
    await writeFile(`${this.path}.next`, JSON.stringify({ pools }));
    await rename(`${this.path}.next`, this.path);
  }
}

const serve = (cluster: Cluster, ...flags: string[]): Promise<ServeProcess> =>
  startClusterPicker(cluster, flags, cleanups);

function dial(port: number): ProxyClient {
  const client = dialPicker(port);
  cleanups.push(() => client.close());
  return client;
}

/** Destination, or status, of a request for a pool. */
async function answer(client: ProxyClient, name: string): Promise<string> {
  const call = ask(client, `hello ${Math.random()}`, { 'x-pointsman-pool': name });
  const { status, headers } = decodeReply(await firstReply(call));
  call.end();
  return headers['x-gateway-destination-endpoint'] ?? String(status);
}

describe.skipIf(skipReason !== '')(`pools of a cluster in one process${skipReason}`, () => {
  let cluster: Cluster;
  let namespace: string;
  let kubelet: Kubelet;
  let file: PoolsFile;

  beforeAll(async () => {
    cluster = await sharedCluster();
  });
  afterAll(() => cluster?.close());
  beforeEach(async () => {
    namespace = await cluster.makeNamespace();
    kubelet = new Kubelet(cluster, namespace);
    file = await PoolsFile.create();
    for (const app of ['alpha', 'beta']) {
      await cluster.create(pool(namespace, { selector: { matchLabels: { app } } }, app));
      await kubelet.run(`${app}-0`, { ip: IPS[app]!, labels: { app } });
    }
  });

  const IPS: Readonly<Record<string, string>> = { alpha: '127.1.8.1', beta: '127.1.8.2' };
  const entry = (name: string, rest: object = {}) => ({ name, inferencePool: { name, namespace }, ...rest });
  const picks = (client: ProxyClient, name: string, expected: string) =>
    eventually(`${name} answers ${expected}`, async () => (await answer(client, name)) === expected, WITHIN_MS);

  it('pools of a cluster have the pods of their InferencePool or selector, each in its namespace', async () => {
    const elsewhere = await cluster.makeNamespace();
    const other = new Kubelet(cluster, elsewhere);
    await cluster.create(pool(elsewhere, { selector: { matchLabels: { app: 'alpha' } } }, 'alpha'));
    await other.run('alpha-0', { ip: '127.1.8.3', labels: { app: 'alpha' } });
    const selector = { labels: 'app in (beta)', targetPorts: [8001], namespace };
    await file.write(
      entry('alpha'),
      entry('beta'),
      { name: 'far', inferencePool: { name: 'alpha', namespace: elsewhere } },
      { name: 'picked', selector },
    );
    const picker = await serve(cluster, `--pools=${file.path}`);
    const client = dial(picker.grpcPort);
    await picks(client, 'alpha', '127.1.8.1:8000');
    await picks(client, 'beta', '127.1.8.2:8000');
    await picks(client, 'far', '127.1.8.3:8000');
    await picks(client, 'picked', '127.1.8.2:8001');
    expect(await metric(picker.metricsPort, 'pointsman_kubernetes_synced', 'pool="far"')).toBeGreaterThan(0);
    // One watch for each namespace; three pools share the first one.
    const series = (name: string) => new RegExp(`^pointsman_kubernetes_${name}\\{(.*)$`, 'gm');
    const page = await metricsPage(picker.metricsPort);
    const pods = (name: string) =>
      [...page.matchAll(series(name))].map(([, rest]) => rest!).filter((rest) => rest.includes('"Pod"'));
    expect(pods('watches')).toEqual(['kind="Pod",group=""} 2']);
    expect(pods('objects')).toHaveLength(4);
    // Requests are counted once, whichever pool they are made for.
    const requests = [...page.matchAll(series('requests_total'))].map(([, rest]) => rest!);
    expect(requests.filter((rest) => rest.startsWith('resource="pods"'))).toHaveLength(1);
    expect(requests.filter((rest) => rest.includes('pool='))).toEqual([]);
  });

  it('pools of a cluster stand beside the InferencePool of the flags, which is the default', async () => {
    await file.write(entry('beta'));
    const flags = [`--pool-namespace=${namespace}`, '--pool-name=alpha'];
    const picker = await serve(cluster, `--pools=${file.path}`, ...flags);
    const client = dial(picker.grpcPort);
    await eventually(
      'the own pool is ready',
      async () => (await checkHealth(dial(picker.healthPort), '')) === 'SERVING',
    );
    await picks(client, 'alpha', '127.1.8.1:8000');
    await picks(client, '', '127.1.8.1:8000');
    await picks(client, 'beta', '127.1.8.2:8000');
  });

  it('an InferencePool that changes, goes and comes leaves the requests of another one alone', async () => {
    await file.write(entry('alpha'), entry('beta'));
    const picker = await serve(cluster, `--pools=${file.path}`);
    const client = dial(picker.grpcPort);
    await picks(client, 'alpha', '127.1.8.1:8000');
    await picks(client, 'beta', '127.1.8.2:8000');
    const { answers, end } = underLoad(picker.grpcPort, 'alpha');
    const kept = ask(client, 'kept', { 'x-pointsman-pool': 'alpha' });
    await firstReply(kept);
    const over = collect(kept);

    await kubelet.run('next-0', { ip: '127.1.8.4', labels: { app: 'next' } });
    const beta = pool(namespace, {}, 'beta');
    await cluster.mergePatch(beta, { spec: { selector: { matchLabels: { app: 'next' } } } });
    await picks(client, 'beta', '127.1.8.4:8000');
    await cluster.delete(beta);
    await picks(client, 'beta', '503');
    await cluster.create(pool(namespace, { selector: { matchLabels: { app: 'beta' } } }, 'beta'));
    await picks(client, 'beta', '127.1.8.2:8000');

    kept.write(responseHeaders({ ':status': '200' }));
    kept.write(responseBody('{}', true));
    kept.end();
    expect((await over).code).toBe(0);
    await end();
    expect([...answers]).toEqual(['127.1.8.1:8000']);
  });

  it('an InferencePool that the file adds, turns to another one and removes leaves the requests of another one alone', async () => {
    await file.write(entry('alpha'));
    const picker = await serve(cluster, `--pools=${file.path}`);
    const client = dial(picker.grpcPort);
    await picks(client, 'alpha', '127.1.8.1:8000');
    await picks(client, 'beta', '404');
    const { answers, end } = underLoad(picker.grpcPort, 'alpha');
    await file.write(entry('alpha'), entry('beta'));
    await picks(client, 'beta', '127.1.8.2:8000');
    await file.write(entry('alpha'), { ...entry('beta'), inferencePool: { name: 'alpha', namespace } });
    await picks(client, 'beta', '127.1.8.1:8000');
    await file.write(entry('alpha'));
    await picks(client, 'beta', '404');
    await eventually(
      'its series are gone',
      async () => !(await metricsPage(picker.metricsPort)).includes('pool="beta"'),
    );
    await end();
    expect([...answers]).toEqual(['127.1.8.1:8000']);
  });

  it('a rewrite for one InferencePool changes no request of another one', async () => {
    const rule = { matches: [{ model: { value: 'm' } }], targets: [{ modelRewrite: 'other', weight: 1 }] };
    const made = rewrite(namespace, 'rule', [rule]);
    await cluster.create({ ...made, spec: { ...made.spec, poolRef: { name: 'beta', group: POOL_GROUP } } });
    await file.write(entry('alpha'), entry('beta'));
    const picker = await serve(cluster, `--pools=${file.path}`);
    const client = dial(picker.grpcPort);
    const model = async (name: string) => {
      const call = client.process();
      call.on('error', () => undefined);
      call.write(requestHeaders({ ':path': '/v1/completions', 'x-pointsman-pool': name }));
      call.write(requestBody(JSON.stringify({ model: 'm', prompt: 'hello' })));
      call.end();
      const { replies } = await collect(call);
      return /"model":"(\w+)"/.exec(replies.map((reply) => decodeReply(reply).body.toString()).join(''))?.[1];
    };
    await picks(client, 'alpha', '127.1.8.1:8000');
    await eventually('beta rewrites', async () => (await model('beta')) === 'other', WITHIN_MS);
    expect(await model('alpha')).toBe('m');
  });
});

/** Asks for a pool until the end, on two connections. */
function underLoad(port: number, name: string): { readonly answers: Set<string>; readonly end: () => Promise<void> } {
  const answers = new Set<string>();
  let going = true;
  const load = Array.from({ length: 2 }, async () => {
    const client = dial(port);
    while (going) answers.add(await answer(client, name));
  });
  const end = async () => {
    going = false;
    await Promise.all(load);
  };
  return { answers, end };
}
