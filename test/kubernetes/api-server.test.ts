import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedCluster, skipReason } from './api-server.ts';
import { type Cluster, objectPath } from './cluster.ts';
import { Kubelet } from './kubelet.ts';

describe.skipIf(skipReason !== '')(`the API server of the tests${skipReason}`, () => {
  let cluster: Cluster;
  let namespace: string;

  beforeAll(async () => {
    cluster = await sharedCluster();
    namespace = await cluster.makeNamespace();
  });

  afterAll(() => cluster?.close());

  it('the API server of the tests keeps a deleted pod until its kubelet has ended it', async () => {
    const kubelet = new Kubelet(cluster, namespace);
    const pod = await kubelet.run('vllm-0', { ip: '127.1.0.1' });
    await kubelet.delete('vllm-0');
    expect((await cluster.get(pod)).metadata.deletionTimestamp).toBeDefined();
    await kubelet.finish('vllm-0');
    expect((await cluster.request('GET', objectPath(pod))).status).toBe(404);
  });

  it('the API server of the tests refuses an InferencePool that the CRD forbids', async () => {
    const pool = {
      apiVersion: 'inference.networking.k8s.io/v1',
      kind: 'InferencePool',
      metadata: { name: 'pool', namespace },
      spec: { selector: { matchLabels: { app: 'vllm' } }, targetPorts: [{ number: 70_000 }] },
    };
    const answer = await cluster.apply(pool);
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain('spec.targetPorts[0].number');
  });
});
