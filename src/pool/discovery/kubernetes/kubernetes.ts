import type { Discovery, Endpoint, PoolState, PoolUpdate } from '../../../contract/endpoint.js';
import type { ApiClient } from '../../../kubernetes/api-client.js';
import {
  type Kind,
  kindPath,
  OPTIONAL_KINDS,
  type OptionalKind,
  POD,
  POOL_GROUP,
  poolKind,
  resourceName,
  type ServedKind,
} from '../../../kubernetes/kinds.js';
import type { ObjectProblem } from '../../../kubernetes/object-copy.js';
import type { SelectedLabels } from '../../../kubernetes/reflector.js';
import { type ServedWatch, type Watch, Watches } from '../../../kubernetes/watches.js';
import { counted } from '../../../runtime/counted.js';
import { Followed, type ValueChange } from './followed.js';
import {
  type ModelRecord,
  type ObjectiveRecord,
  POD_FIELDS,
  type PodRecord,
  type PoolRecord,
  type RewriteRecord,
  readLegacyPool,
  readModel,
  readObjective,
  readPod,
  readPool,
  readRewrite,
} from './objects.js';
import { type EndpointChange, makePodEndpoints, type PodEndpoints, sameEndpoint } from './pod-endpoints.js';
import { type ClusterView, project } from './projection.js';
import { holdYoungGeneration } from './young-generation.js';

/** Source of a picker's endpoints in a cluster. */
export type EndpointSource =
  | { readonly kind: 'pool'; readonly name: string; readonly group: string }
  | { readonly kind: 'selector'; readonly labels: SelectedLabels; readonly ports: readonly number[] };

export interface KubernetesDiscoveryOptions {
  readonly client: ApiClient;
  /** Watches at the same server; undefined = its own. */
  readonly watches?: Watches | undefined;
  readonly namespace: string;
  readonly source: EndpointSource;
  /** Called with facts that an operator need not act on. */
  readonly inform: (message: string) => void;
  /** Pods whose endpoints are made in one turn of the event loop. Default 500, some milliseconds. */
  readonly podsPerTurn?: number;
}

/** One kind of object and its objects, for metrics and reports. */
export interface FollowedKind {
  readonly kind: Kind;
  readonly watch: Watch<unknown>;
}

/** Pods and pool: a server that is back has to be noticed soon. */
const BACKOFF_MS_MAX = 5_000;
const OPTIONAL_BACKOFF_MS_MAX = 30_000;
/** Changes of so long are applied together. */
const BATCH_MS = 20;
const PODS_PER_TURN = 500;
/** Objectives, rewrites and models are waited for this long after pool and pods are known. */
const OPTIONAL_MS_MAX = 2_000;
const OUTAGE_TOLD_MS = 10_000;
const AWAITED_FIRST_MS = 3_000;
const AWAITED_AGAIN_MS = 60_000;

/** Endpoints, objectives and rewrites from the API server (docs/kubernetes.md). */
export class KubernetesDiscovery implements Discovery {
  readonly #options: KubernetesDiscoveryOptions;
  readonly #pool: Followed<PoolRecord>;
  readonly #pods: Followed<PodRecord>;
  readonly #objectives: Followed<ObjectiveRecord>;
  readonly #rewrites: Followed<RewriteRecord>;
  readonly #models: Followed<ModelRecord>;
  readonly #served: ServedWatch | undefined;
  #changed: (update: PoolUpdate) => void = () => {};
  #report: (problem: string) => void = () => {};
  /** Ends the small young generation that is set while the first state is read. */
  #letGrow: () => void = () => {};
  #selector: string | undefined;
  /** Selector mode: always this pool. */
  readonly #fixedPool: ClusterView['pool'];
  /** Endpoints in the last state that was told, by id. */
  #given: Map<string, Endpoint> | undefined;
  /** The endpoints of the last projection; undefined without a pool. */
  #endpoints: PodEndpoints | undefined;
  /** Changed pods by UID since they were applied last; undefined = gone. */
  #changedPods = new Map<string, PodRecord | undefined>();
  /** Whether more has changed than pods. */
  #whole = true;
  /** Whether the endpoints of all pods are being made; later changes are applied afterwards. */
  #making = false;
  #modelNotes: readonly string[] = [];
  #givenRules = '';
  #notes: ReadonlySet<string> = new Set();
  #pickerPort: number | undefined;
  #batch: NodeJS.Timeout | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #awaited: NodeJS.Timeout | undefined;
  #patience: NodeJS.Timeout | undefined;
  #patient = true;
  #outage: NodeJS.Timeout | undefined;
  #outageTold = false;
  #stopped = false;

