import { type AccessOptions, clusterAccess } from '../../kubernetes/access.js';
import { ApiClient } from '../../kubernetes/api-client.js';
import { Watches } from '../../kubernetes/watches.js';
import { addClusterMetrics, RequestCounts } from '../../operations/metrics/kubernetes-metrics.js';
import type { MetricsExposition } from '../../operations/telemetry/exposition.js';

/** Requests and watches of the process at its API server. Loaded in the Kubernetes modes only. */
export class ClusterConnection {
  readonly client: ApiClient;
  readonly watches: Watches;
  /** Namespace of a pool that names none. */
  readonly namespace: string;
  readonly #requests = new RequestCounts();

  /**
   * @param shared whether all pools of a namespace share its watches
   * @throws Error with one line when no API server is known
   */
  constructor(shared: boolean, options: AccessOptions = {}) {
    const access = clusterAccess(options);
    this.client = new ApiClient(access, (path, status) => this.#requests.add(path, status));
    this.watches = new Watches(this.client, shared);
    this.namespace = access.namespace ?? 'default';
  }

  addMetrics(exposition: MetricsExposition): void {
    addClusterMetrics(exposition, { requests: this.#requests, watches: this.watches });
  }
}
