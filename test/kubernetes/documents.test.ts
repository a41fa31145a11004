import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type ApiServer, skipReason, startApiServer } from './api-server.ts';
import { type Cluster, gieCrds, type KubernetesObject } from './cluster.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

const documentsOf = (text: string): KubernetesObject[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((one): one is KubernetesObject => one !== null);

/** Objects of the page; its other examples are values of the charts, which test/charts renders. */
const examples = [...readFileSync(`${root}docs/kubernetes.md`, 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)]
  .flatMap(([, text]) => documentsOf(text!))
  .filter(({ kind }) => kind !== undefined);

describe.skipIf(skipReason !== '')(`docs/kubernetes.md and an API server${skipReason}`, () => {
  let server: ApiServer;
  let cluster: Cluster;

  beforeAll(async () => {
    server = await startApiServer();
    cluster = server.cluster();
    const crds = readdirSync(`${root}deploy/crds`).flatMap((name) =>
      documentsOf(readFileSync(`${root}deploy/crds/${name}`, 'utf8')),
    );
    await cluster.installCrds([...gieCrds('v1.5.0', 'InferencePool'), ...crds]);
    await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'llm' } });
  }, 120_000);
  afterAll(async () => {
    cluster?.close();
    await server?.stop();
  });

  it.each(examples.map((one) => [`${one.kind} ${one.metadata.name}`, one] as const))(
    'an API server accepts the example %s with strict validation',
    async (_name, example) => {
      const answer = await cluster.apply(example);
      expect([answer.status, answer.body.message]).toEqual([201, undefined]);
    },
  );

  it('docs/kubernetes.md has an example of every kind that users write', () => {
    expect(examples.map(({ kind }) => kind)).toEqual([
      'InferencePool',
      'InferenceObjective',
      'InferenceModelRewrite',
      'ClusterRoleBinding',
    ]);
  });
});
