import type { HealthSource, ServingStatus } from '../../ingress/transport.js';

/** A shard's copy of the process's health, updated by messages of the control thread. */
export class MirroredHealth implements HealthSource {
  #statuses: ReadonlyMap<string, ServingStatus>;
  readonly #watchers = new Set<() => void>();

  constructor(statuses: readonly (readonly [string, ServingStatus])[]) {
    this.#statuses = new Map(statuses);
  }

  replace(statuses: readonly (readonly [string, ServingStatus])[]): void {
    this.#statuses = new Map(statuses);
    for (const changed of [...this.#watchers]) changed();
  }

  status(service: string): ServingStatus {
    return this.#statuses.get(service) ?? 'SERVICE_UNKNOWN';
  }

  services(): readonly string[] {
    return [...this.#statuses.keys()];
  }

  watch(changed: () => void): () => void {
    this.#watchers.add(changed);
    return () => this.#watchers.delete(changed);
  }
}
