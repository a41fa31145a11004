import type { Endpoint, PoolRules, PoolUpdate } from '../../dist/src/contract/endpoint.js';
import { Watches } from '../../dist/src/kubernetes/watches.js';
import { type EndpointSource, KubernetesDiscovery } from '../../dist/src/pool/discovery/kubernetes/kubernetes.js';
import type { Cluster } from './cluster.ts';
import { POOL_GROUP } from './objects.ts';
import { clientOf } from './observed-reflector.ts';

/** A discovery, and the state that its updates add up to. */
export class ObservedDiscovery {
  readonly discovery: KubernetesDiscovery;
  readonly watches: Watches;
  readonly endpoints = new Map<string, Endpoint>();
  readonly updates: PoolUpdate[] = [];
  readonly reports: string[] = [];
  readonly informed: string[] = [];
  rules: PoolRules | undefined;
  /** Fewest endpoints since the first state. */
  least = Number.POSITIVE_INFINITY;
  readonly #client;

  constructor(cluster: Cluster, namespace: string, source: Partial<EndpointSource> = {}, token?: string) {
    this.#client = clientOf(cluster, token);
    this.watches = new Watches(this.#client, false);
    this.discovery = new KubernetesDiscovery({
      client: this.#client,
      watches: this.watches,
      namespace,
      source: { kind: 'pool', name: 'pool', group: POOL_GROUP, ...source } as EndpointSource,
      inform: (message) => this.informed.push(message),
    });
    void this.discovery.start(
      (update) => this.#take(update),
      (problem) => this.reports.push(problem),
    );
  }

  #take(update: PoolUpdate): void {
    this.updates.push(update);
    if ('endpoints' in update) {
      this.endpoints.clear();
      for (const endpoint of update.endpoints) this.endpoints.set(endpoint.id, endpoint);
      this.rules = update;
    } else {
      for (const id of update.removed) this.endpoints.delete(id);
      for (const endpoint of update.set) this.endpoints.set(endpoint.id, endpoint);
      this.rules = update.rules ?? this.rules;
    }
    this.least = Math.min(this.least, this.endpoints.size);
  }

  /** `pod-rank-0:8000`, with `draining` where no requests are taken. */
  get shown(): string {
    return [...this.endpoints.values()]
      .map(({ name, port, draining }) => `${name}:${port}${draining ? ' draining' : ''}`)
      .sort()
      .join(', ');
  }

  async stop(): Promise<void> {
    await this.discovery.stop();
    this.#client.close();
  }
}
