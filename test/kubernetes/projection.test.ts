import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Endpoint } from '../../dist/src/contract/endpoint.js';
import { ObjectProblem } from '../../dist/src/kubernetes/object-copy.js';
import {
  type ModelRecord,
  type ObjectiveRecord,
  type PodRecord,
  type RewriteRecord,
  readLegacyPool,
  readModel,
  readObjective,
  readPod,
  readPool,
  readRewrite,
} from '../../dist/src/pool/discovery/kubernetes/objects.js';
import {
  type EndpointChange,
  PodEndpoints,
  UNREADY_KEPT_MS,
} from '../../dist/src/pool/discovery/kubernetes/pod-endpoints.js';
import { type ClusterView, project } from '../../dist/src/pool/discovery/kubernetes/projection.js';
import { LEGACY_GROUP, model, objective, POOL_GROUP, pool, rewrite } from './objects.ts';

const NOW = Date.parse('2026-08-01T12:00:00Z');

interface PodParts {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

function pod(name: string, parts: PodParts = {}): PodRecord {
  return podOrProblem(name, parts) as PodRecord;
}

function podOrProblem(name: string, { metadata = {}, spec = {}, status = {} }: PodParts) {
  return readPod({
    metadata: {
      name,
      namespace: 'llm',
      uid: `uid-${name}`,
      creationTimestamp: '2026-08-01T11:00:00Z',
      labels: { app: 'vllm' },
      ...metadata,
    },
    spec: { nodeName: 'node-0', containers: [{ name: 'engine', ports: [{ containerPort: 8000 }] }], ...spec },
    status: {
      podIP: '10.0.0.7',
      hostIP: '192.168.0.1',
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'engine', containerID: 'containerd://1' }],
      ...status,
    },
  });
}

const unready = (since?: string) => ({
  conditions: [{ type: 'Ready', status: 'False', ...(since && { lastTransitionTime: since }) }],
});

function view(parts: Partial<ClusterView> = {}): ClusterView {
  return {
    reference: { name: 'pool', group: POOL_GROUP },
    pool: { ports: [8000], appProtocol: 'http', deleting: false, ownLabels: {} },
    absent: 'there is no InferencePool llm/pool',
    pods: [],
    objectives: [],
    rewrites: [],
    models: [],
    nowMs: NOW,
    ...parts,
  };
}

const byId = (a: Endpoint, b: Endpoint) => (a.id < b.id ? -1 : 1);

/** Adds a change to the endpoints that were told before. */
function tell(told: Map<string, Endpoint>, { set, removed }: EndpointChange): void {
  for (const id of removed) told.delete(id);
  for (const endpoint of set) told.set(endpoint.id, endpoint);
}

const shown = (pods: readonly PodRecord[], ports: readonly number[] = [8000], nowMs = NOW) =>
  project(
    view({ pods, nowMs, pool: { ports, appProtocol: undefined, deleting: false, ownLabels: {} } }),
  ).state.endpoints.map(({ id, address, port, draining }) => `${id} ${address}:${port}${draining ? ' draining' : ''}`);

