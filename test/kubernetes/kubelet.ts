import type { Cluster, KubernetesObject, Reference } from './cluster.ts';

export interface PodShape {
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly ip?: string;
  readonly ready?: boolean;
  readonly phase?: string;
  readonly containers?: readonly { readonly name: string; readonly ports?: readonly number[]; readonly id?: string }[];
  readonly hostIP?: string;
}

const DEFAULT_CONTAINERS: NonNullable<PodShape['containers']> = [
  { name: 'engine', ports: [8000], id: 'containerd://1' },
];

/** Does what kubelet and scheduler do to the pods of one namespace: gives them a node and a status, lets them end. */
export class Kubelet {
  readonly #cluster: Cluster;
  readonly namespace: string;

  constructor(cluster: Cluster, namespace: string) {
    this.#cluster = cluster;
    this.namespace = namespace;
  }

  /** Makes a pod on a node and gives it its status. An existing pod of the name must be gone. */
  async run(name: string, shape: PodShape = {}): Promise<KubernetesObject> {
    await this.#cluster.create(this.pod(name, shape));
    return this.status(name, shape);
  }

  /** The object of a pod that has not started. */
  pod(name: string, shape: PodShape = {}): KubernetesObject {
    const containers = shape.containers ?? DEFAULT_CONTAINERS;
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: this.namespace,
        labels: shape.labels ?? { app: 'vllm' },
        ...(shape.annotations === undefined ? {} : { annotations: shape.annotations }),
      },
      spec: {
        // With a node, a deleted pod stays until its kubelet says that it has ended.
        nodeName: 'node-0',
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 30,
        containers: containers.map((container) => ({
          name: container.name,
          image: 'none',
          ports: (container.ports ?? []).map((containerPort) => ({ containerPort })),
        })),
      },
    };
  }

  /** Writes the pod's status anew. */
  status(name: string, shape: PodShape): Promise<KubernetesObject> {
    const containers = shape.containers ?? DEFAULT_CONTAINERS;
    const ready = shape.ready ?? true;
    const status = {
      phase: shape.phase ?? 'Running',
      hostIP: shape.hostIP ?? '10.0.0.1',
      hostIPs: [{ ip: shape.hostIP ?? '10.0.0.1' }],
      ...(shape.ip === undefined ? {} : { podIP: shape.ip, podIPs: [{ ip: shape.ip }] }),
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      containerStatuses: containers.map((container) => ({
        name: container.name,
        image: 'none',
        imageID: 'none',
        ready,
        restartCount: 0,
        containerID: container.id ?? `containerd://${container.name}`,
        state: { running: {} },
      })),
    };
    return this.#cluster.mergePatch(this.#reference(name), { status }, '/status');
  }

  async ready(name: string, ready: boolean): Promise<void> {
    const patch = { status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] } };
    await this.#cluster.mergePatch(this.#reference(name), patch, '/status');
  }

  async annotate(name: string, annotations: Record<string, string | null>): Promise<void> {
    await this.#cluster.mergePatch(this.#reference(name), { metadata: { annotations } });
  }

  async label(name: string, labels: Record<string, string | null>): Promise<void> {
    await this.#cluster.mergePatch(this.#reference(name), { metadata: { labels } });
  }

  /** Deletes gracefully: the pod stays with a deletionTimestamp until `finish`. */
  async delete(name: string, options: { readonly gracePeriodSeconds?: number } = {}): Promise<void> {
    await this.#cluster.delete(this.#reference(name), options);
  }

  /** The containers have ended: the object goes. */
  async finish(name: string): Promise<void> {
    await this.#cluster.delete(this.#reference(name), { gracePeriodSeconds: 0 });
  }

  #reference(name: string): Reference {
    return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: this.namespace } };
  }
}
