import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { selectedLabels } from '../../dist/src/serve/flag-values.js';
import { eventually } from '../tools/gateway/client.ts';
import { type ApiServer, sharedCluster, skipReason, startApiServer } from './api-server.ts';
import { type Cluster, gieCrds, type KubernetesObject } from './cluster.ts';
import { Kubelet } from './kubelet.ts';
import { LEGACY_GROUP, model, objective, pool, rewrite } from './objects.ts';
import { ObservedDiscovery } from './observed-discovery.ts';

const WITHIN_MS = 45_000;
/** Longest pause of an optional kind between two tries, with its jitter and a busy machine. */
const RETURN_WITHIN_MS = 75_000;
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Source = ConstructorParameters<typeof ObservedDiscovery>[2];

function discover(cluster: Cluster, namespace: string, source: Source = {}): ObservedDiscovery {
  const observed = new ObservedDiscovery(cluster, namespace, source);
  cleanups.push(() => observed.stop());
  return observed;
}

const shows = (observed: ObservedDiscovery, text: string) =>
  eventually(
    `"${observed.shown}" becomes "${text}"`,
    () => observed.shown === text && observed.rules !== undefined,
    WITHIN_MS,
  );

describe.skipIf(skipReason !== '')(`the pool as an API server has it${skipReason}`, () => {
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

  describe('4.1 InferencePool', () => {
    it('selector: a change starts the pods watch anew, the old pods serve until the new first state', async () => {
      const made = await cluster.create(pool(namespace));
      await kubelet.run('a', { ip: '10.0.0.1' });
      await kubelet.run('b', { ip: '10.0.0.2', labels: { app: 'sglang' } });
      const observed = discover(cluster, namespace);
      await shows(observed, 'a-rank-0:8000');
      await cluster.mergePatch(made, { spec: { selector: { matchLabels: { app: 'sglang' } } } });
      await shows(observed, 'b-rank-0:8000');
      expect(observed.least).toBe(1);
    });

    it('ports: one removed takes its endpoints along, one moved to another rank is another endpoint', async () => {
      const made = await cluster.create(pool(namespace, { targetPorts: [{ number: 8000 }, { number: 8001 }] }));
      await kubelet.run('a', { ip: '10.0.0.1' });
      const observed = discover(cluster, namespace);
      await shows(observed, 'a-rank-0:8000, a-rank-1:8001');
      await cluster.mergePatch(made, { spec: { targetPorts: [{ number: 8001 }] } });
      await shows(observed, 'a-rank-0:8001');
    });

    it('appProtocol: told as the object has it, with the default of the CRD', async () => {
      const made = await cluster.create(pool(namespace));
      const observed = discover(cluster, namespace);
      await eventually('the default', () => observed.rules?.appProtocol === 'http');
      await cluster.mergePatch(made, { spec: { appProtocol: 'kubernetes.io/h2c' } });
      await eventually('the change', () => observed.rules?.appProtocol === 'kubernetes.io/h2c');
    });

    it('gone: everything is empty, and created again all returns without any other object changing', async () => {
      await cluster.create(pool(namespace));
      await cluster.create(objective(namespace, 'fast', { priority: 7 }));
      await kubelet.run('a', { ip: '10.0.0.1' });
      const observed = discover(cluster, namespace);
      await shows(observed, 'a-rank-0:8000');
      expect(Object.fromEntries(observed.rules!.objectives)).toEqual({ fast: 7 });
      await cluster.delete(pool(namespace));
      await eventually('the pool is absent', () => observed.rules?.absent !== undefined);
      expect(observed.rules).toMatchObject({ absent: `there is no InferencePool ${namespace}/pool`, rewrites: [] });
      expect(observed.rules!.objectives.size).toBe(0);
      expect(observed.shown).toBe('');
      await cluster.create(pool(namespace));
      await shows(observed, 'a-rank-0:8000');
      expect(Object.fromEntries(observed.rules!.objectives)).toEqual({ fast: 7 });
    });

    it('deletionTimestamp: everything is empty while the object is being deleted', async () => {
      const made = await cluster.create({
        ...pool(namespace),
        metadata: { name: 'pool', namespace, finalizers: ['example.com/hold'] },
      });
      await cluster.create(objective(namespace, 'fast', { priority: 7 }));
      await kubelet.run('a', { ip: '10.0.0.1' });
      const observed = discover(cluster, namespace);
      await shows(observed, 'a-rank-0:8000');
      await cluster.delete(made);
      await shows(observed, '');
      expect(observed.rules!.absent).toBe('the InferencePool is being deleted');
      expect(observed.rules!.objectives.size).toBe(0);
      await cluster.mergePatch(made, { metadata: { finalizers: null } });
      const gone = `there is no InferencePool ${namespace}/pool`;
      await eventually('the object is gone', () => observed.rules!.absent === gone, WITHIN_MS);
    });

    it('endpointPickerRef: its port is told as a hint, and the pool is served whatever it names', async () => {
      await cluster.create(pool(namespace, { endpointPickerRef: { name: 'other', port: { number: 9999 } } }));
      await kubelet.run('a', { ip: '10.0.0.1' });
      const observed = discover(cluster, namespace);
      await shows(observed, 'a-rank-0:8000');
      expect(observed.informed).toContain("the InferencePool names port 9999 of its endpoint picker's Service");
    });

    it('an InferencePool that is not there at the start: absent, and served as soon as it is created', async () => {
      await kubelet.run('a', { ip: '10.0.0.1' });
      const observed = discover(cluster, namespace);
      await eventually('it is told', () => observed.rules?.absent === `there is no InferencePool ${namespace}/pool`);
      await cluster.create(pool(namespace));
      await shows(observed, 'a-rank-0:8000');
    });

    it('an InferencePool of another name or namespace: never seen', async () => {
      await cluster.create(pool(namespace, {}, 'other'));
      const observed = discover(cluster, namespace);
      await eventually('it is told', () => observed.rules !== undefined);
      expect(observed.rules!.absent).toContain('there is no InferencePool');
    });
  });

  describe('4.2 Pods', () => {
    let observed: ObservedDiscovery;

    beforeEach(async () => {
      await cluster.create(pool(namespace));
      await kubelet.run('a', { ip: '10.0.0.1' });
      await kubelet.run('b', { ip: '10.0.0.2' });
      observed = discover(cluster, namespace);
      await shows(observed, 'a-rank-0:8000, b-rank-0:8000');
    });

    it('no status.podIP: none', async () => {
      await kubelet.run('c', { ready: false });
      await kubelet.run('d', { ip: '10.0.0.4' });
      await shows(observed, 'a-rank-0:8000, b-rank-0:8000, d-rank-0:8000');
    });

    it('Ready≠True: draining, and live again with the same incarnation when it is ready', async () => {
      const before = observed.endpoints.get(`${namespace}/a-rank-0`)!.incarnation;
      await kubelet.ready('a', false);
      await shows(observed, 'a-rank-0:8000 draining, b-rank-0:8000');
      await kubelet.ready('a', true);
      await shows(observed, 'a-rank-0:8000, b-rank-0:8000');
      expect(observed.endpoints.get(`${namespace}/a-rank-0`)!.incarnation).toBe(before);
    });

    it('Ready≠True for 60 s: none', async () => {
      const lastTransitionTime = new Date(Date.now() - 57_000).toISOString().replace(/\.\d+Z/, 'Z');
      const conditions = [{ type: 'Ready', status: 'False', lastTransitionTime }];
      const reference = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace } };
      await cluster.mergePatch(reference, { status: { conditions } }, '/status');
      await shows(observed, 'a-rank-0:8000 draining, b-rank-0:8000');
      await shows(observed, 'b-rank-0:8000');
    });

    it('deletionTimestamp: draining until the object is gone', async () => {
      await kubelet.delete('a');
      await shows(observed, 'a-rank-0:8000 draining, b-rank-0:8000');
      await kubelet.finish('a');
      await shows(observed, 'b-rank-0:8000');
    });

    it('annotation pointsman/drain: draining until the annotation leaves', async () => {
      await kubelet.annotate('a', { 'pointsman/drain': 'true' });
      await shows(observed, 'a-rank-0:8000 draining, b-rank-0:8000');
      await kubelet.annotate('a', { 'pointsman/drain': null });
      await shows(observed, 'a-rank-0:8000, b-rank-0:8000');
    });

    it('active-ports: present but empty = none', async () => {
      await kubelet.annotate('a', { 'llm-d.ai/active-ports': '' });
      await shows(observed, 'b-rank-0:8000');
    });

    it('active-ports: only those target ports, whose ranks stay; others are ignored and said', async () => {
      await cluster.mergePatch(pool(namespace), { spec: { targetPorts: [{ number: 8000 }, { number: 8001 }] } });
      await kubelet.annotate('a', { 'inference.networking.k8s.io/active-ports': '8000' });
      await shows(observed, 'a-rank-0:8000, b-rank-0:8000, b-rank-1:8001');
      // The newer key wins.
      await kubelet.annotate('a', { 'llm-d.ai/active-ports': '8001, 9000, x' });
      await shows(observed, 'a-rank-1:8001, b-rank-0:8000, b-rank-1:8001');
      const ignored = `pod ${namespace}/a: active-ports: 9000, x: not among the pool's ports, ignored`;
      await eventually('what is ignored is said', () => observed.reports.includes(ignored));
    });

    it('two live pods with one ip:port: the younger, the other is reported', async () => {
      await kubelet.run('c', { ip: '10.0.0.1' });
      await shows(observed, 'b-rank-0:8000, c-rank-0:8000');
      const left =
        `endpoint ${namespace}/a-rank-0 is left out: ` + `10.0.0.1:8000 is the address of ${namespace}/c-rank-0 too`;
      expect(observed.reports).toContain(left);
      await kubelet.finish('c');
      await shows(observed, 'a-rank-0:8000, b-rank-0:8000');
    });

    it('another namespace: never seen', async () => {
      const other = new Kubelet(cluster, await cluster.makeNamespace());
      await other.run('stranger', { ip: '10.0.0.3' });
      await kubelet.run('d', { ip: '10.0.0.4' });
      await shows(observed, 'a-rank-0:8000, b-rank-0:8000, d-rank-0:8000');
      expect([...observed.endpoints.values()].every((endpoint) => endpoint.namespace === namespace)).toBe(true);
    });

    it('extra labels: address and name of the node, where the pod has none of its own', async () => {
      const labels = { app: 'vllm', 'kubernetes.io/hostname': 'own' };
      await kubelet.run('c', { ip: '10.0.0.3', hostIP: '192.168.0.7', labels });
      await shows(observed, 'a-rank-0:8000, b-rank-0:8000, c-rank-0:8000');
      const labelsOf = (name: string) => observed.endpoints.get(`${namespace}/${name}-rank-0`)!.labels;
      expect(labelsOf('a')).toEqual({ app: 'vllm', nodeAddress: '10.0.0.1', 'kubernetes.io/hostname': 'node-0' });
      expect(labelsOf('c')).toEqual({ ...labels, nodeAddress: '192.168.0.7' });
    });

    it('an empty state after a full one: followed, with a warning, and back', async () => {
      await cluster.mergePatch(pool(namespace), { spec: { selector: { matchLabels: { app: 'vlm' } } } });
      await shows(observed, '');
      expect(observed.reports).toContain('the pool went from 2 endpoints to 0');
      await cluster.mergePatch(pool(namespace), { spec: { selector: { matchLabels: { app: 'vllm' } } } });
      await shows(observed, 'a-rank-0:8000, b-rank-0:8000');
    });

    it.each(['Failed', 'Succeeded'])('phase %s: none', async (phase) => {
      await kubelet.status('a', { ip: '10.0.0.1', phase, ready: false });
      await shows(observed, 'b-rank-0:8000');
    });

    it('UID changed, same name and IP: another server', async () => {
      const before = observed.endpoints.get(`${namespace}/a-rank-0`)!.incarnation;
      await kubelet.finish('a');
      await kubelet.run('a', { ip: '10.0.0.1' });
      await eventually('it is another', () => {
        const now = observed.endpoints.get(`${namespace}/a-rank-0`);
        return now?.draining === false && now.incarnation !== before;
      });
    });

    it('engine container restarted: another server', async () => {
      const before = observed.endpoints.get(`${namespace}/a-rank-0`)!.incarnation;
      await kubelet.status('a', {
        ip: '10.0.0.1',
        containers: [{ name: 'engine', ports: [8000], id: 'containerd://2' }],
      });
      await eventually('it is another', () => observed.endpoints.get(`${namespace}/a-rank-0`)!.incarnation !== before);
    });

    it('podIP changed: the endpoint has the new address', async () => {
      await kubelet.status('a', { ip: '10.0.0.9' });
      await eventually('it moved', () => observed.endpoints.get(`${namespace}/a-rank-0`)!.address === '10.0.0.9');
    });

    it('labels changed, still selected: the labels of the endpoint change', async () => {
      await kubelet.label('a', { 'llm-d.ai/role': 'decode' });
      await eventually(
        'they change',
        () => observed.endpoints.get(`${namespace}/a-rank-0`)!.labels['llm-d.ai/role'] === 'decode',
      );
    });

    it('labels changed, no longer selected: gone', async () => {
      await kubelet.label('a', { app: 'other' });
      await shows(observed, 'b-rank-0:8000');
    });

    it('all gone: followed, with a warning', async () => {
      await kubelet.finish('a');
      await kubelet.finish('b');
      await shows(observed, '');
      expect(observed.reports).toContain('the pool went from 1 endpoint to 0');
    });
  });

  describe('4.1 selector mode', () => {
    it('selector mode has the pods of the selector at the given ports, without any custom resource', async () => {
      await kubelet.run('a', { ip: '10.0.0.1' });
      await kubelet.run('b', { ip: '10.0.0.2', labels: { app: 'old' } });
      const ports = [8000, 8001];
      const observed = discover(cluster, namespace, {
        kind: 'selector',
        labels: selectedLabels('app in (vllm,sglang),!gone'),
        ports,
      });
      await shows(observed, 'a-rank-0:8000, a-rank-1:8001');
      expect(observed.rules).toMatchObject({ rewrites: [], absent: undefined });
    });
  });

  describe('4.3 Objectives and rewrites', () => {
    it('objectives and rewrites follow their objects, and only those of the pool', async () => {
      await cluster.create(pool(namespace));
      const observed = discover(cluster, namespace);
      await eventually('the first state', () => observed.rules !== undefined);
      const made = await cluster.create(objective(namespace, 'fast', { priority: 7 }));
      await cluster.create(objective(namespace, 'other', { poolRef: { name: 'other' } }));
      await cluster.create(
        rewrite(namespace, 'rule', [
          { matches: [{ model: { type: 'Exact', value: 'm' } }], targets: [{ modelRewrite: 'n', weight: 1 }] },
        ]),
      );
      await eventually(
        'all are known',
        () => observed.rules!.rewrites.length === 1 && observed.rules!.objectives.size === 1,
      );
      expect([...observed.rules!.objectives]).toEqual([['fast', 7]]);
      expect(observed.rules!.rewrites).toEqual([
        { name: 'rule', models: ['m'], targets: [{ model: 'n', weight: 1 }], age: 0 },
      ]);
      await cluster.mergePatch(made, { spec: { priority: -1 } });
      await eventually('the change', () => observed.rules!.objectives.get('fast') === -1);
      await cluster.delete(made);
      await eventually('the deletion', () => observed.rules!.objectives.size === 0);
    });

    it('InferenceObjective: absent priority = 0; a pool of that name in another group is another pool', async () => {
      await cluster.create(pool(namespace));
      await cluster.create(objective(namespace, 'plain'));
      await cluster.create(objective(namespace, 'elsewhere', { poolRef: { name: 'pool', group: LEGACY_GROUP } }));
      const observed = discover(cluster, namespace);
      await eventually('the first state', () => observed.rules !== undefined, WITHIN_MS);
      await eventually('the objective', () => observed.rules!.objectives.size > 0);
      expect([...observed.rules!.objectives]).toEqual([['plain', 0]]);
    });

    it('InferenceModelRewrite: the older object first, then rule order; without matches it is generic', async () => {
      await cluster.create(pool(namespace));
      const to = (name: string) => ({ targets: [{ modelRewrite: name, weight: 1 }] });
      const exact = (value: string) => ({ matches: [{ model: { type: 'Exact', value } }] });
      await cluster.create(rewrite(namespace, 'b', [{ ...exact('m'), ...to('b-1') }, to('b-2')]));
      // Times of creation are whole seconds.
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      await cluster.create(rewrite(namespace, 'a', [{ ...exact('m'), ...to('a-1') }]));
      const observed = discover(cluster, namespace);
      await eventually('all rules', () => observed.rules?.rewrites.length === 3, WITHIN_MS);
      expect(observed.rules!.rewrites.map(({ models, targets }) => [models, targets[0]!.model])).toEqual([
        [['m'], 'b-1'],
        [[], 'b-2'],
        [['m'], 'a-1'],
      ]);
    });
  });
});