describe('4.1 InferencePool', () => {
  it('v1: selector.matchLabels, targetPorts and appProtocol are read', () => {
    const spec = { appProtocol: 'kubernetes.io/h2c', targetPorts: [{ number: 8000 }, { number: 8001 }] };
    expect(readPool(pool('llm', { ...spec, selector: { matchLabels: { b: '2', a: '1' } } }))).toMatchObject({
      labels: { selector: 'a=1,b=2' },
      ports: [8000, 8001],
      appProtocol: 'kubernetes.io/h2c',
      pickerPort: 9002,
    });
  });

  it('v1alpha2: flat selector, targetPortNumber and extensionRef are read', () => {
    const spec = { selector: { app: 'vllm' }, targetPortNumber: 8000, extensionRef: { name: 'epp', portNumber: 9002 } };
    expect(readLegacyPool({ metadata: { name: 'pool' }, spec })).toMatchObject({
      labels: { selector: 'app=vllm' },
      ports: [8000],
      appProtocol: undefined,
      pickerPort: 9002,
    });
  });

  it.each([
    [{ selector: {} }, 'spec.selector.matchLabels: is empty; name at least one label of the model servers'],
    [{ targetPorts: [] }, 'spec.targetPorts: is empty; name the ports of the model servers'],
    [{ targetPorts: [{ number: 0 }] }, 'spec.targetPorts[0].number: 0 is no port; give a number from 1 to 65535'],
    [{ targetPorts: [{ number: 1 }, { number: 1 }] }, 'spec.targetPorts: a port stands twice; remove one'],
  ])('malformed %j: the object is left out and the field named', (spec, text) => {
    expect(readPool(pool('llm', spec))).toEqual({ text });
  });

  it('ports: the rank is the position in the list', () => {
    expect(shown([pod('a')], [8000, 8001])).toEqual(['llm/a-rank-0 10.0.0.7:8000', 'llm/a-rank-1 10.0.0.7:8001']);
  });

  it('ports: every endpoint of a pod has the name of the pod', () => {
    const { endpoints } = project(
      view({ pods: [pod('a')], pool: { ports: [8000, 8001], appProtocol: undefined, deleting: false, ownLabels: {} } }),
    ).state;
    expect(endpoints.map(({ name, podName }) => [name, podName])).toEqual([
      ['a-rank-0', 'a'],
      ['a-rank-1', 'a'],
    ]);
  });

  it('deletionTimestamp: endpoints, objectives and rewrites are empty', () => {
    const state = project(
      view({
        pods: [pod('a')],
        objectives: [readObjective(objective('llm', 'o', { priority: 3 })) as ObjectiveRecord],
        pool: { ports: [8000], appProtocol: undefined, deleting: true, ownLabels: {} },
      }),
    ).state;
    expect(state).toMatchObject({ endpoints: [], rewrites: [], absent: 'the InferencePool is being deleted' });
    expect(state.objectives.size).toBe(0);
  });

  it('gone: everything is empty, for the reason that is known', () => {
    const { state } = project(view({ pool: undefined, pods: [pod('a')] }));
    expect(state).toMatchObject({ endpoints: [], absent: 'there is no InferencePool llm/pool' });
  });
});

