import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';

/** A Kubernetes object as it stands in JSON. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly generation?: number;
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
  };
  // biome-ignore lint/suspicious/noExplicitAny: the tests read fields of every kind
  readonly [field: string]: any;
}

export interface ClusterAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: JSON of every kind
  readonly body: any;
  readonly headers: NodeJS.Dict<string | string[]>;
}

export interface ClusterAccess {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
}

const tools = fileURLToPath(new URL('../../.tools/kubernetes/', import.meta.url));

/** Releases of the Gateway API Inference Extension whose CRDs scripts/install-kubernetes.sh installs. */
export type CrdRelease = 'v0.5.1' | 'v1.0.0' | 'v1.5.0' | 'v1.6.0';

/** Requests with one identity to an API server, made without the code under test. */
export class Cluster {
  readonly access: ClusterAccess;
  readonly #agent: Agent;

  constructor(access: ClusterAccess) {
    this.access = access;
    this.#agent = new Agent({ keepAlive: true, ca: access.ca, maxSockets: 16 });
  }

  /** The same server with another token. */
  as(token: string): Cluster {
    return new Cluster({ ...this.access, token });
  }

  request(method: string, path: string, body?: unknown, contentType = 'application/json'): Promise<ClusterAnswer> {
    const payload = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const sent = request(this.access.url + path, {
        agent: this.#agent,
        method,
        timeout: 30_000,
        headers: {
          authorization: `Bearer ${this.access.token}`,
          accept: 'application/json',
          ...(payload === undefined
            ? {}
            : { 'content-type': contentType, 'content-length': Buffer.byteLength(payload) }),
        },
      });
      sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no answer within 30 s`)));
      sent.on('error', reject);
      sent.on('response', (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(pieces).toString('utf8');
          const json = response.headers['content-type']?.startsWith('application/json');
          resolve({
            status: response.statusCode!,
            body: json && text !== '' ? JSON.parse(text) : text,
            headers: response.headers,
          });
        });
      });
      sent.end(payload);
    });
  }

  /** @throws when the answer is not 2xx, unless its status is among `also` */
  async demand(method: string, path: string, body?: unknown, contentType?: string, also: readonly number[] = []) {
    const answer = await this.request(method, path, body, contentType);
    if ((answer.status < 200 || answer.status > 299) && !also.includes(answer.status)) {
      throw new Error(`${method} ${path}: ${answer.status} ${answer.body?.message ?? JSON.stringify(answer.body)}`);
    }
    return answer.body;
  }

  /** Creates an object in its namespace; tries again while a CRD that was just installed answers 404 or 429. */
  async create(object: Omit<KubernetesObject, 'metadata'> & { metadata: object }): Promise<KubernetesObject> {
    const path = collectionPath(object as KubernetesObject);
    for (let attempt = 0; ; attempt++) {
      const { status, body } = await this.request('POST', path, object);
      if (status === 201) return body;
      if ((status !== 404 && status !== 429) || attempt === 50)
        throw new Error(`POST ${path}: ${status} ${body.message}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Server-side apply with strict validation, as `kubectl apply --server-side` does it. `object` may be YAML text. */
  apply(object: KubernetesObject | string): Promise<ClusterAnswer> {
    const read = typeof object === 'string' ? (parseAllDocuments(object)[0]!.toJS() as KubernetesObject) : object;
    const path = `${objectPath(read)}?fieldManager=test&fieldValidation=Strict&force=true`;
    const text = typeof object === 'string' ? object : JSON.stringify(object);
    return this.request('PATCH', path, text, 'application/apply-patch+yaml');
  }

  get(reference: Reference): Promise<KubernetesObject> {
    return this.demand('GET', objectPath(reference));
  }

  mergePatch(reference: Reference, patch: object, subresource = ''): Promise<KubernetesObject> {
    return this.demand('PATCH', objectPath(reference) + subresource, patch, 'application/merge-patch+json');
  }

  async replace(object: KubernetesObject): Promise<KubernetesObject> {
    return this.demand('PUT', objectPath(object), object);
  }

  /** Deletes an object; one that is gone already is no error. */
  async delete(reference: Reference, options: object = {}): Promise<void> {
    await this.demand('DELETE', objectPath(reference), { ...options }, undefined, [404]);
  }

  /** Makes a namespace with a name of its own. */
  async makeNamespace(prefix = 'test'): Promise<string> {
    const name = `${prefix}-${Math.random().toString(36).slice(2, 10)}`;
    await this.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    return name;
  }

  /** Installs CRDs and waits until they are served. Definitions that are there already are left as they are. */
  async installCrds(definitions: readonly KubernetesObject[]): Promise<void> {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    for (const definition of definitions) await this.demand('POST', path, definition, undefined, [409]);
    for (const definition of definitions) await this.#served(definition);
  }

  async #served({ metadata, spec }: KubernetesObject): Promise<void> {
    const [version] = spec.versions.filter((one: { served: boolean }) => one.served);
    for (let attempt = 0; attempt < 300; attempt++) {
      const { status } = await this.request('GET', `/apis/${spec.group}/${version.name}/${spec.names.plural}`);
      if (status === 200) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`the CRD ${metadata.name} was not served within 30 s`);
  }

  /** Token of a ServiceAccount, which is made when it does not exist. */
  async serviceAccountToken(namespace: string, name: string): Promise<string> {
    const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    await this.demand('POST', accounts, { metadata: { name } }, undefined, [409]);
    const { status } = await this.demand('POST', `${accounts}/${name}/token`, { spec: { expirationSeconds: 3600 } });
    return status.token;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** CRDs of a release of the Gateway API Inference Extension, all or those of these kinds. */
export function gieCrds(release: CrdRelease, ...kinds: readonly string[]): KubernetesObject[] {
  const text = readFileSync(join(tools, 'crds', `${release}.yaml`), 'utf8');
  const all = parseAllDocuments(text)
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((one): one is KubernetesObject => one !== null);
  return kinds.length === 0 ? all : all.filter(({ spec }) => kinds.includes(spec.names.kind));
}

/** CRDs of other projects that the charts make objects of: HTTPRoute and ServiceMonitor. */
export function chartCrds(): KubernetesObject[] {
  const files = ['gateway.networking.k8s.io_httproutes.yaml', 'monitoring.coreos.com_servicemonitors.yaml'];
  return files.map((file) => parseAllDocuments(readFileSync(join(tools, 'crds', file), 'utf8'))[0]!.toJS());
}

export type Reference = Pick<KubernetesObject, 'apiVersion' | 'kind'> & {
  readonly metadata: { readonly name: string; readonly namespace?: string };
};

/** Kinds without a namespace. */
const CLUSTER_KINDS = [
  ...['Namespace', 'Node', 'CustomResourceDefinition', 'ClusterRole', 'ClusterRoleBinding'],
  ...['FlowSchema', 'PriorityLevelConfiguration'],
];

/** Path of the collection that an object belongs to. */
export function collectionPath({ apiVersion, kind, metadata }: Reference): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const namespace = CLUSTER_KINDS.includes(kind) ? '' : `/namespaces/${metadata.namespace ?? 'default'}`;
  return `${root}${namespace}/${plural(kind)}`;
}

export function objectPath(reference: Reference): string {
  return `${collectionPath(reference)}/${reference.metadata.name}`;
}

function plural(kind: string): string {
  const lower = kind.toLowerCase();
  if (/(s|x|ch)$/.test(lower)) return `${lower}es`;
  return lower.endsWith('cy') ? `${lower.slice(0, -1)}ies` : `${lower}s`;
}
