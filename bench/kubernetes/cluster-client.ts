import { ClusterAccess } from '../../dist/src/kubernetes/access.js';
import { ApiClient } from '../../dist/src/kubernetes/api-client.js';
import type { EndpointSource } from '../../dist/src/pool/discovery/kubernetes/kubernetes.js';
import { selectedLabels } from '../../dist/src/serve/flag-values.js';

export function clientOf(server: string, ca?: string, token?: string): ApiClient {
  const none = { serverName: undefined, tokenFile: undefined, certificate: undefined, key: undefined, exec: undefined };
  const authority = ca === undefined ? undefined : { text: ca };
  return new ApiClient(
    new ClusterAccess({ ...none, server, namespace: undefined, ca: authority, insecure: false, token }),
  );
}

/** The InferencePool of a name; undefined = the pods with `app=vllm`. */
export function sourceOf(pool?: string): EndpointSource {
  if (pool !== undefined) return { kind: 'pool', name: pool, group: 'inference.networking.k8s.io' };
  return { kind: 'selector', labels: selectedLabels('app=vllm'), ports: [8000] };
}
