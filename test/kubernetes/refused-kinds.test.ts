import type { ClientRequest } from 'node:http';
import { request } from 'node:https';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../tools/gateway/client.ts';
import { PICKER_TOKEN, sharedCluster, skipReason } from './api-server.ts';
import { Cluster } from './cluster.ts';
import { Kubelet } from './kubelet.ts';
import { LEGACY_GROUP, objective, POOL_GROUP, pool } from './objects.ts';
import { ObservedDiscovery } from './observed-discovery.ts';
import { SilentProxy } from './silent-proxy.ts';

const WITHIN_MS = 45_000;
const FLOW_CONTROL = 'flowcontrol.apiserver.k8s.io/v1';
const RBAC = 'rbac.authorization.k8s.io';
/** Names the priority level that a request had. */
const LEVEL_HEADER = 'x-kubernetes-pf-prioritylevel-uid';
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A request that lasts until it is destroyed, or a minute: its body does not come. */
function takeSeat({ url, ca, token }: Cluster['access'], path: string): ClientRequest {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': 1000 };
  const seat = request(url + path, { method: 'POST', ca, headers, agent: false });
  seat.on('error', () => {});
  seat.on('response', () => seat.destroy());
  seat.write('{');
  return seat;
}

// The API server's own flow control refuses what a picker asks for. A priority level of no seats gives out one all the
// same; while that one is taken, by a request whose body does not come, it answers 429.
describe.skipIf(skipReason !== '')(`7. an API server that answers 429${skipReason}`, () => {
  let cluster: Cluster;
  let namespace: string;
  let kubelet: Kubelet;
  let proxy: SilentProxy;
  let observed: ObservedDiscovery;

  beforeAll(async () => {
    cluster = await sharedCluster();
  });
  afterAll(() => cluster?.close());
  beforeEach(async () => {
    namespace = await cluster.makeNamespace();
    kubelet = new Kubelet(cluster, namespace);
    await allow();
    await cluster.create(pool(namespace));
    await cluster.create(objective(namespace, 'fast', { priority: 7 }));
    for (const name of ['a', 'b']) await kubelet.run(name, { ip: `10.0.0.${name === 'a' ? 1 : 2}` });
    proxy = await SilentProxy.start(Number(new URL(cluster.access.url).port));
    cleanups.push(() => proxy.close());
    const behind = new Cluster({ ...cluster.access, url: `https://127.0.0.1:${proxy.port}`, token: PICKER_TOKEN });
    observed = new ObservedDiscovery(behind, namespace);
    cleanups.push(() => observed.stop());
    await shows('a-rank-0:8000, b-rank-0:8000');
    await eventually('the objective', () => observed.rules!.objectives.get('fast') === 7, WITHIN_MS);
  });

  /** The user `picker` may read what a picker reads in the namespace. */
  async function allow(): Promise<void> {
    const verbs = ['get', 'list', 'watch'];
    await cluster.create({
      apiVersion: `${RBAC}/v1`,
      kind: 'Role',
      metadata: { name: 'picker', namespace },
      rules: [
        { apiGroups: [''], resources: ['pods'], verbs },
        { apiGroups: [POOL_GROUP, LEGACY_GROUP], resources: ['*'], verbs },
        { apiGroups: [LEGACY_GROUP], resources: ['inferenceobjectives'], verbs: ['create'] },
      ],
    });
    await cluster.create({
      apiVersion: `${RBAC}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'picker', namespace },
      roleRef: { apiGroup: RBAC, kind: 'Role', name: 'picker' },
      subjects: [{ kind: 'User', apiGroup: RBAC, name: 'picker' }],
    });
  }

  /** From now on the server answers 429 to new requests of the picker for these resources. @returns what ends that */
  async function refuse(...resources: string[]): Promise<() => Promise<void>> {
    const metadata = { name: namespace };
    const limited = { nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0 };
    const level = await cluster.create({
      apiVersion: FLOW_CONTROL,
      kind: 'PriorityLevelConfiguration',
      metadata,
      spec: { type: 'Limited', limited: { ...limited, limitResponse: { type: 'Reject' } } },
    });
    const schema = await cluster.create({
      apiVersion: FLOW_CONTROL,
      kind: 'FlowSchema',
      metadata,
      spec: {
        matchingPrecedence: 100,
        priorityLevelConfiguration: { name: namespace },
        rules: [
          {
            subjects: [{ kind: 'User', user: { name: 'picker' } }],
            resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources, namespaces: [namespace] }],
          },
        ],
      },
    });
    const picker = cluster.as(PICKER_TOKEN);
    const path = `/apis/${LEGACY_GROUP}/v1alpha2/namespaces/${namespace}/inferenceobjectives`;
    const isOfLevel = async () => (await picker.request('GET', path)).headers[LEVEL_HEADER] === level.metadata.uid;
    await eventually('the priority level counts', isOfLevel, WITHIN_MS);
    let seat = takeSeat(picker.access, path);
    const end = async () => {
      seat.destroy();
      picker.close();
      await cluster.delete(schema);
      await cluster.delete(level);
    };
    cleanups.push(end);
    const refused = async () => {
      // The seat was taken.
      if (seat.closed) seat = takeSeat(picker.access, path);
      return (await picker.request('GET', path)).status === 429;
    };
    await eventually('the server refuses', refused, WITHIN_MS);
    return end;
  }

  const shows = (text: string) =>
    eventually(`"${text}"`, () => observed.shown === text && observed.rules !== undefined, WITHIN_MS);

  const stateOf = (kind: string) => observed.discovery.kinds.find((one) => one.kind.name === kind)!.watch.state;
  const countsOf = (kind: string) => observed.watches.kinds.find((one) => one.kind.name === kind)!.counts;
  const refusals = (kind: string) => countsOf(kind).reconnects.get('429') ?? 0;

  it('one kind fails: its last state counts, and the others go on', async () => {
    const end = await refuse('inferenceobjectives');
    proxy.cut();
    await eventually('it is refused', () => refusals('InferenceObjective') > 0, WITHIN_MS);
    await kubelet.run('c', { ip: '10.0.0.3' });
    await shows('a-rank-0:8000, b-rank-0:8000, c-rank-0:8000');
    await cluster.mergePatch(pool(namespace), { spec: { appProtocol: 'kubernetes.io/h2c' } });
    await eventually('the pool changes', () => observed.rules!.appProtocol === 'kubernetes.io/h2c', WITHIN_MS);
    expect(observed.rules!.objectives.get('fast')).toBe(7);
    expect([stateOf('InferenceObjective'), refusals('Pod')]).toEqual(['waiting', 0]);
    await cluster.mergePatch(objective(namespace, 'fast'), { spec: { priority: 9 } });
    await end();
    await eventually('the objective', () => observed.rules!.objectives.get('fast') === 9, WITHIN_MS);
  }, 120_000);

  it('429 storm: the last state counts while it lasts, and what happened meanwhile is known afterwards', async () => {
    const end = await refuse('*');
    proxy.cut();
    const kinds = ['Pod', 'InferencePool', 'InferenceObjective'];
    await eventually('all are refused again and again', () => kinds.every((kind) => refusals(kind) >= 2), WITHIN_MS);
    await kubelet.finish('b');
    await cluster.mergePatch(objective(namespace, 'fast'), { spec: { priority: 9 } });
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(observed.shown).toBe('a-rank-0:8000, b-rank-0:8000');
    expect(observed.rules!.objectives.get('fast')).toBe(7);
    await end();
    await shows('a-rank-0:8000');
    await eventually('the objective', () => observed.rules!.objectives.get('fast') === 9, WITHIN_MS);
    // Nothing was listed anew: the watches went on at their last versions.
    expect(countsOf('Pod').relists).toEqual(new Map([['start', 1]]));
  }, 120_000);
});
