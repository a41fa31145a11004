import type { HealthSource, ServingStatus } from '../ingress/transport.js';

/** Conditions of readiness. */
export interface ReadinessInputs {
  /** Whether discovery has loaded once. A pool without endpoints is ready: its requests get a clear 503. */
  readonly discoveryLoaded: boolean;
  /** Obstacle of discovery in words; empty = none in particular. */
  readonly discoveryAwaits: () => string;
  /** Reason why there is no pool, in words; undefined = there is one. */
  readonly poolAbsent: string | undefined;
  /** Reason why no configured parser can speak with the pool's servers, in words; undefined = one can. */
  readonly protocolMisfit: string | undefined;
  /** Whether this replica leads, or none has to. */
  readonly leader: boolean;
  /** Whether all shards listen and have warmed up. */
  readonly shardsReady: boolean;
  /** Whether the process is stopping: streams finish, new ones are refused. */
  readonly draining: boolean;
}

/**
 * Service name of the liveness probe of kubelets. Draining and discovery do not matter. A hanging control thread cannot
 * answer, which the kubelet's time-out detects.
 */
const LIVENESS = 'liveness';
/** Service names of the readiness probe: Envoy sends the service that it uses, others the empty name. */
const READINESS = [
  '',
  'readiness',
  'envoy.service.ext_proc.v3.ExternalProcessor',
  // The probes of llm-d-router's charts and of GIE's manifests ask for this name.
  'inference-extension',
];
const AT_THE_START: ReadinessInputs = {
  discoveryLoaded: false,
  discoveryAwaits: () => '',
  poolAbsent: undefined,
  protocolMisfit: undefined,
  leader: true,
  shardsReady: false,
  draining: false,
};

/** Health of the process for gRPC health checks. */
export class HealthState implements HealthSource {
  #inputs = AT_THE_START;
  readonly #watchers = new Set<() => void>();

  /** Changes some inputs. Watchers are called when the readiness changes. */
  update(inputs: Partial<ReadinessInputs>): void {
    const before = this.ready;
    this.#inputs = { ...this.#inputs, ...inputs };
    if (before === this.ready) return;
    for (const changed of [...this.#watchers]) changed();
  }

  get ready(): boolean {
    return this.unreadyReasons().length === 0;
  }

  /** The inputs that keep the process from being ready, in words. */
  unreadyReasons(): string[] {
    const { discoveryLoaded, poolAbsent, protocolMisfit, leader, shardsReady, draining } = this.#inputs;
    const reasons: string[] = [];
    if (!discoveryLoaded) {
      const awaited = this.#inputs.discoveryAwaits();
      reasons.push(awaited === '' ? 'discovery has not loaded yet' : `discovery waits for ${awaited}`);
    }
    if (poolAbsent !== undefined) reasons.push(poolAbsent);
    if (protocolMisfit !== undefined) reasons.push(protocolMisfit);
    if (!leader) reasons.push('another replica is the leader');
    if (!shardsReady) reasons.push('not all shards are listening');
    if (draining) reasons.push('the process is draining');
    return reasons;
  }

  status(service: string): ServingStatus {
    if (service === LIVENESS) return 'SERVING';
    if (READINESS.includes(service)) return this.ready ? 'SERVING' : 'NOT_SERVING';
    return 'SERVICE_UNKNOWN';
  }

  services(): readonly string[] {
    return [...READINESS, LIVENESS];
  }

  watch(changed: () => void): () => void {
    // Each call makes its own entry, also when one function watches twice.
    const entry = () => changed();
    this.#watchers.add(entry);
    return () => this.#watchers.delete(entry);
  }
}
