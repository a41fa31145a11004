import { loadConfiguration } from '../../src/config/load.js';
import { clusterAccess } from '../../src/kubernetes/access.js';
import { AccessReviews } from '../../src/kubernetes/access-review.js';
import { ApiClient, ApiFailure } from '../../src/kubernetes/api-client.js';
import {
  type Kind,
  kindPath,
  LEASE,
  OPTIONAL_KINDS,
  POD,
  POOL_GROUP,
  poolKind,
  resourceName,
} from '../../src/kubernetes/kinds.js';
import { ObjectProblem } from '../../src/kubernetes/object-copy.js';
import {
  type PodRecord,
  type PoolRecord,
  readLegacyPool,
  readModel,
  readObjective,
  readPod,
  readPool,
  readRewrite,
} from '../../src/pool/discovery/kubernetes/objects.js';
import { type ClusterView, project } from '../../src/pool/discovery/kubernetes/projection.js';
import { counted } from '../../src/runtime/counted.js';
import { FlagError } from '../../src/serve/flag-error.js';
import { parseServeFlags, type ServeFlags } from '../../src/serve/flags.js';
import { pluginRegistry } from '../../src/serve/plugin-registry.js';
import { destinationsOf } from '../envoy/picker-needs.js';

/** Bound on the pods that are named; of the others only the number is shown. */
const PODS_NAMED_MAX = 20;
const OBJECTS_MAX = 500;

const PREFLIGHT_HELP = `Usage: pointsman preflight [flags]
       pointsman preflight --gateway <url> [flags]

With --gateway: send test requests through a gateway to an endpoint of its own, and name the settings that
limit; its flags are listed by pointsman preflight --gateway --help. Without it:

Read the cluster with the picker's credentials and show what a picker would serve: pool, pods, objectives,
rewrite rules, and the rights that are missing. Changes nothing.

It takes every flag of pointsman serve, so that the picker's own command line can be checked. These matter:
  --pool-name <name>            name of the InferencePool
  --pool-namespace <name>       namespace of the pool
  --pool-group <group>          API group of the InferencePool
  --endpoint-selector <labels>  labels of the endpoints, without a pool
  --endpoint-target-ports <ports>
  --config-file <file>          the configuration: whether it names lists of destinations
  --ha-enable-leader-election, --metrics-endpoint-auth: the rights that they need are checked

Exit code: 0 when it could serve, 1 otherwise.
`;

/**
 * `pointsman preflight` and `pointsman lint --kubernetes`: what a picker with these flags of `serve` would serve, read
 * with its own credentials. @returns the exit code: 1 when it could not serve
 */
export async function runPreflight(argv: readonly string[]): Promise<number> {
  const flags = parseServeFlags(argv, process.env);
  if ('help' in flags) {
    process.stdout.write(PREFLIGHT_HELP);
    return 0;
  }
  if (!flags.poolName && !flags.endpointSelector) {
    throw new FlagError(
      'preflight reads a cluster or asks a gateway: give --pool-name, --endpoint-selector or --gateway',
    );
  }
  const destinations = await destinationsOfFlags(flags);
  const access = clusterAccess();
  const client = new ApiClient(access);
  try {
    const namespace = flags.poolNamespace || access.namespace || 'default';
    const report = await new Preflight(client, namespace, flags).run(destinations);
    process.stdout.write(`${access.server.origin}, namespace ${namespace}\n${report.lines.join('\n')}\n`);
    return report.serves ? 0 : 1;
  } finally {
    client.close();
  }
}

/** Most destinations that a picker with these flags names for a request. */
async function destinationsOfFlags(flags: ServeFlags): Promise<number> {
  const { configFile, configText, allowExperimentalPlugins, endpointsFile, featureGates } = flags;
  if (!configFile && !configText) return 1;
  const { registry } = await pluginRegistry(flags.plugin);
  const options = { registry, allowExperimental: allowExperimentalPlugins, endpointsFile, featureGates };
  return destinationsOf(loadConfiguration({ file: configFile, text: configText }, options));
}

/** Use that gateways make of a list of destinations (docs/kubernetes.md, Gateways). */
function listNote(destinations: number): string {
  return (
    `the configuration names up to ${destinations} destinations for a request: Istio, and Envoy with override_host, ` +
    'go on to the second one; other gateways take the first, and Envoy with ORIGINAL_DST by header answers 503 ' +
    '(docs/kubernetes.md, Gateways)'
  );
}

