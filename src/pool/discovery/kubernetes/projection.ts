import { type Endpoint, endpointAddress, type LegacyModel, type ModelRewrite, type PoolState } from '../../endpoint.js';
import type { ModelRecord, ObjectiveRecord, PodRecord, PoolRecord, RewriteRecord } from './objects.js';

/** Time that an endpoint that is not ready keeps its slot and what is known of its cache. */
export const UNREADY_KEPT_MS = 60_000;

/** Everything that the picker knows of a cluster at one time. */
export interface ClusterView {
  /** Name and API group of the pool that objects refer to; undefined in selector mode, where none can. */
  readonly reference: { readonly name: string; readonly group: string } | undefined;
  /** Undefined = there is none, for the reason in `absent`. */
  readonly pool: Pick<PoolRecord, 'ports' | 'appProtocol' | 'deleting'> | undefined;
  readonly absent: string;
  readonly pods: readonly PodRecord[];
  readonly objectives: readonly ObjectiveRecord[];
  readonly rewrites: readonly RewriteRecord[];
  readonly models: readonly ModelRecord[];
  /** Wall time in milliseconds. */
  readonly nowMs: number;
}

export interface Projection {
  readonly state: PoolState;
  /** Wall time at which the projection of the same objects becomes another; undefined = never. */
  readonly nextMs: number | undefined;
  /** What was left out or ignored, one line each. */
  readonly notes: readonly string[];
}

/**
 * The pool as the objects say it. A pure function: neither the order in which the objects came nor what was there before
 * matters.
 */
export function project(view: ClusterView): Projection {
  const { pool, reference } = view;
  if (pool === undefined || pool.deleting) {
    const absent = pool === undefined ? view.absent : 'the InferencePool is being deleted';
    const nothing = { endpoints: [], objectives: new Map(), rewrites: [], models: new Map() };
    return { state: { ...nothing, appProtocol: undefined, absent }, nextMs: undefined, notes: [] };
  }
  const { endpoints, nextMs, notes } = projectPods(view.pods, pool.ports, view.nowMs);
  const ofPool = <T extends { readonly poolName: string; readonly poolGroup: string | undefined }>(all: readonly T[]) =>
    all.filter(
      ({ poolName, poolGroup }) =>
        poolName === reference?.name && (poolGroup === undefined || poolGroup === reference.group),
    );
  const rewrites = projectRewrites(ofPool(view.rewrites));
  const legacy = projectModels(ofPool(view.models), rewrites.length);
  const state: PoolState = {
    endpoints,
    objectives: new Map(
      ofPool(view.objectives)
        .sort(byName)
        .map(({ name, priority }) => [name, priority]),
    ),
    rewrites: [...rewrites, ...legacy.rewrites],
    models: legacy.models,
    appProtocol: pool.appProtocol,
    absent: undefined,
  };
  return { state, nextMs, notes: [...notes, ...legacy.notes] };
}

type Dated = { readonly createdMs: number; readonly namespace: string; readonly name: string };

const byName = (a: Dated, b: Dated) => compare(a.namespace, b.namespace) || compare(a.name, b.name);
/** Oldest first; the peer's order among equals is by chance. */
const byAge = (a: Dated, b: Dated) => a.createdMs - b.createdMs || byName(a, b);

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function projectPods(pods: readonly PodRecord[], ports: readonly number[], nowMs: number) {
  const endpoints: Endpoint[] = [];
  const notes: string[] = [];
  const liveByAddress = new Map<string, number>();
  let nextMs: number | undefined;
  for (const pod of [...pods].sort(byAge)) {
    const made = endpointsOf(pod, ports);
    notes.push(...made.notes);
    if (!pod.ready && pod.unreadySinceMs !== undefined && !pod.deleting && made.endpoints.length > 0) {
      const endsMs = pod.unreadySinceMs + UNREADY_KEPT_MS;
      if (endsMs <= nowMs) continue;
      nextMs = Math.min(nextMs ?? endsMs, endsMs);
    }
    for (const endpoint of made.endpoints) {
      if (endpoint.draining !== true) {
        const address = endpointAddress(endpoint);
        const older = liveByAddress.get(address);
        // The address belongs to the younger pod: an IP is given again when its owner has ended.
        if (older !== undefined) {
          notes.push(`endpoint ${endpoints[older]!.id} is left out: ${address} is the address of ${endpoint.id} too`);
          endpoints[older] = endpoint;
          liveByAddress.set(address, older);
          continue;
        }
        liveByAddress.set(address, endpoints.length);
      }
      endpoints.push(endpoint);
    }
  }
  return { endpoints, nextMs, notes };
}