describe('4.2 Pods', () => {
  it('no status.podIP: none', () => {
    expect(shown([pod('a', { status: { podIP: undefined } })])).toEqual([]);
  });

  it('Ready=True: live at podIP, IPv6 as it is', () => {
    expect(shown([pod('a', { status: { podIP: 'fd00::7' } })])).toEqual(['llm/a-rank-0 fd00::7:8000']);
  });

  it('Ready≠True: draining for 60 s after it went unready, then none', () => {
    const since = new Date(NOW - UNREADY_KEPT_MS + 1).toISOString();
    const one = pod('a', { status: unready(since) });
    expect(shown([one])).toEqual(['llm/a-rank-0 10.0.0.7:8000 draining']);
    expect(project(view({ pods: [one] })).nextMs).toBe(NOW + 1);
    expect(shown([one], [8000], NOW + 1)).toEqual([]);
  });

  it('deletionTimestamp: draining, whatever Ready says', () => {
    const metadata = { deletionTimestamp: '2026-08-01T12:00:00Z' };
    expect(shown([pod('a', { metadata })])).toEqual(['llm/a-rank-0 10.0.0.7:8000 draining']);
    const status = unready('2026-08-01T11:00:00Z');
    expect(shown([pod('a', { metadata, status })])).toEqual(['llm/a-rank-0 10.0.0.7:8000 draining']);
  });

  it('annotation pointsman/drain: draining', () => {
    const metadata = { annotations: { 'pointsman/drain': 'true' } };
    expect(shown([pod('a', { metadata })])).toEqual(['llm/a-rank-0 10.0.0.7:8000 draining']);
    expect(shown([pod('a', { metadata: { annotations: { 'pointsman/drain': 'false' } } })])).toEqual([
      'llm/a-rank-0 10.0.0.7:8000',
    ]);
  });

  it.each([
    ['only those ports, ranks keep their numbers', { 'llm-d.ai/active-ports': '8001' }, ['llm/a-rank-1 10.0.0.7:8001']],
    [
      'the older key counts alone',
      { 'inference.networking.k8s.io/active-ports': '8000' },
      ['llm/a-rank-0 10.0.0.7:8000'],
    ],
    ['present but empty = none', { 'llm-d.ai/active-ports': '' }, []],
    [
      'the newer key wins even when empty',
      { 'llm-d.ai/active-ports': '', 'inference.networking.k8s.io/active-ports': '8000' },
      [],
    ],
  ])('active-ports: %s', (_what, annotations, endpoints) => {
    expect(shown([pod('a', { metadata: { annotations } })], [8000, 8001])).toEqual(endpoints);
  });

  it('active-ports: what is no target port is ignored and said', () => {
    const metadata = { annotations: { 'llm-d.ai/active-ports': '8000, 9000, x' } };
    expect(project(view({ pods: [pod('a', { metadata })] })).notes).toEqual([
      "pod llm/a: active-ports: 9000, x: not among the pool's ports, ignored",
    ]);
  });

  it.each(['Failed', 'Succeeded'])('phase %s: none', (phase) => {
    expect(shown([pod('a', { status: { phase } })])).toEqual([]);
  });

  describe('identity', () => {
    const incarnation = (parts: PodParts) => project(view({ pods: [pod('a', parts)] })).state.endpoints[0]!.incarnation;
    const usual = incarnation({});

    it('UID changed: another server', () => {
      expect(incarnation({ metadata: { uid: 'other' } })).not.toBe(usual);
    });

    it('engine container restarted: another server', () => {
      const status = { containerStatuses: [{ name: 'engine', containerID: 'containerd://2' }] };
      expect(incarnation({ status })).not.toBe(usual);
    });

    it('sidecar restarted beside an engine that declares its port: the same server', () => {
      const spec = { containers: [{ name: 'engine', ports: [{ containerPort: 8000 }] }, { name: 'proxy' }] };
      const of = (id: string) => ({
        containerStatuses: [
          { name: 'engine', containerID: 'containerd://1' },
          { name: 'proxy', containerID: id },
        ],
      });
      expect(incarnation({ spec, status: of('containerd://8') })).toBe(
        incarnation({ spec, status: of('containerd://9') }),
      );
    });

    it('no container declares the port: any restart is another server', () => {
      const spec = { containers: [{ name: 'engine' }, { name: 'proxy' }] };
      const of = (id: string) => ({ containerStatuses: [{ name: 'proxy', containerID: id }] });
      expect(incarnation({ spec, status: of('8') })).not.toBe(incarnation({ spec, status: of('9') }));
    });
  });

  it('two live pods with one ip:port: the younger, the other is reported', () => {
    const old = pod('b', { metadata: { creationTimestamp: '2026-08-01T10:00:00Z' } });
    const young = pod('a');
    expect(shown([young, old])).toEqual(['llm/a-rank-0 10.0.0.7:8000']);
    expect(project(view({ pods: [old, young] })).notes).toEqual([
      'endpoint llm/b-rank-0 is left out: 10.0.0.7:8000 is the address of llm/a-rank-0 too',
    ]);
  });

  it('a pod that ends keeps its endpoint beside a new one of the same address', () => {
    const old = pod('b', { metadata: { deletionTimestamp: '2026-08-01T12:00:00Z' } });
    expect(shown([old, pod('a')])).toEqual(['llm/a-rank-0 10.0.0.7:8000', 'llm/b-rank-0 10.0.0.7:8000 draining']);
  });

  it('extra labels where the pod has none of its own', () => {
    const labelsOf = (labels: object) =>
      project(view({ pods: [pod('a', { metadata: { labels } })] })).state.endpoints[0]!.labels;
    expect(labelsOf({ app: 'vllm' })).toEqual({
      app: 'vllm',
      nodeAddress: '192.168.0.1',
      'kubernetes.io/hostname': 'node-0',
    });
    expect(labelsOf({ nodeAddress: 'own' }).nodeAddress).toBe('own');
  });
});

