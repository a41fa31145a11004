import { createFileDiscovery } from '../../pool/discovery/file.js';
import type { Discovery, PoolState } from '../../pool/endpoint.js';
import type { JobPool } from '../jobs/job-pool.js';
import type { Part } from '../part.js';
import type { PickerOptions } from '../picker-options.js';

export interface PoolDiscoveryOptions {
  readonly discovery: Discovery;
  readonly apply: (state: PoolState) => void;
  /** Called when the first state has been applied. */
  readonly loaded: () => void;
  readonly report: (problem: string) => void;
}

/** Feeds the pool from discovery, from the first load on. */
export class PoolDiscovery implements Part {
  readonly #options: PoolDiscoveryOptions;

  constructor(options: PoolDiscoveryOptions) {
    this.#options = options;
  }

  /** @throws with one line when discovery has no usable first state */
  async start(): Promise<void> {
    const { discovery, apply, loaded, report } = this.#options;
    apply(await discovery.start(apply, report));
    loaded();
  }

  stop(): Promise<void> {
    return this.#options.discovery.stop();
  }
}

/** Makes the discovery of the configuration. */
export function createDiscovery({ configuration }: PickerOptions, jobs: JobPool): Discovery {
  return createFileDiscovery({
    ...configuration.discovery!,
    read: (text, path) => jobs.readEndpoints(text, path),
  });
}