interface PodEndpoints {
  readonly ports: readonly number[];
  readonly endpoints: readonly Endpoint[];
  readonly notes: readonly string[];
}

/** A pod's endpoints by its record, which is another object after every change: most pods are as they were. */
const known = new WeakMap<PodRecord, PodEndpoints>();

/** One endpoint for each active port, whether or not they take requests. */
function endpointsOf(pod: PodRecord, ports: readonly number[]): PodEndpoints {
  const before = known.get(pod);
  if (before?.ports === ports) return before;
  const made = { ports, ...makeEndpoints(pod, ports) };
  known.set(pod, made);
  return made;
}

function makeEndpoints(pod: PodRecord, ports: readonly number[]): Omit<PodEndpoints, 'ports'> {
  const { ip, activePorts } = pod;
  if (ip === undefined || pod.ended) return { endpoints: [], notes: [] };
  const draining = !pod.ready || pod.deleting || pod.drainMark;
  const endpoints = ports.flatMap((port, rank): Endpoint[] => {
    if (activePorts !== undefined && !activePorts.includes(port)) return [];
    const name = `${pod.name}-rank-${rank}`;
    const id = `${pod.namespace}/${name}`;
    const { namespace, labels } = pod;
    return [{ id, name, namespace, address: ip, port, labels, incarnation: incarnation(pod, port), draining }];
  });
  return { endpoints, notes: portNotes(pod, ports) };
}

/** Pod and container: an engine that was restarted inside its pod has an empty cache, a restarted sidecar changes nothing. */
function incarnation({ uid, containers }: PodRecord, port: number): string {
  const owners = containers.filter(({ ports }) => ports.includes(port));
  return [uid, ...(owners.length > 0 ? owners : containers).map(({ id }) => id)].join(' ');
}

function portNotes({ namespace, name, activePorts, wrongPorts }: PodRecord, ports: readonly number[]): string[] {
  const others = (activePorts ?? []).filter((port) => !ports.includes(port)).map(String);
  const ignored = [...others, ...wrongPorts];
  if (ignored.length === 0) return [];
  return [`pod ${namespace}/${name}: active-ports: ${ignored.join(', ')}: not among the pool's ports, ignored`];
}

/** Exact rules go before generic ones by themselves; among equals the older object, then the order of its rules. */
function projectRewrites(objects: readonly RewriteRecord[]): ModelRewrite[] {
  return [...objects]
    .sort(byAge)
    .flatMap(({ name, rules }) => rules.map(({ models, targets }) => ({ name, models, targets })))
    .map((rule, age) => ({ ...rule, age }));
}

/** Legacy models: a priority by model name, and weighted targets as rules behind all rewrites. The oldest object has a name. */
function projectModels(objects: readonly ModelRecord[], firstAge: number) {
  const models = new Map<string, LegacyModel>();
  const rewrites: ModelRewrite[] = [];
  const notes: string[] = [];
  for (const { namespace, name, modelName, priority, targets } of [...objects].sort(byAge)) {
    if (models.has(modelName)) {
      notes.push(`InferenceModel ${namespace}/${name} is ignored: an older one has the model name "${modelName}"`);
      continue;
    }
    const refused = targets.length > 0 && targets.every(({ weight }) => weight === 0);
    models.set(modelName, { priority, refused });
    if (targets.length > 0 && !refused) {
      rewrites.push({ name, models: [modelName], targets, age: firstAge + rewrites.length });
    }
  }
  return { models, rewrites, notes };
}
