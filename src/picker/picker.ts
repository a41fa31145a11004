import type { PoolMemory } from '../core/memory.js';
import type { PickerOptions } from './picker-options.js';
import { PickerParts } from './picker-parts.js';
import type { ShardPool } from './shards/shard-pool.js';

/** A picker in this process: the control thread here, shards as worker threads. */
export class Picker {
  readonly #parts: PickerParts;

  constructor(options: PickerOptions) {
    this.#parts = new PickerParts(options);
  }

  get memory(): PoolMemory {
    return this.#parts.memory;
  }

  get shards(): ShardPool {
    return this.#parts.shards;
  }

  /** Requests so far of all pools, answered and refused. */
  get requests(): number {
    return this.#parts.requests;
  }

  /**
   * Loads the endpoints, opens the ports and starts the shards.
   * @returns the ports
   * @throws with one line when a port is busy or discovery has no usable first state
   */
  async start(): Promise<{ grpcPort: number; healthPort: number; metricsPort: number }> {
    const { list, ports, metrics } = this.#parts;
    await list.start();
    return { grpcPort: ports.grpc, healthPort: ports.health, metricsPort: metrics.port };
  }

  /** Reads the configuration file and the certificate again; what is unusable changes nothing and is logged. */
  reload(): Promise<void> {
    return this.#parts.reload();
  }

  /** Not ready at once; streams finish within `drainMs`; then everything is closed. May be called again to hurry. */
  stop(drainMs: number): Promise<void> {
    return this.#parts.list.stop(drainMs);
  }
}
