import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Endpoint, PoolRules, PoolUpdate } from '../../dist/src/contract/endpoint.js';
import type { ApiClient } from '../../dist/src/kubernetes/api-client.js';
import { kindPath, OPTIONAL_KINDS, POD, poolKind } from '../../dist/src/kubernetes/kinds.js';
import { Watches } from '../../dist/src/kubernetes/watches.js';
import { KubernetesDiscovery } from '../../dist/src/pool/discovery/kubernetes/kubernetes.js';
import type { PodRecord } from '../../dist/src/pool/discovery/kubernetes/objects.js';
import {
  type ObjectiveRecord,
  type PoolRecord,
  readObjective,
  readPod,
  readPool,
} from '../../dist/src/pool/discovery/kubernetes/objects.js';
import { project } from '../../dist/src/pool/discovery/kubernetes/projection.js';
import { eventually } from '../tools/gateway/client.ts';
import { HistoryServer, type StoredObject } from './history-server.ts';
import { LEGACY_GROUP, objective, POOL_GROUP, pool } from './objects.ts';
import { clientOf } from './observed-reflector.ts';

/** Events arrive meanwhile, and are applied in batches of 20 ms. */
const WAIT_MS = 25;
const NAMESPACE = 'llm';
const PODS = kindPath(POD, NAMESPACE);
const POOLS = kindPath(poolKind(POOL_GROUP)!, NAMESPACE);
const OBJECTIVES = kindPath(OPTIONAL_KINDS.objectives[2], NAMESPACE);
const GROUPS = new Map([[`/apis/${LEGACY_GROUP}/v1alpha2`, ['inferenceobjectives']]]);

interface PodState {
  readonly name: string;
  /** Counts the lives of the name. */
  readonly life: number;
  /** The pool that selects it. */
  readonly app: 'vllm' | 'other';
  readonly ip: number;
  readonly ready: boolean;
  readonly deleting: boolean;
}

/** One thing that happens to the cluster or on the way to the picker. */
type Step =
  | { readonly kind: 'pod'; readonly pod: PodState }
  | { readonly kind: 'gone'; readonly name: string; readonly life: number }
  | { readonly kind: 'pool'; readonly ports: readonly number[] }
  | { readonly kind: 'no pool' }
  | { readonly kind: 'objective'; readonly name: string; readonly priority: number }
  | { readonly kind: 'no objective'; readonly name: string }
  | { readonly kind: 'cut'; readonly how: 'end' | 'break' }
  | { readonly kind: 'repeat'; readonly count: number }
  | { readonly kind: 'forget' }
  /** A pod goes while no watch is open, and the next one begins with a first state. */
  | { readonly kind: 'loss'; readonly how: 'end' | 'break'; readonly name: string }
  | { readonly kind: 'wait' };

const name = fc.constantFrom('a', 'b', 'c', 'd');
const life = fc.nat({ max: 2 });
const how = fc.constantFrom('end' as const, 'break' as const);
const LIVES = [0, 1, 2];
const podState = fc.record({
  name,
  life,
  app: fc.constantFrom('vllm' as const, 'other' as const),
  ip: fc.integer({ min: 1, max: 3 }),
  ready: fc.boolean(),
  deleting: fc.boolean(),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: podState.map((state): Step => ({ kind: 'pod', pod: state })) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('gone' as const), name, life }) },
  fc.record({ kind: fc.constant('pool' as const), ports: fc.constantFrom([8000], [8000, 8001], [8001]) }),
  fc.constant<Step>({ kind: 'no pool' }),
  fc.record({ kind: fc.constant('objective' as const), name, priority: fc.nat({ max: 9 }) }),
  fc.record({ kind: fc.constant('no objective' as const), name }),
  fc.record({ kind: fc.constant('cut' as const), how }),
  fc.record({ kind: fc.constant('repeat' as const), count: fc.integer({ min: 1, max: 4 }) }),
  fc.constant<Step>({ kind: 'forget' }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('loss' as const), how, name }) },
  { weight: 4, arbitrary: fc.constant<Step>({ kind: 'wait' }) },
);

/** The pods of a pool are taken over in several turns of the event loop, or in one. */
const podsPerTurn = fc.constantFrom(1, 2, 500);

function podObject({ name: podName, life: number, app, ip, ready, deleting }: PodState): StoredObject {
  return {
    metadata: {
      name: podName,
      namespace: NAMESPACE,
      uid: `${podName}-${number}`,
      creationTimestamp: '2026-08-01T11:00:00Z',
      labels: { app },
      ...(deleting ? { deletionTimestamp: '2026-08-01T12:00:00Z' } : {}),
    },
    spec: { containers: [{ name: 'engine', ports: [{ containerPort: 8000 }] }] },
    status: {
      podIP: `10.0.0.${ip}`,
      phase: 'Running',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
    },
  } as StoredObject;
}

const withUid = (made: object, uid: string) => {
  const { metadata, ...rest } = made as StoredObject;
  return { ...rest, metadata: { ...metadata, uid } };
};

