import { ClusterAccess } from '../../dist/src/kubernetes/access.js';
import { ApiClient } from '../../dist/src/kubernetes/api-client.js';
import { POD } from '../../dist/src/kubernetes/kinds.js';
import type { ObjectProblem } from '../../dist/src/kubernetes/object-copy.js';
import { Reflector, type ReflectorOptions, type SelectedLabels } from '../../dist/src/kubernetes/reflector.js';
import type { Cluster } from './cluster.ts';

/** Selects the pods of the tests. */
export const VLLM: SelectedLabels = { selector: 'app=vllm', accepts: ({ app }) => app === 'vllm' };

/** What the tests keep of an object. */
export interface Named {
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
}

export function readNamed(object: unknown): Named | ObjectProblem {
  const { metadata } = object as { metadata: { name: string; uid: string; labels?: Record<string, string> } };
  return { name: metadata.name, uid: metadata.uid, labels: metadata.labels ?? {} };
}

/** A plain server without credentials, or the server of a cluster with its token. */
export function clientOf(server: Cluster | string, token?: string): ApiClient {
  const plain = typeof server === 'string';
  return new ApiClient(
    new ClusterAccess({
      server: plain ? server : server.access.url,
      namespace: undefined,
      ca: plain ? undefined : { text: server.access.ca },
      serverName: undefined,
      insecure: false,
      token: token ?? (plain ? undefined : server.access.token),
      tokenFile: undefined,
      certificate: undefined,
      key: undefined,
      exec: undefined,
    }),
  );
}

/** A reflector with a record of everything that it has told. */
export class ObservedReflector {
  readonly reflector: Reflector<Named>;
  readonly client: ApiClient;
  /** `+name` for a value that is new or differs, `-name` for one that is gone; batches in between are `|`. */
  readonly told: string[] = [];
  readonly reports: string[] = [];
  /** Fewest objects since the first state. */
  least = Number.POSITIVE_INFINITY;

  constructor(client: ApiClient, options: Partial<ReflectorOptions<Named>> = {}) {
    this.client = client;
    this.reflector = new Reflector<Named>({
      client,
      kind: POD,
      namespace: 'llm',
      backoffMsMax: 200,
      read: readNamed,
      report: (problem) => this.reports.push(problem),
      changed: (set, removed) => {
        this.told.push(...removed.map(({ name }) => `-${name}`), ...set.map(({ name }) => `+${name}`), '|');
        this.least = Math.min(this.least, this.reflector.size);
      },
      ...options,
    });
    this.reflector.start();
  }

  get names(): string[] {
    return this.reflector
      .values()
      .map(({ name }) => name)
      .sort();
  }

  stop(): void {
    this.reflector.stop();
    this.client.close();
  }
}