class Preflight {
  readonly #client: ApiClient;
  readonly #namespace: string;
  readonly #flags: ServeFlags;
  readonly #lines: string[] = [];

  constructor(client: ApiClient, namespace: string, flags: ServeFlags) {
    this.#client = client;
    this.#namespace = namespace;
    this.#flags = flags;
  }

  /** @param destinations most endpoints that the picker names for a request */
  async run(destinations: number): Promise<{ readonly lines: readonly string[]; readonly serves: boolean }> {
    const missing = await this.#missingRights();
    const pool = await this.#pool();
    const selector =
      pool === undefined ? undefined : 'labels' in pool ? pool.labels.selector : this.#flags.endpointSelector;
    const pods = selector === undefined ? [] : await this.#list(POD, readPod, selector);
    const optional = this.#flags.endpointSelector ? undefined : await this.#optional();
    const view: ClusterView = {
      reference: { name: this.#flags.poolName, group: this.#flags.poolGroup },
      pool,
      absent: '',
      pods,
      objectives: optional?.objectives ?? [],
      rewrites: optional?.rewrites ?? [],
      models: optional?.models ?? [],
      nowMs: Date.now(),
    };
    const { state, notes } = project(view);
    if (destinations > 1) this.#say(`note: ${listNote(destinations)}`);
    if (pool !== undefined) this.#tellPods(pods, pool.ports);
    if (optional !== undefined) {
      const names = [...state.objectives].map(([name, priority]) => `${name} ${priority}`).join(', ');
      this.#say(`objectives: ${state.objectives.size}${names === '' ? '' : ` (${names})`}`);
      this.#say(`rewrite rules: ${state.rewrites.length}, models with a priority: ${state.models?.size ?? 0}`);
    }
    for (const note of notes) this.#say(`note: ${note}`);
    for (const right of missing) this.#say(`missing right: ${right}`);
    const live = state.endpoints.filter(({ draining }) => draining !== true).length;
    const readable = !missing.some((right) => /^(list|watch) (pods|inferencepools)/.test(right));
    const serves = pool !== undefined && live > 0 && readable;
    this.#say(serves ? `serves ${counted(live, 'endpoint')}` : `serves nothing: ${this.#obstacle(pool, live)}`);
    return { lines: this.#lines, serves };
  }

  #say(line: string): void {
    this.#lines.push(line);
  }

  #obstacle(pool: object | undefined, live: number): string {
    if (pool === undefined) return 'there is no pool';
    return live === 0 ? 'no pod takes requests' : 'pods or pool may not be watched';
  }

  async #pool(): Promise<PoolRecord | ClusterView['pool']> {
    const { poolName, poolGroup, endpointSelector, endpointTargetPorts: ports } = this.#flags;
    if (endpointSelector) {
      this.#say(`selector ${endpointSelector}, ports ${ports.join(', ')}`);
      return { ports, appProtocol: undefined, deleting: false, ownLabels: {} };
    }
    const kind = poolKind(poolGroup)!;
    const path = `${kindPath(kind, this.#namespace)}/${encodeURIComponent(poolName)}`;
    try {
      const read = poolGroup === POOL_GROUP ? readPool : readLegacyPool;
      const pool = read(await this.#client.request('GET', path));
      if (pool instanceof ObjectProblem) {
        this.#say(`pool ${poolName}: ${pool.text}`);
        return undefined;
      }
      const protocol = pool.appProtocol === undefined ? '' : `, appProtocol ${pool.appProtocol}`;
      this.#say(`pool ${poolName}: selector ${pool.labels.selector}, ports ${pool.ports.join(', ')}${protocol}`);
      return pool;
    } catch (error) {
      this.#say(`pool ${poolName}: ${whyNot(error, kind)}`);
      return undefined;
    }
  }