  constructor(options: KubernetesDiscoveryOptions) {
    this.#options = options;
    const { source, watches = new Watches(options.client, false) } = options;
    const project = () => this.#project(false);
    this.#pool = new Followed(watches, () => this.#poolChanged());
    this.#pods = new Followed(watches, (urgent, change) => this.#podsChanged(urgent, change), takesNothing);
    this.#objectives = new Followed(watches, project);
    this.#rewrites = new Followed(watches, project);
    this.#models = new Followed(watches, project);
    const complain = (problem: string) => this.#report(problem);
    if (source.kind === 'selector') {
      this.#fixedPool = { ports: source.ports, appProtocol: undefined, deleting: false, ownLabels: {} };
    } else {
      this.#served = watches.served((kind, served) => this.#serve(kind, served), complain);
    }
  }

  /** Returns at once: the first state follows through `changed`, after the answer of the API server. */
  start(changed: (update: PoolUpdate) => void, report: (problem: string) => void): Promise<undefined> {
    this.#changed = changed;
    this.#report = report;
    this.#letGrow = holdYoungGeneration();
    const { source } = this.#options;
    if (source.kind === 'selector') this.#followPods(source.labels);
    else {
      const kind = poolKind(source.group)!;
      const read = source.group === POOL_GROUP ? readPool : readLegacyPool;
      this.#pool.follow({ ...this.#following(kind, read, BACKOFF_MS_MAX), name: source.name });
      this.#served!.start();
    }
    this.#awaited = setTimeout(() => this.#tellAwaited(), AWAITED_FIRST_MS).unref();
    return Promise.resolve(undefined);
  }

