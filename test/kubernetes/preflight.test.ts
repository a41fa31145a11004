import { spawn } from 'node:child_process';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PROGRAM } from '../picker/serving.ts';
import { PICKER_TOKEN, sharedCluster, skipReason } from './api-server.ts';
import type { Cluster } from './cluster.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { Kubelet } from './kubelet.ts';
import { objective, pool } from './objects.ts';

describe.skipIf(skipReason !== '')(`pointsman preflight${skipReason}`, () => {
  let cluster: Cluster;
  let namespace: string;

  beforeAll(async () => {
    cluster = await sharedCluster();
  });
  afterAll(() => cluster?.close());
  beforeEach(async () => {
    namespace = await cluster.makeNamespace();
  });

  async function run(of: Cluster, command: readonly string[], ...flags: string[]) {
    const kubeconfig = writeKubeconfig(of);
    const args = [PROGRAM, ...command, `--pool-namespace=${namespace}`, ...flags];
    const child = spawn(process.execPath, args, { env: { ...process.env, KUBECONFIG: kubeconfig.file } });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (output += piece));
    const code = await new Promise((resolve) => child.on('close', resolve));
    kubeconfig.remove();
    return { code, lines: output.trimEnd().split('\n') };
  }

  it('pointsman preflight says what would be served and why each pod is in or out', async () => {
    await cluster.create(pool(namespace));
    await cluster.create(objective(namespace, 'batch', { priority: -1 }));
    const kubelet = new Kubelet(cluster, namespace);
    await kubelet.run('good', { ip: '10.0.0.1' });
    await kubelet.run('pending', { ready: false });
    await kubelet.run('drained', { ip: '10.0.0.2', annotations: { 'pointsman/drain': 'true' } });
    const { code, lines } = await run(cluster, ['lint', '--kubernetes'], '--pool-name=pool');
    expect(lines).toEqual([
      `${cluster.access.url}, namespace ${namespace}`,
      'pool pool: selector app=vllm, ports 8000, appProtocol http',
      expect.stringMatching(/^inferencemodels\.inference\.networking\.x-k8s\.io: the cluster does not have them/),
      'pods: 3 selected, 1 take requests',
      '  out: drained: it is marked with pointsman/drain',
      '  out: pending: it has no IP yet',
      'objectives: 1 (batch -1)',
      'rewrite rules: 0, models with a priority: 0',
      'serves 1 endpoint',
    ]);
    expect(code).toBe(0);
  });

  it('pointsman preflight says what gateways make of a list of destinations', async () => {
    await new Kubelet(cluster, namespace).run('good', { ip: '10.0.0.1' });
    const flags = ['--endpoint-selector=app=vllm', '--endpoint-target-ports=8000'];
    const picker = (count: number) => `plugins: [{type: max-score-picker, parameters: {maxNumOfEndpoints: ${count}}}]`;
    const notes = async (count: number) => {
      const { lines } = await run(cluster, ['preflight'], ...flags, `--config-text=${picker(count)}`);
      return lines.filter((line) => line.startsWith('note: '));
    };
    expect(await notes(3)).toEqual([
      expect.stringMatching(/^note: the configuration names up to 3 destinations for a request: Istio, and Envoy with/),
    ]);
    expect(await notes(1)).toEqual([]);
  });

  it('pointsman preflight fails without the pool', async () => {
    const { code, lines } = await run(cluster, ['preflight'], '--pool-name=pool');
    expect(lines.at(-1)).toBe('serves nothing: there is no pool');
    expect(code).toBe(1);
  });

  it('pointsman preflight names every missing right', async () => {
    const flags = ['--pool-name=pool', '--ha-enable-leader-election'];
    const { code, lines } = await run(cluster.as(PICKER_TOKEN), ['preflight'], ...flags);
    const missing = lines.filter((line) => line.startsWith('missing right: ')).map((line) => line.slice(15));
    expect(missing).toEqual([
      ...['list', 'watch'].map((verb) => `${verb} pods in namespace ${namespace}`),
      ...['get', 'list', 'watch'].map(
        (verb) => `${verb} inferencepools.inference.networking.k8s.io in namespace ${namespace}`,
      ),
      ...['get', 'create', 'update'].map((verb) => `${verb} leases.coordination.k8s.io in namespace ${namespace}`),
      'create tokenreviews.authentication.k8s.io',
      'create subjectaccessreviews.authorization.k8s.io',
    ]);
    expect(code).toBe(1);
  });

  it('pointsman preflight of a selector needs no pool', async () => {
    await new Kubelet(cluster, namespace).run('good', { ip: '10.0.0.1' });
    const flags = ['--endpoint-selector=app=vllm', '--endpoint-target-ports=8000,8001'];
    const { code, lines } = await run(cluster, ['preflight'], ...flags);
    expect(lines.slice(1)).toEqual([
      'selector app=vllm, ports 8000, 8001',
      'pods: 1 selected, 1 take requests',
      'serves 2 endpoints',
    ]);
    expect(code).toBe(0);
  });
});
