// One pod: the processes of its containers in a network of their own, their probes and the status that follows.
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster, KubernetesObject } from '../../test/kubernetes/cluster.ts';
import { HOST_ADDRESS, PodNetwork } from './isolation.ts';
import { answers, type Probe } from './probes.ts';

const UNREADY_PERIOD_MS = 500;
const READY_PERIOD_MS = 5_000;
const FAILURES_MAX = 3;
const RESTARTS_MAX = 20;
/** Pods may ask for minutes; nothing here drains that long. */
const GRACE_MS_MAX = 10_000;

export interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath: string } };
  }[];
  readonly readinessProbe?: Probe;
}

/** A program in the place of an image. */
export interface Program {
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface PodServices {
  readonly cluster: Cluster;
  readonly apiServerPort: number;
  readonly ca: string;
  /** Folder of the logs: one file for each container. */
  readonly logs: string;
  /** Folder of what is gone with the run. */
  readonly folder: string;
  programOf(pod: Pod, container: ContainerSpec): Program;
  say(line: string): void;
}

interface Container {
  readonly spec: ContainerSpec;
  child: ChildProcess | undefined;
  ready: boolean;
  failures: number;
  restarts: number;
  probedAt: number;
}

export class Pod {
  readonly object: KubernetesObject;
  readonly name: string;
  readonly namespace: string;
  readonly folder: string;
  readonly serviceAccount: string;
  readonly #services: PodServices;
  readonly #network = new PodNetwork();
  readonly #startedAt = new Date().toISOString();
  readonly #containers: Container[];
  #reported = '';
  #killAt: number | undefined;

  constructor(object: KubernetesObject, services: PodServices) {
    this.object = object;
    this.name = object.metadata.name;
    this.namespace = object.metadata.namespace!;
    this.serviceAccount = object.spec.serviceAccountName ?? 'default';
    this.#services = services;
    this.folder = join(services.folder, `${this.namespace}-${this.name}`);
    this.#containers = object.spec.containers.map((spec: ContainerSpec) => ({
      ...{ spec, child: undefined, ready: false },
      ...{ failures: 0, restarts: 0, probedAt: 0 },
    }));
  }

  get address(): string {
    return this.#network.address;
  }

  get ready(): boolean {
    return this.#containers.every(({ ready }) => ready);
  }

  async start(): Promise<void> {
    const { cluster, ca } = this.#services;
    mkdirSync(join(this.folder, 'account'), { recursive: true });
    const token = await cluster.serviceAccountToken(this.namespace, this.serviceAccount);
    for (const [name, text] of Object.entries({ token, namespace: this.namespace, 'ca.crt': ca }))
      writeFileSync(join(this.folder, 'account', name), text);
    for (const container of this.#containers) this.#launch(container);
  }

  /** Restarts what has ended, probes what is due, and tells the API server when the status is another one. */
  async tick(): Promise<void> {
    for (const container of this.#containers) this.#restart(container);
    await Promise.all(this.#containers.map((container) => this.#probe(container)));
    await this.#report();
  }

  /** Ends the processes: with SIGTERM, after the grace period with SIGKILL. @returns whether all have ended */
  stop(graceSeconds: number): boolean {
    if (this.#killAt === undefined) {
      this.#killAt = performance.now() + Math.min(graceSeconds * 1_000, GRACE_MS_MAX);
      this.#kill('SIGTERM');
    }
    if (performance.now() > this.#killAt) this.#kill('SIGKILL');
    return this.#containers.every(({ child }) => child === undefined);
  }

  /** After `stop`: removes the network. */
  remove(): void {
    this.#network.remove();
  }

  #launch(container: Container): void {
    const { spec } = container;
    const { argv, env } = this.#services.programOf(this, spec);
    const log = openSync(join(this.#services.logs, `${this.name}.${spec.name}.log`), 'a');
    const child = this.#network.spawn(argv, { ...this.#environment(spec), ...env }, join(this.folder, 'account'), log);
    child.once('exit', () => {
      container.child = undefined;
      container.ready = false;
    });
    container.child = child;
  }

  #restart(container: Container): void {
    if (container.child !== undefined || this.#killAt !== undefined || container.restarts === RESTARTS_MAX) return;
    container.restarts += 1;
    this.#services.say(`${this.name}: ${container.spec.name} has ended; started again (${container.restarts})`);
    this.#launch(container);
  }

  async #probe(container: Container): Promise<void> {
    const period = container.ready ? READY_PERIOD_MS : UNREADY_PERIOD_MS;
    if (container.child === undefined || performance.now() - container.probedAt < period) return;
    container.probedAt = performance.now();
    const probe = container.spec.readinessProbe;
    const answered = probe === undefined || (await answers(probe, this.address));
    container.failures = answered ? 0 : container.failures + 1;
    container.ready =
      container.child !== undefined && (answered || (container.ready && container.failures < FAILURES_MAX));
  }

  async #report(): Promise<void> {
    const status = this.#status();
    const state = `${this.ready} ${this.#containers.map(({ restarts }) => restarts)}`;
    if (state === this.#reported) return;
    await this.#services.cluster.mergePatch(this.object, { status }, '/status');
    this.#reported = state;
    this.#services.say(`${this.name} ${this.address} ${this.ready ? 'ready' : 'not ready'}`);
  }

  #status(): object {
    const truth = this.ready ? 'True' : 'False';
    const conditions = Object.entries({
      PodScheduled: 'True',
      Initialized: 'True',
      ContainersReady: truth,
      Ready: truth,
    });
    return {
      phase: 'Running',
      podIP: this.address,
      podIPs: [{ ip: this.address }],
      hostIP: HOST_ADDRESS,
      startTime: this.#startedAt,
      conditions: conditions.map(([type, status]) => ({ type, status, lastTransitionTime: new Date().toISOString() })),
      containerStatuses: this.#containers.map(({ spec, ready, restarts }) => ({
        ...{ name: spec.name, image: spec.image, imageID: spec.image, ready, started: true, restartCount: restarts },
        state: { running: { startedAt: this.#startedAt } },
      })),
    };
  }

  #environment(spec: ContainerSpec): NodeJS.ProcessEnv {
    const fields: Readonly<Record<string, string>> = {
      'metadata.name': this.name,
      'metadata.namespace': this.namespace,
      'status.podIP': this.address,
    };
    const environment: NodeJS.ProcessEnv = {
      PATH: process.env.PATH,
      HOME: this.folder,
      TMPDIR: this.folder,
      HOSTNAME: this.name,
      KUBERNETES_SERVICE_HOST: HOST_ADDRESS,
      KUBERNETES_SERVICE_PORT: String(this.#services.apiServerPort),
    };
    for (const { name, value, valueFrom } of spec.env ?? []) {
      const path = valueFrom?.fieldRef?.fieldPath;
      if (path !== undefined && fields[path] === undefined) throw new Error(`${this.name}: no field ${path} here`);
      environment[name] = path === undefined ? (value ?? '') : fields[path];
    }
    return environment;
  }

  #kill(signal: NodeJS.Signals): void {
    for (const { child } of this.#containers) child?.kill(signal);
  }
}