describe('4.3 Objectives, rewrites, legacy models', () => {
  const rewritesOf = (...objects: object[]) =>
    project(view({ rewrites: objects.map((one) => readRewrite(one) as RewriteRecord) })).state.rewrites;
  const target = [{ modelRewrite: 'target' }];
  const exact = (value: string) => ({ model: { type: 'Exact', value } });

  it('InferenceObjective: priority by object name, absent = 0, when name and group of the pool are right', () => {
    const objectives = [
      objective('llm', 'batch', { priority: -5 }),
      objective('llm', 'plain'),
      objective('llm', 'other pool', { poolRef: { name: 'other', group: POOL_GROUP } }),
      objective('llm', 'other group', { poolRef: { name: 'pool', group: LEGACY_GROUP } }),
      objective('llm', 'default group', { priority: 1, poolRef: { name: 'pool' } }),
    ].map((one) => readObjective(one) as ObjectiveRecord);
    expect(Object.fromEntries(project(view({ objectives })).state.objectives)).toEqual({
      batch: -5,
      'default group': 1,
      plain: 0,
    });
  });

  it('InferenceObjective of several pools: of each that poolRefs name, or whose labels poolSelector takes', () => {
    const refs = (...names: string[]) => names.map((name) => ({ name, group: POOL_GROUP }));
    const selecting = (poolSelector: object) => ({ poolRef: undefined, poolSelector });
    const objectives = [
      objective('llm', 'among others', { priority: 1, poolRef: undefined, poolRefs: refs('other', 'pool') }),
      objective('llm', 'of others', { priority: 2, poolRef: undefined, poolRefs: refs('other') }),
      objective('llm', 'by label', { priority: 3, ...selecting({ matchLabels: { tier: 'gold' } }) }),
      objective('llm', 'by another label', { priority: 4, ...selecting({ matchLabels: { tier: 'iron' } }) }),
      objective('llm', 'by rule', {
        priority: 5,
        ...selecting({ matchExpressions: [{ key: 'tier', operator: 'In', values: ['iron', 'gold'] }] }),
      }),
      objective('llm', 'by nothing', { priority: 6, ...selecting({}) }),
    ].map((one) => readObjective(one) as ObjectiveRecord);
    const labelled = { ports: [8000], appProtocol: 'http', deleting: false, ownLabels: { tier: 'gold' } };
    expect(Object.fromEntries(project(view({ objectives, pool: labelled })).state.objectives)).toEqual({
      'among others': 1,
      'by label': 3,
      'by nothing': 6,
      'by rule': 5,
    });
  });

  it.each([
    [
      { poolRefs: Array.from({ length: 17 }, (_, i) => ({ name: `p${i}` })) },
      'spec.poolRefs: has 17 entries; name at most 16 pools',
    ],
    [{ poolRefs: [{}] }, 'spec.poolRefs[0].name: is missing; name an InferencePool'],
    [
      { poolSelector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } },
      'spec.poolSelector.matchExpressions[0].operator: "Near" is unknown; use In, NotIn, Exists, DoesNotExist',
    ],
    [{ priority: 1.5 }, 'spec.priority: 1.5 is no whole number of 32 bits; give one or leave it out'],
    [{ poolRef: {} }, 'spec.poolRef.name: is missing; name the InferencePool that the object belongs to'],
  ])('InferenceObjective malformed %j: left out, field and remedy named', (spec, text) => {
    expect(readObjective(objective('llm', 'o', spec))).toEqual({ text });
  });

  it('InferenceModelRewrite: the oldest object first, then namespace and name, then rule order', () => {
    const aged = (name: string, creationTimestamp: string) => {
      const made = rewrite('llm', name, [
        { matches: [exact('m')], targets: target },
        { matches: [exact('n')], targets: target },
      ]);
      return { ...made, metadata: { ...made.metadata, creationTimestamp } };
    };
    const young = aged('a', '2026-08-01T12:00:00Z');
    const rules = rewritesOf(young, aged('c', '2026-08-01T10:00:00Z'), aged('b', '2026-08-01T10:00:00Z'));
    expect(rules.map(({ name, models, age }) => `${age} ${name} ${models}`)).toEqual([
      ...['0 b m', '1 b n', '2 c m', '3 c n', '4 a m', '5 a n'],
    ]);
  });

  it('InferenceModelRewrite: without matches it is generic, a match without a model never matches', () => {
    const rules = rewritesOf(rewrite('llm', 'r', [{ targets: target }, { matches: [{}], targets: target }]));
    expect(rules).toEqual([{ name: 'r', models: [], targets: [{ model: 'target' }], age: 0 }]);
  });

  it('InferenceModel: criticality becomes a priority by model name, targets an exact rule behind the rewrites', () => {
    const models = [
      model('llm', 'a', {
        modelName: 'chat',
        criticality: 'Critical',
        targetModels: [{ name: 'chat-v2', weight: 10 }],
      }),
      model('llm', 'b', { modelName: 'batch', criticality: 'Sheddable' }),
      model('llm', 'c', { modelName: 'plain' }),
    ].map((one) => readModel(one) as ModelRecord);
    const rewrites = [
      readRewrite(rewrite('llm', 'r', [{ matches: [exact('chat')], targets: target }])) as RewriteRecord,
    ];
    const { state } = project(view({ models, rewrites }));
    expect([...state.models!].map(([name, { priority }]) => [name, priority])).toEqual([
      ['chat', 1],
      ['batch', -1],
      ['plain', 0],
    ]);
    expect(state.rewrites.map(({ name, age }) => [name, age])).toEqual([
      ['r', 0],
      ['a', 1],
    ]);
  });

  it('InferenceModel: the oldest object wins a name, all weights 0 refuse the model', () => {
    const made = model('llm', 'old', { modelName: 'm', targetModels: [{ name: 't', weight: 0 }] });
    const old = { ...made, metadata: { ...made.metadata, creationTimestamp: '2026-01-01T00:00:00Z' } };
    const young = {
      ...model('llm', 'a', { modelName: 'm' }),
      metadata: { name: 'a', namespace: 'llm', creationTimestamp: '2026-02-01T00:00:00Z' },
    };
    const models = [young, old].map((one) => readModel(one) as ModelRecord);
    const { state, notes } = project(view({ models }));
    expect([...state.models!]).toEqual([['m', { priority: 0, refused: true }]]);
    expect(state.rewrites).toEqual([]);
    expect(notes).toEqual(['InferenceModel llm/a is ignored: an older one has the model name "m"']);
  });
});

