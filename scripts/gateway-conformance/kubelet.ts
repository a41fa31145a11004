// A small stand-in for the scheduler, the kubelet and the load balancer of a cluster with one node: pods are processes.
import { setTimeout as pause } from 'node:timers/promises';
import type { KubernetesObject } from '../../test/kubernetes/cluster.ts';
import { Pod, type PodServices } from './pod.ts';

const NODE = 'node';
const ROUND_MS = 300;

export class Kubelet {
  readonly #services: PodServices;
  /** By their uid. */
  readonly #pods = new Map<string, Pod>();

  constructor(services: PodServices) {
    this.#services = services;
  }

  /** Registers the node and runs its pods until the signal. A round that fails is told and followed by the next. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#services.cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } });
    while (!signal.aborted) {
      try {
        await this.#round();
      } catch (error) {
        this.#services.say(`kubelet: ${String(error)}`);
      }
      await pause(ROUND_MS);
    }
  }

  async #round(): Promise<void> {
    const objects = await this.#list('/api/v1/pods');
    await Promise.all(objects.map((object) => this.#follow(object)));
    const listed = new Set(objects.map(({ metadata }) => metadata.uid));
    // Deleted without a grace period.
    for (const [uid, pod] of this.#pods) if (!listed.has(uid) && pod.stop(0)) this.#forget(uid, pod);
    for (const service of await this.#list('/api/v1/services')) await this.#balance(service);
  }

  async #follow(object: KubernetesObject): Promise<void> {
    const { uid, deletionTimestamp } = object.metadata;
    const pod = this.#pods.get(uid!);
    if (deletionTimestamp !== undefined) await this.#end(object, pod);
    else if (pod !== undefined) await pod.tick();
    else if (object.spec.nodeName === undefined) await this.#schedule(object);
    else await this.#start(object);
  }

  async #schedule({ metadata: { name, namespace } }: KubernetesObject): Promise<void> {
    await this.#services.cluster.demand('POST', `/api/v1/namespaces/${namespace}/pods/${name}/binding`, {
      ...{ apiVersion: 'v1', kind: 'Binding', metadata: { name } },
      target: { apiVersion: 'v1', kind: 'Node', name: NODE },
    });
  }

  async #start(object: KubernetesObject): Promise<void> {
    const pod = new Pod({ ...object, apiVersion: 'v1', kind: 'Pod' }, this.#services);
    try {
      await pod.start();
    } catch (error) {
      pod.remove();
      throw error;
    }
    this.#pods.set(object.metadata.uid!, pod);
  }

  async #end(object: KubernetesObject, pod: Pod | undefined): Promise<void> {
    if (pod !== undefined && !pod.stop(object.metadata.deletionGracePeriodSeconds ?? 0)) return;
    const reference = { apiVersion: 'v1', kind: 'Pod', metadata: object.metadata };
    await this.#services.cluster.delete(reference, { gracePeriodSeconds: 0 });
    if (pod !== undefined) this.#forget(object.metadata.uid!, pod);
  }

  #forget(uid: string, pod: Pod): void {
    this.#pods.delete(uid);
    pod.remove();
  }

  /** The address of a service of type LoadBalancer is that of its first pod. */
  async #balance(service: KubernetesObject): Promise<void> {
    const { type, selector } = service.spec;
    if (type !== 'LoadBalancer' || selector === undefined) return;
    const { namespace } = service.metadata;
    const pod = [...this.#pods.values()].find((one) => one.namespace === namespace && selects(selector, one));
    if (pod === undefined || service.status.loadBalancer?.ingress?.[0]?.ip === pod.address) return;
    const status = { loadBalancer: { ingress: [{ ip: pod.address }] } };
    await this.#services.cluster.mergePatch({ ...service, apiVersion: 'v1', kind: 'Service' }, { status }, '/status');
  }

  async #list(path: string): Promise<readonly KubernetesObject[]> {
    return (await this.#services.cluster.demand('GET', path)).items;
  }
}

function selects(selector: Readonly<Record<string, string>>, pod: Pod): boolean {
  const labels = pod.object.metadata.labels ?? {};
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}
