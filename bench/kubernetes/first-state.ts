// Kubernetes discovery alone, as a process of its own: takes where the cluster is and what to follow, tells the first
// state and what it took.
import { monitorEventLoopDelay } from 'node:perf_hooks';

export interface Cluster {
  readonly url: string;
  readonly ca?: string;
  readonly token?: string;
  readonly namespace: string;
  /** Undefined = the pods with `app=vllm`. */
  readonly pool?: string;
}

export interface FirstState {
  readonly endpoints: number;
  readonly ms: number;
  /** Memory before the start, with the first state, and the largest in between. */
  readonly rssMb: { readonly before: number; readonly after: number; readonly peak: number };
  /** Longest time for which the thread did not take its turn. */
  readonly pauseMs: number;
}

const cluster = JSON.parse(process.argv[2]!) as Cluster;
const rss = () => process.memoryUsage.rss() / 2 ** 20;

const { holdYoungGeneration } = await import('../../dist/src/pool/discovery/kubernetes/young-generation.js');
// As `serve` does at its start.
const letYoungGenerationGrow = holdYoungGeneration();
const { clientOf, sourceOf } = await import('./cluster-client.ts');
const { KubernetesDiscovery } = await import('../../dist/src/pool/discovery/kubernetes/kubernetes.js');
const pauses = monitorEventLoopDelay({ resolution: 1 });
// One turn for the imports, which a picker has behind it.
await new Promise((resolve) => setTimeout(resolve, 100));
const before = rss();
pauses.enable();
const began = performance.now();
const { promise, resolve } = Promise.withResolvers<number>();
const discovery = new KubernetesDiscovery({
  client: clientOf(cluster.url, cluster.ca, cluster.token),
  namespace: cluster.namespace,
  source: sourceOf(cluster.pool),
  inform: () => {},
});
await discovery.start(
  (update) => {
    if ('endpoints' in update) resolve(update.endpoints.length);
  },
  // A slow start is reported after 3 s, and is no failure.
  () => {},
);
letYoungGenerationGrow();
const endpoints = await promise;
const ms = performance.now() - began;
await new Promise((done) => setTimeout(done, 20));
pauses.disable();

process.on('disconnect', () => process.exit());
const peak = process.resourceUsage().maxRSS / 1024;
process.send!({ endpoints, ms, rssMb: { before, after: rss(), peak }, pauseMs: pauses.max / 1e6 } satisfies FirstState);
