import { PROGRAM, type ServeProcess, startServe } from '../picker/serving.ts';
import type { Cluster } from './cluster.ts';
import { writeKubeconfig } from './kubeconfig.ts';

const PLAIN_FLAGS = [
  ...['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0', '--metrics-endpoint-auth=false'],
  '--secure-serving=false',
];

/**
 * Starts a plain-text picker process that asks a cluster.
 * @param flags beside those of free ports; a later one counts
 * @param cleanups takes what ends the picker and removes its kubeconfig
 */
export async function startClusterPicker(
  cluster: Cluster,
  flags: readonly string[],
  cleanups: (() => unknown)[],
): Promise<ServeProcess> {
  const kubeconfig = writeKubeconfig(cluster);
  cleanups.push(() => kubeconfig.remove());
  const picker = await startServe([...PLAIN_FLAGS, ...flags], PROGRAM, { KUBECONFIG: kubeconfig.file });
  cleanups.push(() => picker.kill());
  return picker;
}
