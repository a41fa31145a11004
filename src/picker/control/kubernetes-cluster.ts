import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { AccessReviews } from '../../kubernetes/access-review.js';
import { LeaderElection } from '../../kubernetes/lease.js';
import type { Logger } from '../../operations/log.js';
import { addKubernetesMetrics } from '../../operations/metrics/kubernetes-metrics.js';
import type { MetricsExposition } from '../../operations/telemetry/exposition.js';
import type { MayRead } from '../../operations/telemetry/page-access.js';
import { type EndpointSource, KubernetesDiscovery } from '../../pool/discovery/kubernetes/kubernetes.js';
import type { Part } from '../part.js';
import type { ClusterConnection } from './cluster-connection.js';

/** Flags about the cluster. */
export interface KubernetesSettings {
  /** Undefined = that of the mounted service account or of the kubeconfig's context, else `default`. */
  readonly namespace: string | undefined;
  readonly source: EndpointSource;
  /** Name of the pool in metrics and in the Lease. */
  readonly poolName: string;
  /** Whether this process takes part in the election of a leader. */
  readonly election: boolean;
  /** Whether the API server is asked who may read the metrics. */
  readonly reviews: boolean;
  readonly podName: string | undefined;
}

/** Time between two tries to find out which rights are missing. */
const RIGHTS_AGAIN_MS = 30_000;

/** Reflectors of a pool in its cluster, and requests of the picker there. Loaded in the Kubernetes modes only. */
export class KubernetesCluster implements Part {
  readonly discovery: KubernetesDiscovery;
  readonly #settings: KubernetesSettings;
  readonly #log: Logger;
  readonly #connection: ClusterConnection;
  readonly #reviews: AccessReviews | undefined;
  readonly #namespace: string;
  #election: LeaderElection | undefined;
  #rights: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(settings: KubernetesSettings, connection: ClusterConnection, log: Logger) {
    this.#settings = settings;
    this.#log = log;
    const { client, watches } = connection;
    this.#connection = connection;
    this.#namespace = settings.namespace ?? connection.namespace;
    this.#reviews = settings.reviews ? new AccessReviews(client) : undefined;
    this.discovery = new KubernetesDiscovery({
      client,
      watches,
      namespace: this.#namespace,
      source: settings.source,
      inform: (message) => log.info({ part: 'kubernetes' }, message),
    });
  }

  /** Decides who may read the metrics; undefined = every client that reaches the port. */
  get mayRead(): MayRead | undefined {
    const reviews = this.#reviews;
    return reviews && (({ token, path, verb }) => reviews.mayRead(token, path, verb));
  }

  get elects(): boolean {
    return this.#settings.election;
  }

  start(): void {
    if (this.#reviews !== undefined) void this.#nameMissingRights(this.#reviews);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#rights);
  }

  /** The election of a leader: it starts with the part, and the lease is released before streams drain. */
  election(changed: (leader: boolean) => void): Part | undefined {
    if (!this.#settings.election) return undefined;
    const namespace = this.#namespace;
    const election = new LeaderElection({
      client: this.#connection.client,
      namespace,
      // The name, times and shape of llm-d-router's lease: replicas of both can stand side by side in an upgrade.
      name: `epp-${namespace}-${this.#settings.poolName}.llm-d.ai`,
      identity: `${this.#settings.podName ?? hostname()}_${randomUUID()}`,
      changed: (leader) => {
        this.#log.info({ part: 'kubernetes' }, leader ? 'this replica leads' : 'this replica does not lead any more');
        changed(leader);
      },
      report: (problem) => this.#report(problem),
    });
    this.#election = election;
    let released: Promise<void> | undefined;
    const release = () => {
      released ??= election.stop();
      return released;
    };
    return { start: () => election.start(), drain: release, stop: release };
  }

  addMetrics(exposition: MetricsExposition): void {
    const leader = () => (this.#election === undefined ? undefined : this.#election.leader);
    addKubernetesMetrics(exposition, {
      discovery: this.discovery,
      reviews: () => this.#reviews?.counts,
      leader,
    });
  }

  async #nameMissingRights(reviews: AccessReviews): Promise<void> {
    try {
      const missing = await reviews.missingRights();
      if (missing.length === 0 || this.#stopped) return;
      this.#report(
        `nobody can read the metrics: the service account may not ${missing.join(' and ')}; ` +
          'bind the ClusterRole of deploy/rbac, or set --metrics-endpoint-auth=false',
      );
    } catch {
      // The API server does not answer: discovery reports it.
      if (this.#stopped) return;
      this.#rights = setTimeout(() => void this.#nameMissingRights(reviews), RIGHTS_AGAIN_MS).unref();
    }
  }

  #report(problem: string): void {
    this.#log.error({ part: 'kubernetes' }, problem);
  }
}
