import type { Discovery, PoolRules, PoolUpdate } from '../../contract/endpoint.js';
import type { HealthState } from '../../operations/health.js';
import { createFileDiscovery } from '../../pool/discovery/file.js';
import { parsersFor } from '../../request/dialects.js';
import type { JobPool } from '../jobs/job-pool.js';
import type { Part } from '../part.js';
import type { PickerOptions } from '../picker-options.js';

export interface PoolDiscoveryOptions {
  readonly discovery: Discovery;
  readonly apply: (update: PoolUpdate) => void;
  /** Called with the facts of the pool that readiness needs. */
  readonly health: Pick<HealthState, 'update'>;
  /** Parsers of the running configuration. */
  readonly parsers: () => readonly string[];
  readonly report: (problem: string) => void;
}

/** Feeds the pool from discovery, from the first load on. */
export class PoolDiscovery implements Part {
  readonly #options: PoolDiscoveryOptions;
  #misfit: string | undefined;

  constructor(options: PoolDiscoveryOptions) {
    this.#options = options;
  }

  /** @throws with one line when discovery has no usable first state */
  async start(): Promise<void> {
    const { discovery, report, health } = this.#options;
    const first = await discovery.start((update) => this.#take(update), report);
    if (first !== undefined) this.#take(first);
    else health.update({ discoveryAwaits: () => discovery.awaited ?? '' });
  }

  stop(): Promise<void> {
    return this.#options.discovery.stop();
  }

  #take(update: PoolUpdate): void {
    const { apply, health } = this.#options;
    apply(update);
    const rules = 'endpoints' in update ? update : update.rules;
    health.update({ discoveryLoaded: true, ...(rules === undefined ? {} : this.#fitness(rules)) });
  }

  #fitness({ absent, appProtocol }: PoolRules) {
    const parsers = this.#options.parsers();
    const fits = appProtocol === undefined || parsersFor(appProtocol, parsers).length > 0;
    const protocolMisfit = fits
      ? undefined
      : `the pool's appProtocol is ${appProtocol}, and none of the parsers ${parsers.join(', ')} speaks it; ` +
        'add one to requestHandler.parsers, or change the InferencePool';
    if (protocolMisfit !== undefined && protocolMisfit !== this.#misfit) this.#options.report(protocolMisfit);
    this.#misfit = protocolMisfit;
    return { poolAbsent: absent, protocolMisfit };
  }
}

/** Discovery of a process that has no pool of its own. */
const NO_ENDPOINTS: Discovery = {
  start: async () => ({ endpoints: [], objectives: new Map(), rewrites: [] }),
  stop: async () => undefined,
};

/** Makes the discovery that the flags or the configuration name. */
export function createDiscovery({ configuration, kubernetes, hasOwnPool }: PickerOptions, jobs: JobPool): Discovery {
  if (!hasOwnPool) return NO_ENDPOINTS;
  if (kubernetes !== undefined) return kubernetes.discovery;
  return createFileDiscovery({
    ...configuration.discovery!,
    read: (text, path) => jobs.readEndpoints(text, path),
  });
}