  stop(): Promise<void> {
    this.#stopped = true;
    this.#letGrow();
    this.#served?.stop();
    for (const followed of this.#all()) followed.stop();
    for (const timer of [this.#batch, this.#expiry, this.#awaited, this.#patience, this.#outage]) clearTimeout(timer);
    return Promise.resolve();
  }

  /** The kinds that are followed now. */
  get kinds(): FollowedKind[] {
    return this.#all().flatMap(({ watch }) => (watch === undefined ? [] : [{ kind: watch.kind, watch }]));
  }

  /** Obstacle of the first state in words; empty once there was one. */
  get awaited(): string {
    if (this.#given !== undefined) return '';
    const missing = [this.#pool, this.#pods].flatMap(({ watch }) =>
      watch === undefined || watch.synced ? [] : [`${resourceName(watch.kind)} (${watch.problem || watch.state})`],
    );
    return missing.length === 0 ? 'the pool’s objects' : missing.join(', ');
  }

  #all(): readonly Followed<unknown>[] {
    return [this.#pool, this.#pods, this.#objectives, this.#rewrites, this.#models] as readonly Followed<unknown>[];
  }

  #following<Value>(kind: Kind, read: (object: unknown) => Value | ObjectProblem, backoffMsMax: number) {
    const { namespace } = this.#options;
    return {
      ...{ kind, namespace, read, backoffMsMax },
      pageFirst: true,
      stateChanged: () => this.#stateChanged(),
      report: (problem: string) => this.#report(problem),
    };
  }

  #followPods(labels: SelectedLabels): void {
    this.#selector = labels.selector;
    this.#pods.follow({ ...this.#following(POD, readPod, BACKOFF_MS_MAX), labels, fields: POD_FIELDS });
  }

  #poolChanged(): void {
    const [pool] = this.#pool.values();
    // A removed pool keeps its pods in the cache, so a pool of the same name has its endpoints at once.
    if (pool !== undefined && pool.labels.selector !== this.#selector) this.#followPods(pool.labels);
    if (pool?.pickerPort !== undefined && pool.pickerPort !== this.#pickerPort) {
      this.#pickerPort = pool.pickerPort;
      this.#options.inform(`the InferencePool names port ${pool.pickerPort} of its endpoint picker's Service`);
    }
    this.#project(true);
  }

  #podsChanged(urgent: boolean, change: ValueChange<PodRecord> | undefined): void {
    if (change === undefined || (this.#given === undefined && !this.#making)) this.#whole = true;
    else {
      for (const { uid } of change.removed) this.#changedPods.set(uid, undefined);
      for (const pod of change.set) this.#changedPods.set(pod.uid, pod);
    }
    this.#schedule(urgent);
  }

  /** As `#schedule`, for changes of other objects than pods. */
  #project(urgent: boolean): void {
    this.#whole = true;
    this.#schedule(urgent);
  }

  #serve(optional: OptionalKind, { kind, ignored }: ServedKind): void {
    const follow = <Value>(followed: Followed<Value>, read: (object: unknown) => Value | ObjectProblem) =>
      followed.follow(kind === undefined ? undefined : this.#following(kind, read, OPTIONAL_BACKOFF_MS_MAX));
    if (optional === 'objectives') follow(this.#objectives, readObjective);
    else if (optional === 'rewrites') follow(this.#rewrites, readRewrite);
    else follow(this.#models, readModel);
    if (kind === undefined) {
      const names = [...new Set(OPTIONAL_KINDS[optional].map(resourceName))].join(' and ');
      this.#options.inform(`the cluster does not have ${names}: without effect until they are installed`);
    }
    for (const other of ignored) void this.#countIgnored(kind!, other);
  }

  async #countIgnored(kind: Kind, ignored: Kind): Promise<void> {
    const { client, namespace } = this.#options;
    try {
      const list = (await client.request('GET', `${kindPath(ignored, namespace)}?limit=1`)) as IgnoredList;
      const count = (list.items?.length ?? 0) + (list.metadata?.remainingItemCount ?? 0);
      const remedy = `make them anew in ${kind.group}`;
      if (count > 0) this.#report(`ignores ${counted(count, 'object')} of ${resourceName(ignored)}: ${remedy}`);
    } catch {
      // Counting is optional: its failure stops nothing else.
    }
  }

  /** Applies what has changed: at once, or with whatever changes in the next 20 ms. */
  #schedule(urgent: boolean): void {
    if (this.#stopped) return;
    if (!urgent) {
      this.#batch ??= setTimeout(() => this.#apply(), BATCH_MS);
      return;
    }
    this.#apply();
  }

  #apply(): void {
    clearTimeout(this.#batch);
    this.#batch = undefined;
    if (this.#stopped || this.#making || !this.#isReady()) return;
    if (this.#whole) this.#applyWhole();
    else this.#applyPods();
  }

  #applyWhole(): void {
    this.#whole = false;
    this.#changedPods.clear();
    const view = this.#view();
    if (view.pool === undefined || view.pool.deleting) this.#giveWhole(view);
    else this.#makeWhole(view, view.pool.ports);
  }

  #makeWhole(view: ClusterView, ports: readonly number[]): void {
    const perTurn = this.#options.podsPerTurn ?? PODS_PER_TURN;
    this.#making = true;
    makePodEndpoints(view.pods, ports, { nowMs: view.nowMs, perTurn }, (pods) => {
      this.#making = false;
      if (this.#stopped) return;
      this.#giveWhole(view, pods);
      if (this.#whole || this.#changedPods.size > 0) this.#schedule(true);
    });
  }

  #giveWhole(view: ClusterView, made?: PodEndpoints): void {
    const { state, pods, nextMs, modelNotes } = project(view, made);
    this.#endpoints = pods;
    this.#modelNotes = modelNotes;
    this.#expireAt(nextMs);
    this.#tellNotes();
    this.#give(state);
  }

  /** Applies changes of pods alone, at the cost of the pods that have changed. */
  #applyPods(): void {
    const pods = [...this.#changedPods];
    this.#changedPods.clear();
    if (this.#endpoints === undefined) return;
    const change = this.#endpoints.change(
      {
        set: pods.flatMap(([, pod]) => pod ?? []),
        removed: pods.flatMap(([uid, pod]) => (pod === undefined ? [uid] : [])),
      },
      Date.now(),
    );
    this.#expireAt(this.#endpoints.nextMs);
    this.#tellNotes();
    this.#giveChange(change);
  }

  /** Whether pool and pods are known, and the optional objects are known or have had their time. */
  #isReady(): boolean {
    if (this.#given !== undefined) return true;
    const pooled = this.#fixedPool !== undefined || this.#pool.synced;
    const hasPool = this.#fixedPool !== undefined || this.#pool.values().length > 0;
    if (!pooled || (hasPool && !this.#pods.synced)) return false;
    const optional = [this.#objectives, this.#rewrites, this.#models];
    if (this.#served === undefined || !this.#patient || optional.every((followed) => followed.settled)) return true;
    this.#patience ??= setTimeout(() => {
      this.#patient = false;
      this.#project(true);
    }, OPTIONAL_MS_MAX).unref();
    return false;
  }

  #view(): ClusterView {
    const { source } = this.#options;
    return {
      reference: source.kind === 'pool' ? { name: source.name, group: source.group } : undefined,
      pool: this.#fixedPool ?? this.#pool.values()[0],
      absent: this.#absent(),
      pods: this.#pods.values(),
      objectives: this.#objectives.values(),
      rewrites: this.#rewrites.values(),
      models: this.#models.values(),
      nowMs: Date.now(),
    };
  }

  #absent(): string {
    const { source, namespace } = this.#options;
    const { watch } = this.#pool;
    if (watch === undefined || source.kind === 'selector') return '';
    if (watch.state === 'absent') return watch.problem;
    if (watch.rejected > 0) return `the InferencePool ${namespace}/${source.name} cannot be used as it is`;
    return `there is no InferencePool ${namespace}/${source.name}`;
  }

  #give(state: PoolState): void {
    const next = new Map(state.endpoints.map((endpoint) => [endpoint.id, endpoint]));
    const before = this.#given;
    const { endpoints, ...rules } = state;
    const text = JSON.stringify([...[rules.objectives, rules.models ?? []].map((one) => [...one]), rules]);
    const sameRules = text === this.#givenRules;
    this.#given = next;
    this.#givenRules = text;
    if (before === undefined) {
      clearTimeout(this.#awaited);
      this.#options.inform(`the first state of the pool has ${counted(endpoints.length, 'endpoint')}`);
      this.#changed(state);
      this.#letGrow();
      return;
    }
    const set = endpoints.filter((endpoint) => !sameEndpoint(before.get(endpoint.id), endpoint));
    const removed = [...before.keys()].filter((id) => !next.has(id));
    this.#tellEmpty(before.size);
    if (set.length === 0 && removed.length === 0 && sameRules) return;
    this.#changed({ set, removed, ...(sameRules ? {} : { rules }) });
  }

  #giveChange({ set, removed }: EndpointChange): void {
    if (set.length === 0 && removed.length === 0) return;
    const given = this.#given!;
    const before = given.size;
    for (const id of removed) given.delete(id);
    for (const endpoint of set) given.set(endpoint.id, endpoint);
    this.#tellEmpty(before);
    this.#changed({ set, removed });
  }

  #tellEmpty(before: number): void {
    if (before > 0 && this.#given!.size === 0) this.#report(`the pool went from ${counted(before, 'endpoint')} to 0`);
  }

  #expireAt(nextMs: number | undefined): void {
    clearTimeout(this.#expiry);
    if (nextMs === undefined) return;
    this.#expiry = setTimeout(() => this.#schedule(true), Math.max(1, nextMs - Date.now())).unref();
  }

  /** Logs each note once, until it no longer holds. */
  #tellNotes(): void {
    const notes = [...(this.#endpoints?.notes() ?? []), ...this.#modelNotes];
    if (notes.length === 0 && this.#notes.size === 0) return;
    const now = new Set(notes);
    for (const note of now) if (!this.#notes.has(note)) this.#report(note);
    this.#notes = now;
  }

  #tellAwaited(): void {
    this.#report(`not ready: waiting for ${this.awaited}`);
    this.#awaited = setTimeout(() => this.#tellAwaited(), AWAITED_AGAIN_MS).unref();
  }

  /** Logs one line when kinds could not be followed for 10 s, and one when all are followed again. */
  #stateChanged(): void {
    if (this.#stopped) return;
    this.#project(false);
    if (this.#waiting().length > 0) {
      this.#outage ??= setTimeout(() => this.#tellOutage(), OUTAGE_TOLD_MS).unref();
      return;
    }
    clearTimeout(this.#outage);
    this.#outage = undefined;
    if (this.#outageTold) this.#options.inform('the API server answers again');
    this.#outageTold = false;
  }

  #waiting(): FollowedKind[] {
    return this.kinds.filter(({ watch }) => watch.state === 'waiting');
  }

  #tellOutage(): void {
    const waiting = this.#waiting().map(({ kind, watch }) => `${resourceName(kind)}: ${watch.problem}`);
    if (waiting.length === 0) return;
    this.#outageTold = true;
    this.#report(`the API server has not answered for 10 s, the last state counts (${waiting.join('; ')})`);
  }
}

interface IgnoredList {
  readonly items?: readonly unknown[];
  readonly metadata?: { readonly remainingItemCount?: number };
}

/** A pod that takes no requests must get no more of them at once. */
function takesNothing({ ready, deleting, drainMark, ended }: PodRecord): boolean {
  return !ready || deleting || drainMark || ended;
}
