import { describe, expect, test } from 'vitest';
import { readPoolsFile } from '../../dist/src/config/pools-file.js';
import { parseServeFlags } from '../../dist/src/serve/flags.js';
import { container, find, helmSkipReason, type Manifest, NAMESPACE, RELEASE, refusal, render } from './helm.ts';
import type { Chart } from './value-sets.ts';

const charts: readonly Chart[] = ['gateway', 'standalone'];
const CODE = {
  name: 'code',
  inferencePool: { name: 'code', namespace: 'models' },
  models: ['qwen-coder-32b', 'qwen-*'],
  port: 9012,
  indexBlocks: 2_097_152,
};
const BATCH = { name: 'batch', selector: { labels: 'app=batch', targetPorts: [8000] }, configFile: 'batch.yaml' };
const proxy = { failOpen: false };
const modelServers = { matchLabels: { app: 'vllm' } };
const router = (values: object) => ({ router: { modelServers, proxy, ...values } });

/** Roles with their namespaces. */
const roles = (manifests: readonly Manifest[]) =>
  manifests
    .filter(({ kind }) => kind === 'Role')
    .map(({ metadata: { namespace, name } }) => `${namespace}/${name}`)
    .sort();

/** What is refused: the values, and what the line has to hold. */
const REFUSED: readonly [name: string, values: object, line: string][] = [
  ['a pool without a name', { pools: [{ models: ['a'] }] }, 'router.pools[0].name: needed'],
  [
    'a misspelt key',
    { pools: [{ name: 'a', modles: [] }] },
    'router.pools[0].modles: unknown value; did you mean models?',
  ],
  ['the name of the release', { pools: [{ name: RELEASE }] }, 'router.pools[0].name: rel is the pool of the release'],
  ['a port that is taken', { pools: [{ name: 'a', port: 9090 }] }, 'router.pools[0].port: 9090 is the port of'],
  [
    'a port of two pools',
    { pools: [CODE, { name: 'a', port: 9012 }] },
    'router.pools[1].port: 9012 is the port of router.pools[0].port',
  ],
  ['a default without pools', { defaultPool: 'a' }, 'router.defaultPool: there are no further pools'],
  ['the flag', { epp: { flags: { pools: '/a' } } }, 'router.epp.flags.pools: set router.pools'],
  [
    'a configuration of the name of the file',
    { pools: [CODE], epp: { pluginsCustomConfig: { 'pools.yaml': '' } } },
    'router.epp.pluginsCustomConfig.pools.yaml: this name is taken',
  ],
  ['a proxy that fails open', { pools: [CODE], proxy: {} }, 'router.proxy.failOpen: set it to false with router.pools'],
];

describe(`many pools in the charts${helmSkipReason}`, { skip: helmSkipReason !== '', concurrent: true }, () => {
  test.each(charts)('many pools in the chart %s are a pools file that the picker reads', async (chart) => {
    const manifests = await render(chart, router({ pools: [CODE, BATCH], defaultPool: 'batch' }));
    const { pools, poolName } = parseServeFlags(container(manifests).args, {}) as { pools: string; poolName: string };
    const { data } = find(manifests, 'ConfigMap', 'rel-epp') as unknown as { data: Record<string, string> };
    const file = data[pools.replace('/config/', '')]!;
    const read = readPoolsFile(file, 'pools.yaml', { own: poolName, max: 256 });
    expect(read.default).toBe('batch');
    expect(read.pools).toMatchObject([CODE, BATCH]);
  });

  test.each(charts)('many pools in the chart %s have their ports on the picker and its Service', async (chart) => {
    const manifests = await render(chart, router({ pools: [CODE, BATCH] }));
    expect(container(manifests).ports).toContainEqual({ name: 'pool-9012', containerPort: 9012 });
    expect(find(manifests, 'Service', 'rel-epp').spec.ports).toContainEqual({
      name: 'grpc-pool-9012',
      protocol: 'TCP',
      port: 9012,
      targetPort: 'pool-9012',
      appProtocol: 'kubernetes.io/h2c',
    });
  });

  test('many pools in the charts give the picker rights in their namespaces, and in no others', async () => {
    const own = [`${NAMESPACE}/rel-epp-non-sa`, `${NAMESPACE}/rel-epp-sa`];
    expect(roles(await render('gateway', router({ pools: [BATCH] })))).toEqual(own);
    const selector = { labels: 'app=b', targetPorts: [8000], namespace: 'others' };
    const manifests = await render('gateway', router({ pools: [CODE, { name: 'b', selector }] }));
    const name = `rel-${NAMESPACE}-epp-pools`;
    expect(roles(manifests)).toEqual([...own, `models/${name}`, `others/${name}`]);
    const bindings = manifests.filter(({ kind, metadata }) => kind === 'RoleBinding' && metadata.name === name);
    expect(bindings.map(({ subjects }) => subjects[0])).toEqual(
      ['models', 'others'].map(() => ({ kind: 'ServiceAccount', name: 'rel-epp', namespace: NAMESPACE })),
    );
  });

  test('an InferencePool beside model servers without one gives the right to read InferencePools', async () => {
    const near = { name: 'near', inferencePool: { name: 'near' } };
    const without = router({ inferencePool: { create: false }, pools: [BATCH] });
    expect(roles(await render('standalone', without))).not.toContain(`${NAMESPACE}/rel-epp-non-sa`);
    const beside = router({ inferencePool: { create: false }, pools: [near] });
    expect(roles(await render('standalone', beside))).toContain(`${NAMESPACE}/rel-epp-non-sa`);
  });

  test.each(charts)('the chart %s without further pools serves that of the release alone', async (chart) => {
    const manifests = await render(chart, router({}));
    expect(container(manifests).args.filter((argument) => argument.startsWith('--pools'))).toEqual([]);
    expect(Object.keys(find(manifests, 'ConfigMap', 'rel-epp').data)).not.toContain('pools.yaml');
  });

  test.each(REFUSED)('many pools in the charts refuse %s in one line', async (_name, values, line) => {
    expect(await refusal('standalone', router(values))).toContain(line);
  });
});
