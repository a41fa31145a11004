import type { MetricsExposition } from '../../operations/telemetry/exposition.js';
import type { Part } from '../part.js';
import type { ClusterConnection } from './cluster-connection.js';

/**
 * Cluster of a process: it is connected to for the first pool that comes from it, and nothing of it is loaded before.
 */
export class ProcessCluster implements Part {
  readonly #shared: boolean;
  #connection: ClusterConnection | undefined;
  /** Pages that show the connection after its start. */
  #pages: MetricsExposition[] = [];

  /** @param shared whether all pools of a namespace share its watches */
  constructor(shared: boolean) {
    this.#shared = shared;
  }

  /** Rejects with one line when no API server is known; the next pool tries again. */
  async connect(): Promise<ClusterConnection> {
    const { ClusterConnection } = await import('./cluster-connection.js');
    if (this.#connection === undefined) {
      this.#connection = new ClusterConnection(this.#shared);
      for (const page of this.#pages.splice(0)) this.#connection.addMetrics(page);
    }
    return this.#connection;
  }

  addMetrics(exposition: MetricsExposition): void {
    if (this.#connection === undefined) this.#pages.push(exposition);
    else this.#connection.addMetrics(exposition);
  }

  stop(): void {
    this.#connection?.client.close();
  }
}
