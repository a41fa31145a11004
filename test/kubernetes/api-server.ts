import { inject } from 'vitest';
import { ADMIN_TOKEN, ApiServer, kubernetesBinaries, START_MS_MAX } from './api-server-process.ts';
import { Cluster } from './cluster.ts';

export { ADMIN_TOKEN, type ApiServer, PICKER_TOKEN } from './api-server-process.ts';

/**
 * Why the Kubernetes tests are skipped; the empty string when they run. With POINTSMAN_REQUIRE_KUBERNETES=1 they never
 * are.
 */
export const skipReason =
  kubernetesBinaries === undefined && process.env.POINTSMAN_REQUIRE_KUBERNETES !== '1'
    ? ' (skipped: no Kubernetes API server found; run scripts/install-kubernetes.sh)'
    : '';

/** The API server that all tests of a run share: make a namespace in it. It has the CRDs of GIE 1.5.0. */
export async function sharedCluster(): Promise<Cluster> {
  const answer = await fetch(inject('kubernetesBroker'), { signal: AbortSignal.timeout(2 * START_MS_MAX) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  const { url, ca } = JSON.parse(text) as { url: string; ca: string };
  return new Cluster({ url, ca, token: ADMIN_TOKEN });
}

/** etcd and an API server of one's own, for tests that kill it or change what all namespaces share. */
export async function startApiServer(flags: readonly string[] = []): Promise<ApiServer> {
  const server = new ApiServer(flags);
  await server.start();
  return server;
}