describe.skipIf(skipReason !== '')(`kinds that come and go${skipReason}`, () => {
  let server: ApiServer;
  let cluster: Cluster;

  beforeAll(async () => {
    server = await startApiServer();
    cluster = server.cluster();
    await cluster.installCrds(gieCrds('v1.5.0', 'InferencePool'));
  }, 120_000);
  afterAll(async () => {
    cluster?.close();
    await server?.stop();
  });

  /** The CRDs of llm-d.ai descend from those of GIE: the same fields under another group. */
  const llmD = (kind: string): KubernetesObject[] =>
    gieCrds('v1.5.0', kind).map((one) => {
      const text = JSON.stringify(one).replaceAll(LEGACY_GROUP, 'llm-d.ai');
      return JSON.parse(text) as KubernetesObject;
    });

  it('the start waits for no optional kind, and says once which are not there', async () => {
    const namespace = await cluster.makeNamespace();
    await cluster.create(pool(namespace));
    const observed = discover(cluster, namespace);
    await eventually('the first state', () => observed.rules !== undefined, WITHIN_MS);
    expect(observed.informed.filter((one) => one.startsWith('the cluster does not have'))).toHaveLength(3);
  });

  it('CRDs installed after the start are read within 30 s, the newer group first, removed ones are off', async () => {
    const namespace = await cluster.makeNamespace();
    await cluster.create(pool(namespace));
    const observed = discover(cluster, namespace);
    await eventually('the first state', () => observed.rules !== undefined, WITHIN_MS);
    await cluster.installCrds(gieCrds('v1.5.0', 'InferenceObjective'));
    await cluster.create(objective(namespace, 'fast', { priority: 7 }));
    await eventually('the older group is read', () => observed.rules!.objectives.get('fast') === 7, WITHIN_MS);
    await cluster.installCrds(llmD('InferenceObjective'));
    await cluster.create(objective(namespace, 'fast', { priority: 8 }, 'llm-d.ai'));
    await eventually('the newer group counts', () => observed.rules!.objectives.get('fast') === 8, WITHIN_MS);
    const ignored = `ignores 1 object of inferenceobjectives.${LEGACY_GROUP}: make them anew in llm-d.ai`;
    await eventually('the others are counted', () => observed.reports.includes(ignored));
    for (const { metadata } of [...llmD('InferenceObjective'), ...gieCrds('v1.5.0', 'InferenceObjective')]) {
      await cluster.delete({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata });
    }
    await eventually('the rules are empty', () => observed.rules!.objectives.size === 0, WITHIN_MS);
  }, 180_000);

  it('version v1 of llm-d.ai is watched once it is served, and v1alpha2 again when it is not', async () => {
    const stable = (served: boolean) =>
      llmD('InferenceObjective').map((definition) => {
        const [version] = definition.spec.versions;
        const versions = [version, { ...version, name: 'v1', storage: false, served }];
        return { ...definition, spec: { ...definition.spec, versions } } as KubernetesObject;
      });
    const namespace = await cluster.makeNamespace();
    await cluster.create(pool(namespace));
    await cluster.installCrds(stable(true));
    await cluster.create({ ...objective(namespace, 'fast', { priority: 9 }, 'llm-d.ai'), apiVersion: 'llm-d.ai/v1' });
    const observed = discover(cluster, namespace);
    const versions = () =>
      observed.discovery.kinds.flatMap(({ kind }) => (kind.name === 'InferenceObjective' ? [kind.version] : []));
    await eventually('it is read', () => observed.rules?.objectives.get('fast') === 9, WITHIN_MS);
    expect(versions()).toEqual(['v1']);
    for (const { metadata, spec } of stable(false)) {
      const reference = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata };
      await cluster.mergePatch(reference, { spec: { versions: spec.versions } });
    }
    await eventually('the older version is watched', () => versions().join() === 'v1alpha2', 2 * WITHIN_MS);
    await eventually('it is read again', () => observed.rules!.objectives.get('fast') === 9, WITHIN_MS);
    for (const { metadata } of llmD('InferenceObjective')) {
      await cluster.delete({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata });
    }
  }, 240_000);

  it('InferenceModel of GIE 0.5 gives priorities by model name', async () => {
    await cluster.installCrds(gieCrds('v0.5.1', 'InferenceModel'));
    const namespace = await cluster.makeNamespace();
    await cluster.create(pool(namespace));
    const targetModels = [{ name: 'chat-v2', weight: 100 }];
    await cluster.create(model(namespace, 'chat', { modelName: 'chat', criticality: 'Critical', targetModels }));
    const observed = discover(cluster, namespace);
    await eventually('it is read', () => observed.rules?.models?.get('chat')?.priority === 1, WITHIN_MS);
    expect(observed.rules!.rewrites).toMatchObject([
      { models: ['chat'], targets: [{ model: 'chat-v2', weight: 100 }] },
    ]);
  }, 120_000);

  it('InferenceModel: the oldest object wins a name, the other is reported', async () => {
    await cluster.installCrds(gieCrds('v0.5.1', 'InferenceModel'));
    const namespace = await cluster.makeNamespace();
    await cluster.create(pool(namespace));
    await cluster.create(model(namespace, 'older', { modelName: 'chat', criticality: 'Sheddable' }));
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await cluster.create(model(namespace, 'newer', { modelName: 'chat', criticality: 'Critical' }));
    const observed = discover(cluster, namespace);
    await eventually('it is read', () => observed.rules?.models?.get('chat')?.priority === -1, WITHIN_MS);
    const ignored = `InferenceModel ${namespace}/newer is ignored: an older one has the model name "chat"`;
    await eventually('the other is reported', () => observed.reports.includes(ignored));
  }, 120_000);

  it('InferenceModel: weight 0 is refused by the API server, which names the field', async () => {
    await cluster.installCrds(gieCrds('v0.5.1', 'InferenceModel'));
    const namespace = await cluster.makeNamespace();
    const targetModels = [{ name: 'chat-v2', weight: 0 }];
    const answer = await cluster.apply(
      model(namespace, 'chat', { modelName: 'chat', criticality: 'Critical', targetModels }),
    );
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain('spec.targetModels[0].weight: Invalid value: 0');
    const positive = [{ name: 'chat-v2', weight: 1 }];
    const corrected = model(namespace, 'chat', { modelName: 'chat', criticality: 'Critical', targetModels: positive });
    expect((await cluster.apply(corrected)).status).toBe(201);
  }, 120_000);

  it('7. an object that an older CRD lets through is left out, named by field and remedy; others count', async () => {
    const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const lax = gieCrds('v1.5.0', 'InferenceModelRewrite').map((definition) => {
      const { spec } = JSON.parse(JSON.stringify(definition)) as KubernetesObject;
      for (const version of spec.versions) version.schema = { openAPIV3Schema: open };
      return { ...definition, spec };
    });
    await cluster.installCrds(lax);
    const namespace = await cluster.makeNamespace();
    await cluster.create(pool(namespace));
    await cluster.create(rewrite(namespace, 'broken', [{ targets: [{ weight: 1 }] }]));
    await cluster.create(rewrite(namespace, 'good', [{ targets: [{ modelRewrite: 'n', weight: 1 }] }]));
    const observed = discover(cluster, namespace);
    await eventually('the good one counts', () => observed.rules?.rewrites.length === 1, WITHIN_MS);
    expect(observed.rules!.rewrites[0]!.name).toBe('good');
    expect(observed.reports).toContain(
      'InferenceModelRewrite broken: spec.rules[0].targets[0].modelRewrite: is missing; ' +
        'name the model that is asked for instead; the object is left out',
    );
    const rejected = observed.discovery.kinds.map(({ kind, watch }) => [kind.name, watch.rejected]);
    expect(rejected).toContainEqual(['InferenceModelRewrite', 1]);
  }, 120_000);

  it('v1alpha2: the older pool is read with its flat selector and one port', async () => {
    const older = gieCrds('v1.0.0', 'InferencePool').filter(({ spec }) => spec.group === LEGACY_GROUP);
    await cluster.installCrds(older);
    const namespace = await cluster.makeNamespace();
    await new Kubelet(cluster, namespace).run('a', { ip: 'fd00::1' });
    await cluster.create({
      apiVersion: `${LEGACY_GROUP}/v1alpha2`,
      kind: 'InferencePool',
      metadata: { name: 'pool', namespace },
      spec: { selector: { app: 'vllm' }, targetPortNumber: 8000, extensionRef: { name: 'epp' } },
    });
    const observed = discover(cluster, namespace, { group: LEGACY_GROUP });
    await shows(observed, 'a-rank-0:8000');
    expect(observed.endpoints.get(`${namespace}/a-rank-0`)!.address).toBe('fd00::1');
  }, 120_000);

  it('the last state stays while the API server is away, and what happened meanwhile is known afterwards', async () => {
    const namespace = await cluster.makeNamespace();
    const kubelet = new Kubelet(cluster, namespace);
    await cluster.create(pool(namespace));
    for (const name of ['a', 'b']) await kubelet.run(name, { ip: `10.0.0.${name === 'a' ? 1 : 2}` });
    const observed = discover(cluster, namespace);
    await shows(observed, 'a-rank-0:8000, b-rank-0:8000');
    await server.kill();
    await eventually(
      'it is said',
      () => observed.reports.some((one) => one.includes('has not answered for 10 s')),
      WITHIN_MS,
    );
    expect(observed.shown).toBe('a-rank-0:8000, b-rank-0:8000');
    await server.start();
    await kubelet.finish('a');
    await shows(observed, 'b-rank-0:8000');
    expect(observed.least).toBe(1);
    const returned = () => observed.informed.includes('the API server answers again');
    await eventually('the return is said', returned, RETURN_WITHIN_MS);
  }, 240_000);
});
