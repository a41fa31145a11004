import type { Logger } from '../operations/log.js';
import type { KubernetesCluster, KubernetesSettings } from '../picker/control/kubernetes-cluster.js';

/** Connection of a pool to its cluster. Nothing of it is loaded without. */
export async function createCluster(settings: KubernetesSettings, log: Logger): Promise<KubernetesCluster> {
  const { KubernetesCluster: Cluster } = await import('../picker/control/kubernetes-cluster.js');
  return new Cluster(settings, log);
}
