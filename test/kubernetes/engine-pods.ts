import { type ModelServer, startModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { eventually } from '../tools/gateway/client.ts';
import type { Kubelet, PodShape } from './kubelet.ts';

export interface EnginePodsOptions {
  /** An engine listens on each of these ports of a pod. */
  readonly ports: readonly number[];
  /** Time in which a deleted pod still takes requests: a preStop hook that sleeps. */
  readonly preStopMs: number;
  /** Time from the deletion to the end of the containers at the latest. */
  readonly graceSeconds: number;
  /** Simulated time over real time; below 1, streams last longer. */
  readonly speedup: number;
}

/** An engine has written its last bytes some turns of the event loop after its last sequence is done. */
const LAST_BYTES_MS = 50;

/** Pods of one namespace together with the simulated engines that run in them, on the loopback address of each pod. */
export class EnginePods {
  readonly #kubelet: Kubelet;
  readonly #options: EnginePodsOptions;
  /** Engines by address of their pod. */
  readonly #engines = new Map<string, readonly ModelServer[]>();
  /** Pods whose streams did not end within the grace period. */
  readonly cutOff: string[] = [];

  constructor(kubelet: Kubelet, options: EnginePodsOptions) {
    this.#kubelet = kubelet;
    this.#options = options;
  }

  /** Starts the engines of a new pod, then reports the pod as ready. */
  async run(name: string, ip: string, labels: Record<string, string>): Promise<void> {
    await this.#start(ip);
    await this.#kubelet.run(name, { ...this.#shape(ip), labels });
  }

  /** Gives a pod another address. The engines at the old address end as those of a deleted pod. */
  async move(name: string, from: string, to: string): Promise<void> {
    await this.#start(to);
    await this.#kubelet.status(name, this.#shape(to));
    await this.#end(name, from);
  }

  /** Deletes a pod gracefully; resolves when its object is gone. */
  async delete(name: string, ip: string): Promise<void> {
    await this.#kubelet.delete(name, { gracePeriodSeconds: this.#options.graceSeconds });
    await this.#end(name, ip);
    await this.#kubelet.finish(name);
  }

  /** Generation requests that have arrived at the engines of a pod, or at the one on this port. */
  requests(ip: string, port?: number): number {
    const engines = this.#engines.get(ip)!.filter((engine) => port === undefined || engine.port === port);
    return engines.reduce((sum, engine) => sum + engine.stats().requests, 0);
  }

  /** Ends all engines at once. */
  async stop(): Promise<void> {
    const engines = [...this.#engines.values()].flat();
    this.#engines.clear();
    await Promise.all(engines.map((engine) => engine.stop()));
  }

  #shape(ip: string): PodShape {
    return { ip, containers: [{ name: 'engine', ports: this.#options.ports, id: 'containerd://1' }] };
  }

  async #start(ip: string): Promise<void> {
    const { ports, speedup } = this.#options;
    const started = ports.map((port) => startModelServer({ host: ip, port, engine: { speedup } }));
    this.#engines.set(ip, await Promise.all(started));
  }

  async #end(name: string, ip: string): Promise<void> {
    const { preStopMs, graceSeconds } = this.#options;
    const engines = this.#engines.get(ip)!;
    const idle = () => engines.every((engine) => engine.stats().running + engine.stats().waiting === 0);
    await new Promise((resolve) => setTimeout(resolve, preStopMs));
    const left = graceSeconds * 1000 - preStopMs;
    await eventually(`${name} has no stream`, idle, left).catch(() => this.cutOff.push(name));
    await new Promise((resolve) => setTimeout(resolve, LAST_BYTES_MS));
    this.#engines.delete(ip);
    await Promise.all(engines.map((engine) => engine.stop()));
  }
}
