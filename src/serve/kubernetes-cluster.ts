import type { Logger } from '../operations/log.js';
import type { KubernetesCluster, KubernetesSettings } from '../picker/control/kubernetes-cluster.js';
import type { ProcessCluster } from '../picker/control/process-cluster.js';

/** What a pool follows in the cluster of its process. Nothing of it is loaded without. */
export async function createCluster(
  settings: KubernetesSettings,
  cluster: ProcessCluster,
  log: Logger,
): Promise<KubernetesCluster> {
  const [{ KubernetesCluster: Cluster }, connection] = await Promise.all([
    import('../picker/control/kubernetes-cluster.js'),
    cluster.connect(),
  ]);
  return new Cluster(settings, connection, log);
}
