import type { LegacyModel, ModelRewrite, PoolState } from '../../../contract/endpoint.js';
import { selectorAccepts } from '../../../contract/label-selector.js';
import type { ModelRecord, ObjectiveRecord, PodRecord, PoolRecord, RewriteRecord } from './objects.js';
import { byAge, byName, PodEndpoints } from './pod-endpoints.js';

/** State of a cluster at one time. */
export interface ClusterView {
  /** Name and API group of the pool that objects refer to; undefined in selector mode, where none can. */
  readonly reference: { readonly name: string; readonly group: string } | undefined;
  /** Undefined = there is none, for the reason in `absent`. */
  readonly pool: Pick<PoolRecord, 'ports' | 'appProtocol' | 'deleting' | 'ownLabels'> | undefined;
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
  /** Follows later changes of the pods alone; undefined without a pool. */
  readonly pods: PodEndpoints | undefined;
  /** Wall time at which the projection of the same objects becomes another; undefined = never. */
  readonly nextMs: number | undefined;
  /** Left-out and ignored parts, one line each. */
  readonly notes: readonly string[];
  /** Rules of legacy models. */
  readonly modelNotes: readonly string[];
}

/**
 * The pool as the objects describe it. A pure function: neither the order in which the objects came nor what was there
 * before matters.
 * @param made the endpoints of the pods, if they are made already
 */
export function project(view: ClusterView, made?: PodEndpoints): Projection {
  const { pool, reference } = view;
  if (pool === undefined || pool.deleting) {
    const absent = pool === undefined ? view.absent : 'the InferencePool is being deleted';
    const nothing = { endpoints: [], objectives: new Map(), rewrites: [], models: new Map() };
    return {
      state: { ...nothing, appProtocol: undefined, absent },
      pods: undefined,
      nextMs: undefined,
      notes: [],
      modelNotes: [],
    };
  }
  const pods = made ?? new PodEndpoints(view.pods, pool.ports, view.nowMs);
  const ofPool = <T extends { readonly poolName: string; readonly poolGroup: string | undefined }>(all: readonly T[]) =>
    all.filter(
      ({ poolName, poolGroup }) =>
        poolName === reference?.name && (poolGroup === undefined || poolGroup === reference.group),
    );
  const isNamed = ({ pools, poolSelector }: ObjectiveRecord) =>
    ofPool(pools).length > 0 || (poolSelector !== undefined && selectorAccepts(poolSelector, pool.ownLabels));
  const rewrites = projectRewrites(ofPool(view.rewrites));
  const legacy = projectModels(ofPool(view.models), rewrites.length);
  const state: PoolState = {
    endpoints: pods.endpoints(),
    objectives: new Map(
      view.objectives
        .filter(isNamed)
        .sort(byName)
        .map(({ name, priority }) => [name, priority]),
    ),
    rewrites: [...rewrites, ...legacy.rewrites],
    models: legacy.models,
    appProtocol: pool.appProtocol,
    absent: undefined,
  };
  const notes = [...pods.notes(), ...legacy.notes];
  return { state, pods, nextMs: pods.nextMs, notes, modelNotes: legacy.notes };
}

/** Exact rules go before generic ones by themselves; among equals the older object, then the order of its rules. */
function projectRewrites(objects: readonly RewriteRecord[]): ModelRewrite[] {
  return [...objects]
    .sort(byAge)
    .flatMap(({ name, rules }) => rules.map(({ models, targets }) => ({ name, models, targets })))
    .map((rule, age) => ({ ...rule, age }));
}

/**
 * Legacy models: a priority by model name, and weighted targets as rules behind all rewrites. The oldest object has a
 * name.
 */
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
