import { createFileDiscovery } from '../../pool/discovery/file.js';
import type { Discovery, PoolState } from '../../pool/endpoint.js';
import type { JobPool } from '../jobs/job-pool.js';
import type { Part } from '../part.js';
import type { PickerOptions } from '../picker-options.js';

export interface PoolDiscoveryOptions {
  readonly discovery: Discovery;
  readonly apply: (state: PoolState) => void;
  /** The first state has been applied. */
  readonly loaded: () => void;
  readonly report: (problem: string) => void;
}

/** Carries what discovery says to the pool, from the first load on. */
export class PoolDiscovery implements Part {
  readonly #options: PoolDiscoveryOptions;

  constructor(options: PoolDiscoveryOptions) {
    this.#options = options;
  }

  /** @throws with one line when discovery has nothing usable to start with */
  async start(): Promise<void> {
    const { discovery, apply, loaded, report } = this.#options;
    apply(await discovery.start(apply, report));
    loaded();
  }

  stop(): Promise<void> {
    return this.#options.discovery.stop();
  }
}

/** Makes the discovery that the configuration names. */
export function createDiscovery({ configuration }: PickerOptions, jobs: JobPool): Discovery {
  return createFileDiscovery({
    ...configuration.discovery!,
    read: (text, path) => jobs.readEndpoints(text, path),
  });
}