  #tellPods(pods: readonly PodRecord[], ports: readonly number[]): void {
    const out = pods.flatMap((pod) => {
      const why = whyOut(pod, ports);
      return why === undefined ? [] : [`${pod.name}: ${why}`];
    });
    this.#say(`pods: ${pods.length} selected, ${pods.length - out.length} take requests`);
    for (const line of out.slice(0, PODS_NAMED_MAX)) this.#say(`  out: ${line}`);
    if (out.length > PODS_NAMED_MAX) this.#say(`  and ${out.length - PODS_NAMED_MAX} more`);
  }

  async #optional() {
    const first = async <Value>(kinds: readonly Kind[], read: (object: unknown) => Value | ObjectProblem) => {
      for (const kind of kinds) {
        const found = await this.#listOptional(kind, read);
        if (found !== undefined) return found;
      }
      this.#say(
        `${[...new Set(kinds.map(resourceName))].join(', ')}: the cluster does not have them, or they may not be read`,
      );
      return [];
    };
    return {
      objectives: await first(OPTIONAL_KINDS.objectives, readObjective),
      rewrites: await first(OPTIONAL_KINDS.rewrites, readRewrite),
      models: await first(OPTIONAL_KINDS.models, readModel),
    };
  }

  async #listOptional<Value>(kind: Kind, read: (object: unknown) => Value | ObjectProblem) {
    try {
      return await this.#list(kind, read);
    } catch (error) {
      if (error instanceof ApiFailure && (error.status === 404 || error.status === 403)) return undefined;
      throw error;
    }
  }

  /** Objects of a kind, page by page; those that cannot be read are named. */
  async #list<Value>(kind: Kind, read: (object: unknown) => Value | ObjectProblem, selector = ''): Promise<Value[]> {
    const values: Value[] = [];
    let next = '';
    do {
      const selected = `labelSelector=${encodeURIComponent(selector)}`;
      const query = `limit=${OBJECTS_MAX}&${selected}&continue=${encodeURIComponent(next)}`;
      const path = `${kindPath(kind, this.#namespace)}?${query}`;
      const page = (await this.#client.request('GET', path)) as ObjectPage;
      for (const object of page.items ?? []) {
        const value = read(object);
        if (value instanceof ObjectProblem)
          this.#say(`${kind.name} ${object.metadata?.name} is left out: ${value.text}`);
        else values.push(value);
      }
      next = page.metadata?.continue ?? '';
    } while (next !== '');
    return values;
  }

  /** Verbs and resources that the picker's identity may not use. */
  async #missingRights(): Promise<string[]> {
    const { endpointSelector, poolGroup, haEnableLeaderElection, metricsEndpointAuth } = this.#flags;
    const wanted: (readonly [Kind, readonly string[]])[] = [[POD, ['list', 'watch']]];
    if (!endpointSelector) wanted.push([poolKind(poolGroup)!, ['get', 'list', 'watch']]);
    if (haEnableLeaderElection) wanted.push([LEASE, ['get', 'create', 'update']]);
    const missing: string[] = [];
    for (const [kind, verbs] of wanted) {
      for (const verb of verbs) {
        if (!(await this.#allowed(kind, verb)))
          missing.push(`${verb} ${resourceName(kind)} in namespace ${this.#namespace}`);
      }
    }
    if (metricsEndpointAuth) missing.push(...(await new AccessReviews(this.#client).missingRights()));
    return missing;
  }

  async #allowed({ group, plural: resource }: Kind, verb: string): Promise<boolean> {
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const resourceAttributes = { namespace: this.#namespace, group, resource, verb };
    const answer = (await this.#client.request('POST', path, { body: { spec: { resourceAttributes } } })) as {
      readonly status?: { readonly allowed?: boolean };
    };
    return answer.status?.allowed === true;
  }
}

interface ObjectPage {
  readonly items?: readonly { readonly metadata?: { readonly name?: string } }[];
  readonly metadata?: { readonly continue?: string };
}

function whyNot(error: unknown, kind: Kind): string {
  if (!(error instanceof ApiFailure)) throw error;
  if (error.status === 404) return `there is none, or the cluster does not have ${resourceName(kind)}`;
  if (error.status === 0) throw error;
  return error.message;
}

/** Reason why a pod takes no requests; undefined = it takes them. */
function whyOut(pod: PodRecord, ports: readonly number[]): string | undefined {
  if (pod.ended) return 'it has ended';
  if (pod.ip === undefined) return 'it has no IP yet';
  if (pod.deleting) return 'it is being deleted';
  if (!pod.ready) return 'it is not ready';
  if (pod.drainMark) return 'it is marked with pointsman/drain';
  const active = pod.activePorts;
  if (active !== undefined && !ports.some((port) => active.includes(port)))
    return 'active-ports names no port of the pool';
  return undefined;
}
