import { isDeepStrictEqual } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Endpoint, PoolUpdate } from '../../dist/src/contract/endpoint.js';
import { POD } from '../../dist/src/kubernetes/kinds.js';
import { ObjectProblem } from '../../dist/src/kubernetes/object-copy.js';
import { Watches, type WatchOptions } from '../../dist/src/kubernetes/watches.js';
import { KubernetesDiscovery } from '../../dist/src/pool/discovery/kubernetes/kubernetes.js';
import { eventually } from '../tools/gateway/client.ts';
import { type ApiServer, skipReason, startApiServer } from './api-server.ts';
import { type Cluster, gieCrds } from './cluster.ts';
import { Kubelet } from './kubelet.ts';
import { objective, POOL_GROUP, pool } from './objects.ts';
import { clientOf, type Named, readNamed } from './observed-reflector.ts';
import { added, bookmark, ScriptedServer, status, watch } from './scripted-server.ts';

const WITHIN_MS = 45_000;
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe('watches that several followers share', () => {
  const team = (name: string) => ({
    selector: `team=${name}`,
    accepts: ({ team }: { team?: string }) => team === name,
  });
  const ofTeam = (name: string) => ({ metadata: { name, labels: { team: name } } });

  /** A follower of the pods of a team, and what it was told. */
  function follow(watches: Watches, name: string, more: Partial<WatchOptions<Named>> = {}) {
    const told: string[] = [];
    const reports: string[] = [];
    const followed = watches.follow<Named>({
      ...{ kind: POD, namespace: 'llm', backoffMsMax: 200, labels: team(name), read: readNamed },
      changed: (set, removed) =>
        told.push(...removed.map((one) => `-${one.name}`), ...set.map((one) => `+${one.name}`)),
      report: (problem) => reports.push(problem),
      ...more,
    });
    followed.start();
    cleanups.push(() => followed.stop());
    return { followed, told, reports };
  }

  async function serve(...script: Parameters<typeof ScriptedServer.start>) {
    const server = await ScriptedServer.start(...script);
    const client = clientOf(server.url);
    cleanups.push(
      () => server.close(),
      () => client.close(),
    );
    return { server, watches: new Watches(client, true) };
  }

  const pod = (name: string, version: number, of: string) => {
    const event = added(name, version);
    return { ...event, object: { metadata: { ...event.object.metadata, ...ofTeam(of).metadata, name } } };
  };

  it('a follower that comes later has what the watch knows, and no request is made for it', async () => {
    const { server, watches } = await serve(watch([pod('a', 1, 'red'), pod('b', 2, 'blue'), bookmark(3, true)]));
    const red = follow(watches, 'red');
    await eventually('the first is synced', () => red.followed.synced);
    const blue = follow(watches, 'blue');
    expect(blue.followed.synced).toBe(false);
    await eventually('the second is synced', () => blue.followed.synced);
    expect([red.told, blue.told]).toEqual([['+a'], ['+b']]);
    expect(server.requests).toHaveLength(1);
  });

  it('a follower that stops leaves the watch to the others, and the last one ends it', async () => {
    let ended = false;
    const { server, watches } = await serve((request, response) => {
      request.on('close', () => {
        ended = true;
      });
      watch([pod('a', 1, 'red'), bookmark(3, true)])(request, response);
    });
    const [first, last] = [follow(watches, 'red'), follow(watches, 'red')];
    await eventually('both are synced', () => first.followed.synced && last.followed.synced);
    first.followed.stop();
    expect(watches.kinds.map(({ counts }) => counts.running)).toEqual([1]);
    last.followed.stop();
    await eventually('the watch ends', () => ended);
    expect(watches.kinds.map(({ counts }) => counts.running)).toEqual([0]);
    follow(watches, 'red');
    await eventually('a later one opens another', () => server.requests.length === 2);
  });

  it('an object that cannot be read is told to those that select it', async () => {
    const { watches } = await serve(watch([pod('a', 1, 'red'), bookmark(3, true)]));
    const read = () => new ObjectProblem('spec.wrong: is wrong');
    const [red, blue] = [follow(watches, 'red', { read }), follow(watches, 'blue', { read })];
    await eventually('both are synced', () => red.followed.synced && blue.followed.synced);
    expect(red.reports).toEqual(['Pod a: spec.wrong: is wrong; the object is left out']);
    expect([red.followed.rejected, blue.followed.rejected, blue.reports.length]).toEqual([1, 0, 0]);
  });

  it('an exception of one follower keeps nothing from another one', async () => {
    const { watches } = await serve(watch([pod('a', 1, 'red'), bookmark(3, true)]));
    const changed = () => {
      throw new Error('out of order');
    };
    const broken = follow(watches, 'red', { changed });
    const red = follow(watches, 'red');
    await eventually('the second is told', () => red.told.includes('+a'));
    expect(broken.reports).toEqual(['unexpected: out of order']);
    expect(red.reports).toEqual([]);
  });

  it('a refusal is told to a follower that comes after it', async () => {
    const refused = status(403, 'Forbidden');
    const { watches } = await serve(...Array.from({ length: 20 }, () => refused));
    const first = follow(watches, 'red');
    await eventually('it is refused', () => first.reports.length > 0);
    let changes = 0;
    const late = follow(watches, 'blue', { stateChanged: () => changes++ });
    await eventually('the later one hears it', () => late.reports.length > 0);
    expect(late.reports[0]).toContain('forbidden');
    expect([late.followed.state, changes > 0]).toEqual(['forbidden', true]);
  });

  it('more watches than connections for requests leave the requests going', async () => {
    const server = await ScriptedServer.start();
    const client = clientOf(server.url);
    const watches = new Watches(client, true);
    cleanups.push(
      () => server.close(),
      () => client.close(),
    );
    for (let i = 0; i < 40; i++) follow(watches, 'red', { namespace: `llm-${i}` });
    await eventually('all watches are open', () => server.requests.length === 40);
    server.answer((_request, response) => response.end('{}'));
    expect(await client.request('GET', '/version')).toEqual({});
  });
});

