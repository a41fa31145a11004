import { type ApiClient, ApiFailure } from './api-client.js';
import { errorText } from './error-text.js';

/** A kind of object in one version of its API group. */
export interface Kind {
  readonly name: string;
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
}

export const POOL_GROUP = 'inference.networking.k8s.io';
export const LEGACY_GROUP = 'inference.networking.x-k8s.io';
export const LLM_D_GROUP = 'llm-d.ai';

export const POD: Kind = { name: 'Pod', group: '', version: 'v1', plural: 'pods' };
export const LEASE: Kind = { name: 'Lease', group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

const inference = (name: string, plural: string, group: string, version: string): Kind => ({
  name,
  group,
  version,
  plural,
});

/** The InferencePool of a group, by the version in which the group has it. Undefined = no such group. */
export function poolKind(group: string): Kind | undefined {
  if (group === POOL_GROUP) return inference('InferencePool', 'inferencepools', POOL_GROUP, 'v1');
  if (group === LEGACY_GROUP) return inference('InferencePool', 'inferencepools', LEGACY_GROUP, 'v1alpha2');
  return undefined;
}

/** Kinds that a cluster may have or not. The first served candidate of each is the one that counts. */
export const OPTIONAL_KINDS = {
  objectives: [
    inference('InferenceObjective', 'inferenceobjectives', LLM_D_GROUP, 'v1'),
    inference('InferenceObjective', 'inferenceobjectives', LLM_D_GROUP, 'v1alpha2'),
    inference('InferenceObjective', 'inferenceobjectives', LEGACY_GROUP, 'v1alpha2'),
  ],
  rewrites: [
    inference('InferenceModelRewrite', 'inferencemodelrewrites', LLM_D_GROUP, 'v1alpha2'),
    inference('InferenceModelRewrite', 'inferencemodelrewrites', LEGACY_GROUP, 'v1alpha2'),
  ],
  models: [inference('InferenceModel', 'inferencemodels', LEGACY_GROUP, 'v1alpha2')],
} as const satisfies Record<string, readonly Kind[]>;

export type OptionalKind = keyof typeof OPTIONAL_KINDS;

/** Versions of groups that optional kinds are looked for in. */
const ASKED = [
  { group: LLM_D_GROUP, version: 'v1' },
  { group: LLM_D_GROUP, version: 'v1alpha2' },
  { group: LEGACY_GROUP, version: 'v1alpha2' },
] as const;

/** `/apis/group/version`, or `/api/version` of the core group. */
export function groupPath({ group, version }: Pick<Kind, 'group' | 'version'>): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
}

/** Path of the objects of a kind in a namespace. */
export function kindPath(kind: Kind, namespace: string): string {
  return `${groupPath(kind)}/namespaces/${encodeURIComponent(namespace)}/${kind.plural}`;
}

/** `pods`, or `inferencepools.inference.networking.k8s.io`. */
export function resourceName({ plural, group }: Kind): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** As `resourceName`, with the version. */
function versionedName(kind: Kind): string {
  return `${resourceName(kind)}/${kind.version}`;
}

/** One optional kind as a cluster serves it. */
export interface ServedKind {
  /** The candidate in use; undefined = the cluster has none. */
  readonly kind: Kind | undefined;
  /** Other groups in which the kind is served as well; their objects are not read. */
  readonly ignored: readonly Kind[];
}

/** Times from one probe to the next. */
export interface ProbeTimes {
  readonly regularMs: number;
  /** After a probe without an answer, or with one that has to be confirmed. */
  readonly againMs: number;
}

/** With the probe that confirms it, a kind is switched off within 30 s. */
const PROBE_TIMES: ProbeTimes = { regularMs: 28_000, againMs: 2_000 };

interface ResourceList {
  readonly resources?: readonly { readonly name?: string }[];
}

/**
 * Asks every 30 s which of the optional kinds the cluster serves. A freshly started server may not know a kind yet. So
 * an answer without it is repeated soon, and only the second such answer switches the kind off.
 */
export class ServedKinds {
  readonly #client: ApiClient;
  readonly #changed: (optional: OptionalKind, served: ServedKind) => void;
  readonly #report: (problem: string) => void;
  readonly #times: ProbeTimes;
  /** Plurals by version of a group, of the last probe that was answered. */
  #plurals: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  readonly #told = new Map<OptionalKind, readonly Kind[]>();
  /** Answers of the last probe. */
  readonly #last = new Map<OptionalKind, string>();
  #timer: NodeJS.Timeout | undefined;
  #complaint = '';
  #stopped = false;

  /** @param changed called for every kind after the first probe, and again when an answer differs */
  constructor(
    client: ApiClient,
    changed: (optional: OptionalKind, served: ServedKind) => void,
    report: (problem: string) => void,
    times: ProbeTimes = PROBE_TIMES,
  ) {
    this.#times = times;
    this.#client = client;
    this.#changed = changed;
    this.#report = report;
  }

  /** Starts. Never rejects: while the server does not answer, the last answers count. */
  async start(): Promise<void> {
    const { regularMs, againMs } = this.#times;
    const certain = await this.#probe();
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.start(), certain ? regularMs : againMs).unref();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** @returns whether the API server answered, and no answer needs a second one to confirm it */
  async #probe(): Promise<boolean> {
    try {
      const ask = async (asked: (typeof ASKED)[number]) =>
        [groupPath(asked), await servedPlurals(this.#client, asked)] as const;
      this.#plurals = new Map(await Promise.all(ASKED.map(ask)));
      this.#complaint = '';
    } catch (error) {
      const complaint = errorText(error);
      if (complaint !== this.#complaint && !this.#stopped)
        this.#report(`the served kinds cannot be asked for: ${complaint}`);
      this.#complaint = complaint;
      return false;
    }
    if (this.#stopped) return true;
    const certain = (Object.keys(OPTIONAL_KINDS) as OptionalKind[]).map((optional) => this.#take(optional));
    return certain.every((one) => one);
  }

  /** Reports differing answers on one kind. @returns whether they need not be confirmed */
  #take(optional: OptionalKind): boolean {
    const candidates: readonly Kind[] = OPTIONAL_KINDS[optional];
    const served = candidates.filter((kind) => this.#plurals.get(groupPath(kind))?.has(kind.plural));
    const text = served.map(versionedName).join();
    const certain = served.length === candidates.length || this.#last.get(optional) === text;
    this.#last.set(optional, text);
    const told = this.#told.get(optional);
    if (told !== undefined && !certain && told.some((kind) => !served.includes(kind))) return false;
    if (told?.map(versionedName).join() === text) return certain;
    this.#told.set(optional, served);
    const [kind, ...others] = served;
    // The same objects are read in another version of their group.
    const ignored = others.filter(({ group }) => group !== kind?.group);
    this.#changed(optional, { kind, ignored });
    return certain;
  }
}

/**
 * Plurals of the resources in a version of a group; none when the cluster does not have it. Rejects with ApiFailure.
 */
export async function servedPlurals(
  client: ApiClient,
  version: Pick<Kind, 'group' | 'version'>,
): Promise<ReadonlySet<string>> {
  try {
    const { resources = [] } = (await client.request('GET', groupPath(version))) as ResourceList;
    return new Set(resources.flatMap(({ name }) => (name === undefined ? [] : [name])));
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return new Set();
    throw error;
  }
}