async function take(server: HistoryServer, one: Step): Promise<void> {
  if (one.kind === 'pod') {
    // A name has one object at a time.
    for (const number of LIVES) if (number !== one.pod.life) server.delete(PODS, `${one.pod.name}-${number}`);
    server.put(PODS, podObject(one.pod));
  } else if (one.kind === 'gone') server.delete(PODS, `${one.name}-${one.life}`);
  else if (one.kind === 'pool') {
    const targetPorts = one.ports.map((number) => ({ number }));
    server.put(POOLS, withUid(pool(NAMESPACE, { targetPorts }), 'pool'));
  } else if (one.kind === 'no pool') server.delete(POOLS, 'pool');
  else if (one.kind === 'objective') {
    const made = objective(NAMESPACE, one.name, { priority: one.priority });
    server.put(OBJECTIVES, withUid(made, `objective-${one.name}`));
  } else if (one.kind === 'no objective') server.delete(OBJECTIVES, `objective-${one.name}`);
  else if (one.kind === 'cut') server.cut(one.how);
  else if (one.kind === 'repeat') server.repeat(one.count);
  else if (one.kind === 'forget') server.forget();
  else if (one.kind === 'loss') {
    server.cut(one.how);
    for (const number of LIVES) server.delete(PODS, `${one.name}-${number}`);
    server.forget();
  } else await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
}

/** The state that updates add up to. */
class Told {
  readonly endpoints = new Map<string, Endpoint>();
  rules: PoolRules | undefined;

  take(update: PoolUpdate): void {
    if ('endpoints' in update) this.endpoints.clear();
    for (const id of 'removed' in update ? update.removed : []) this.endpoints.delete(id);
    for (const endpoint of 'endpoints' in update ? update.endpoints : update.set)
      this.endpoints.set(endpoint.id, endpoint);
    this.rules = 'endpoints' in update ? update : (update.rules ?? this.rules);
  }

  get text(): string {
    return this.rules === undefined ? 'nothing' : stateText([...this.endpoints.values()], this.rules);
  }
}

function stateText(endpoints: readonly Endpoint[], { objectives, absent }: PoolRules): string {
  const lines = endpoints.map((one) => JSON.stringify([one.id, one.address, one.port, one.incarnation, one.draining]));
  return [...lines.sort(), JSON.stringify([...objectives].sort()), absent ?? 'there is a pool'].join('\n');
}

/** The state of a pool that a fresh list of everything gives. */
function expected(server: HistoryServer, poolName: string): string {
  const found = server
    .list(POOLS)
    .map((one) => readPool(one) as PoolRecord)
    .find((one) => one.name === poolName);
  const { state } = project({
    reference: { name: poolName, group: POOL_GROUP },
    pool: found,
    absent: `there is no InferencePool ${NAMESPACE}/${poolName}`,
    pods: server
      .list(PODS)
      .map((one) => readPod(one) as PodRecord)
      .filter((one) => found?.labels.accepts(one.labels)),
    objectives: server.list(OBJECTIVES).map((one) => readObjective(one) as ObjectiveRecord),
    ...{ rewrites: [], models: [], nowMs: Date.now() },
  });
  return stateText(state.endpoints, state);
}

/** A pool that is followed while steps are taken. */
class FollowedPool {
  readonly told = new Told();
  readonly #name: string;
  readonly #discovery: KubernetesDiscovery;

  constructor(client: ApiClient, watches: Watches | undefined, name: string, perTurn: number) {
    this.#name = name;
    const source = { kind: 'pool', name, group: POOL_GROUP } as const;
    const options = { client, watches, namespace: NAMESPACE, source, inform: () => {}, podsPerTurn: perTurn };
    this.#discovery = new KubernetesDiscovery(options);
  }

  async start(): Promise<void> {
    await this.#discovery.start(
      (update) => this.told.take(update),
      () => {},
    );
    await eventually(`the first state of ${this.#name} is there`, () => this.told.rules !== undefined);
  }

  async ends(server: HistoryServer): Promise<void> {
    const isFresh = () => this.told.text === expected(server, this.#name);
    await eventually(`the state of ${this.#name} is that of a fresh list`, isFresh, 10_000).catch(() => {
      expect(this.told.text).toBe(expected(server, this.#name));
    });
  }

  stop(): Promise<void> {
    return this.#discovery.stop();
  }
}

const other = pool(
  NAMESPACE,
  { selector: { matchLabels: { app: 'other' } }, targetPorts: [{ number: 9000 }] },
  'other',
);

it('1. any order, repetition and loss of events ends in the state that a fresh list gives', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 40 }),
      podsPerTurn,
      fc.boolean(),
      fc.boolean(),
      async (steps, perTurn, large, shared) => {
        const server = await HistoryServer.start(GROUPS);
        server.large = large;
        const client = clientOf(server.url);
        const watches = new Watches(client, shared);
        const pools = ['pool', 'other'].map((poolName) => new FollowedPool(client, watches, poolName, perTurn));
        const brief = new FollowedPool(client, watches, 'pool', perTurn);
        try {
          await take(server, { kind: 'pool', ports: [8000] });
          server.put(POOLS, withUid(other, 'other'));
          await pools[0]!.start();
          await brief.start();
          const half = Math.floor(steps.length / 2);
          for (const one of steps.slice(0, half)) await take(server, one);
          await pools[1]!.start();
          await brief.stop();
          for (const one of steps.slice(half)) await take(server, one);
          for (const one of pools) await one.ends(server);
        } finally {
          for (const one of [...pools, brief]) await one.stop();
          client.close();
          server.close();
        }
      },
    ),
    { numRuns: 40 },
  );
}, 120_000);