describe.skipIf(skipReason !== '')(`pools of one namespace at an API server${skipReason}`, () => {
  const POOLS = 12;
  const ONE_OF_EACH = { inferencemodelrewrites: 1, inferenceobjectives: 1, inferencepools: 1, pods: 1 };
  let server: ApiServer;
  let cluster: Cluster;
  let namespace: string;
  let watches: Watches;
  const client = () => clientOf(cluster);

  beforeAll(async () => {
    server = await startApiServer();
    cluster = server.cluster();
    await cluster.installCrds(gieCrds('v1.5.0'));
  });
  afterAll(async () => {
    cluster?.close();
    await server?.stop();
  });
  beforeEach(async () => {
    namespace = await cluster.makeNamespace();
    const kubelet = new Kubelet(cluster, namespace);
    for (let i = 0; i < POOLS; i++) {
      await cluster.create(pool(namespace, { selector: { matchLabels: { app: `app-${i}` } } }, `pool-${i}`));
      await kubelet.run(`pod-${i}`, { ip: `10.0.1.${i + 1}`, labels: { app: `app-${i}` } });
    }
    await cluster.create(objective(namespace, 'fast', { priority: 7, poolRef: { name: 'pool-3' } }));
  });

  /** Watches in namespaces that the API server has open now, by resource. */
  async function openWatches(): Promise<Readonly<Record<string, number>>> {
    const page = await cluster.demand('GET', '/metrics');
    const counts: Record<string, number> = {};
    for (const line of String(page).split('\n')) {
      if (!/^apiserver_longrunning_requests\{.*scope="namespace".*verb="WATCH"/.test(line)) continue;
      const resource = /resource="([^"]*)"/.exec(line)![1]!;
      counts[resource] = (counts[resource] ?? 0) + Number(line.slice(line.lastIndexOf(' ')));
    }
    // The API server watches objects of its own.
    return Object.fromEntries(Object.entries(counts).filter(([name, count]) => count > 0 && name in ONE_OF_EACH));
  }

  function discover(i: number) {
    const api = client();
    const discovery = new KubernetesDiscovery({
      client: api,
      watches,
      namespace,
      source: { kind: 'pool', name: `pool-${i}`, group: POOL_GROUP },
      inform: () => {},
    });
    const endpoints = new Map<string, Endpoint>();
    const objectives = new Map<string, number>();
    const take = (update: PoolUpdate) => {
      const rules = 'endpoints' in update ? update : update.rules;
      for (const id of 'removed' in update ? update.removed : []) endpoints.delete(id);
      for (const one of 'endpoints' in update ? update.endpoints : update.set) endpoints.set(one.id, one);
      for (const [name, priority] of rules?.objectives ?? []) objectives.set(name, priority);
    };
    void discovery.start(take, () => {});
    cleanups.push(async () => {
      await discovery.stop();
      api.close();
    });
    return { discovery, endpoints, objectives };
  }

  const addresses = ({ endpoints }: ReturnType<typeof discover>) =>
    [...endpoints.values()].map(({ address }) => address);

  it('pools of one namespace share one watch of each kind, and each has its own pods and objectives', async () => {
    const api = client();
    cleanups.push(() => api.close());
    watches = new Watches(api, true);
    const pools = Array.from({ length: POOLS }, (_, i) => discover(i));
    await eventually(
      'each pool has its pod',
      () => pools.every((one, i) => addresses(one).join() === `10.0.1.${i + 1}`),
      WITHIN_MS,
    );
    await eventually('one has its objective', () => pools[3]!.objectives.get('fast') === 7, WITHIN_MS);
    expect(pools.filter(({ objectives }) => objectives.size > 0)).toHaveLength(1);
    const isOneOfEach = async () => isDeepStrictEqual(await openWatches(), ONE_OF_EACH);
    await eventually('one watch of each kind is open', isOneOfEach, WITHIN_MS).catch(async () => {
      expect(await openWatches()).toEqual(ONE_OF_EACH);
    });
  }, 90_000);

  it('a pool that is removed leaves the watches to the others, and one that is added opens none', async () => {
    const api = client();
    cleanups.push(() => api.close());
    watches = new Watches(api, true);
    const [removed, stays] = [discover(0), discover(1)];
    await eventually(
      'both have their pods',
      () => [removed, stays].every((one) => one.endpoints.size === 1),
      WITHIN_MS,
    );
    const relists = watches.kinds.map(({ counts }) => [...counts.relists.values()]);
    await removed.discovery.stop();
    const later = discover(2);
    await eventually('the new one has its pod', () => addresses(later).join() === '10.0.1.3', WITHIN_MS);
    const kubelet = new Kubelet(cluster, namespace);
    await kubelet.run('more', { ip: '10.0.2.1', labels: { app: 'app-1' } });
    await eventually('the other one hears of its pod', () => addresses(stays).includes('10.0.2.1'), WITHIN_MS);
    expect(watches.kinds.map(({ counts }) => [...counts.relists.values()])).toEqual(relists);
    expect(removed.endpoints.size).toBe(1);
  });

  it('a pool whose selector changes has the other pods from the shared watch', async () => {
    const api = client();
    cleanups.push(() => api.close());
    watches = new Watches(api, true);
    const [changed, other] = [discover(0), discover(1)];
    await eventually(
      'both have their pods',
      () => [changed, other].every((one) => one.endpoints.size === 1),
      WITHIN_MS,
    );
    const spec = { selector: { matchLabels: { app: 'app-5' } } };
    await cluster.mergePatch(pool(namespace, {}, 'pool-0'), { spec });
    await eventually('it has the pod of the new selector', () => addresses(changed).join() === '10.0.1.6', WITHIN_MS);
    expect(addresses(other)).toEqual(['10.0.1.2']);
    expect(watches.kinds.find(({ kind }) => kind === POD)!.counts.running).toBe(1);
  });
});