describe('the projection', () => {
  const arbitraryPod = fc
    .record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      uid: fc.nat({ max: 2 }),
      ip: fc.constantFrom('10.0.0.1', '10.0.0.2'),
      ready: fc.boolean(),
      created: fc.nat({ max: 3 }),
    })
    .map(({ name, uid, ip, ready, created }) =>
      pod(name, {
        metadata: { uid: `${name}-${uid}`, creationTimestamp: new Date(NOW - created * 1000).toISOString() },
        status: { podIP: ip, ...(ready ? {} : unready(new Date(NOW - created * 10_000).toISOString())) },
      }),
    );

  it('the projection is the same for any order of the objects', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(arbitraryPod, { selector: ({ name }) => name }),
        fc.infiniteStream(fc.nat()),
        (pods, lots) => {
          const mixed = pods.map((one) => [lots.next().value as number, one] as const);
          const other = mixed.sort(([a], [b]) => a - b).map(([, one]) => one);
          const { state, notes } = project(view({ pods: other }));
          const expected = project(view({ pods }));
          expect([state, notes]).toEqual([expected.state, expected.notes]);
        },
      ),
    );
  });

  it('the projection of changes is that of the pods they lead to, whatever came before', () => {
    const arbitraryChange = fc.record({
      set: fc.uniqueArray(arbitraryPod, { selector: ({ uid }) => uid, maxLength: 4 }),
      removed: fc.subarray(['a', 'b', 'c', 'd'].flatMap((name) => [0, 1, 2].map((uid) => `${name}-${uid}`))),
      laterMs: fc.nat({ max: UNREADY_KEPT_MS }),
    });
    fc.assert(
      fc.property(fc.array(arbitraryChange, { maxLength: 12 }), (changes) => {
        const followed = new PodEndpoints([], [8000, 8001], NOW);
        const pods = new Map<string, PodRecord>();
        const told = new Map<string, Endpoint>();
        let nowMs = NOW;
        for (const { set, removed, laterMs } of changes) {
          nowMs += laterMs;
          for (const uid of removed) pods.delete(uid);
          for (const one of set) pods.set(one.uid, one);
          tell(told, followed.change({ set, removed }, nowMs));
          const fresh = new PodEndpoints([...pods.values()], [8000, 8001], nowMs);
          expect(followed.endpoints()).toEqual(fresh.endpoints());
          expect([followed.notes(), followed.nextMs]).toEqual([fresh.notes(), fresh.nextMs]);
          expect([...told.values()].sort(byId)).toEqual(fresh.endpoints().sort(byId));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('the projection gives no address to two endpoints that take requests, no id twice where names differ', () => {
    fc.assert(
      fc.property(fc.uniqueArray(arbitraryPod, { selector: ({ name }) => name }), (pods) => {
        const { endpoints } = project(view({ pods })).state;
        const live = endpoints.filter(({ draining }) => !draining).map(({ address, port }) => `${address}:${port}`);
        expect(new Set(live).size).toBe(live.length);
        expect(new Set(endpoints.map(({ id }) => id)).size).toBe(endpoints.length);
      }),
    );
  });
});

describe('the address of a pod', () => {
  it.each(['10.0.0', 'engine-0', '10.0.0.7:8000', 'fe80::1%eth0 '])('%j is refused by name', (podIP) => {
    expect(podOrProblem('a', { status: { podIP } })).toEqual(
      new ObjectProblem(`status.podIP: expected an IP address, got ${JSON.stringify(podIP)}`),
    );
  });

  it.each(['10.0.0.7', 'fd00::7', undefined, ''])('%j is taken, or waited for', (podIP) => {
    expect(pod('a', { status: { podIP } }).ip).toBe(podIP || undefined);
  });
});
