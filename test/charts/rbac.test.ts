import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { freePorts } from '../../dist/src/serve/port.js';
import { sharedCluster, skipReason } from '../kubernetes/api-server.ts';
import { type Cluster, gieCrds, type KubernetesObject } from '../kubernetes/cluster.ts';
import { writeKubeconfig } from '../kubernetes/kubeconfig.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ContainerProcess, type PickerContainer } from './container-process.ts';

const folder = fileURLToPath(new URL('../../deploy/rbac/', import.meta.url));
const FILES = ['pool-mode.yaml', 'selector-mode.yaml', 'leader-election.yaml', 'metrics-auth.yaml'] as const;
type File = (typeof FILES)[number];

const POOL = ['--pool-name=llama', '--ha-enable-leader-election'];
const SELECTOR = ['--endpoint-selector=app=vllm', '--endpoint-target-ports=8000', '--ha-enable-leader-election'];
const WITHIN_MS = 20_000;

function shipped(file: File): KubernetesObject[] {
  const text = readFileSync(join(folder, file), 'utf8');
  return parseAllDocuments(text).map((document) => document.toJS() as KubernetesObject);
}

/** Every rule that is shipped: its file, its place in the Role, and the resource that the message has to name. */
const RULES: readonly [file: File, rule: number, flags: readonly string[], message: RegExp][] = [
  ['pool-mode.yaml', 0, POOL, /pods: get, list, watch in namespace \S+: forbidden; add the rule/],
  ['pool-mode.yaml', 1, POOL, /inferencepools\S*: get, list, watch in namespace \S+: forbidden; add the rule/],
  ['pool-mode.yaml', 2, POOL, /inferenceobjectives\S*: get, list, watch in namespace \S+: forbidden; add the rule/],
  ['selector-mode.yaml', 0, SELECTOR, /pods: get, list, watch in namespace \S+: forbidden; add the rule/],
  ['leader-election.yaml', 0, POOL, /leases.coordination.k8s.io: get, create, update in namespace \S+: forbidden/],
  ['metrics-auth.yaml', 0, POOL, /nobody can read the metrics: the service account may not .*tokenreviews/],
  ['metrics-auth.yaml', 1, POOL, /nobody can read the metrics: the service account may not .*subjectaccessreviews/],
];

describe.skipIf(skipReason !== '')(`the rights of deploy/rbac${skipReason}`, () => {
  let cluster: Cluster;
  const cleanups: (() => unknown)[] = [];

  beforeAll(async () => {
    cluster = await sharedCluster();
    await cluster.installCrds(gieCrds('v1.5.0'));
  });
  afterAll(() => cluster?.close());
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  /** Makes a namespace with a pool and exactly the shipped rights, or all but one rule of a file. */
  async function namespaceWith(mode: File, without?: { readonly file: File; readonly rule: number }): Promise<string> {
    const namespace = await cluster.makeNamespace('rbac');
    for (const file of [mode, 'leader-election.yaml', 'metrics-auth.yaml'] as const) {
      const left = (_: unknown, index: number) => !(without?.file === file && without.rule === index);
      for (const object of shipped(file)) {
        const fitted = inNamespace(object, namespace);
        const { status, body } = await cluster.apply(
          fitted.rules === undefined ? fitted : { ...fitted, rules: fitted.rules.filter(left) },
        );
        if (status > 201) throw new Error(`${object.kind}: ${body.message}`);
      }
    }
    await cluster.create(pool(namespace));
    return namespace;
  }

  async function start(namespace: string, flags: readonly string[]): Promise<ContainerProcess> {
    const kubeconfig = writeKubeconfig(cluster, await cluster.serviceAccountToken(namespace, 'pointsman'));
    const [grpc, health, metrics] = await freePorts(3);
    const grpcProbe = (service: string) => ({ grpc: { port: health!, service } });
    const container: PickerContainer = {
      args: [...flags, `--pool-namespace=${namespace}`, '--secure-serving=false'],
      env: [{ name: 'NAMESPACE' }, { name: 'POD_NAME' }],
      livenessProbe: grpcProbe('liveness'),
      readinessProbe: grpcProbe('readiness'),
    };
    const picker = new ContainerProcess({
      container,
      configuration: {},
      namespace,
      environment: { KUBECONFIG: kubeconfig.file },
      ports: { grpc: grpc!, health: health!, metrics: metrics! },
    });
    cleanups.push(() => kubeconfig.remove());
    cleanups.push(() => picker.stop());
    return picker;
  }

  test.each([
    ['pool-mode.yaml', POOL],
    ['selector-mode.yaml', SELECTOR],
  ] as const)('the rights of deploy/rbac of %s are enough', async (file, flags) => {
    const picker = await start(await namespaceWith(file), flags);
    await picker.succeeds('readinessProbe', WITHIN_MS);
    expect(picker.log).not.toMatch(/forbidden|may not/);
  });

  test.each(RULES)(
    'the rights of deploy/rbac of %s without rule %i are missed in words that name it',
    async (file, rule, flags, message) => {
      const mode = flags === POOL ? 'pool-mode.yaml' : 'selector-mode.yaml';
      const picker = await start(await namespaceWith(mode, { file, rule }), flags);
      await eventually('the log names the right', () => Promise.resolve(message.test(picker.log)), WITHIN_MS);
    },
  );

  test('the rights of deploy/rbac have a message for every rule but that of InferenceModels, which this cluster lacks', () => {
    const all = FILES.flatMap((file) =>
      shipped(file).flatMap(({ rules }) => (rules ?? []).map((_: object, rule: number) => `${file} ${rule}`)),
    );
    expect(RULES.map(([file, rule]) => `${file} ${rule}`)).toEqual(all.filter((one) => one !== 'pool-mode.yaml 3'));
  });
});

/** The object in the namespace; those without one get its name, so that tests do not meet. */
function inNamespace(object: KubernetesObject, namespace: string): KubernetesObject {
  const { kind, metadata } = object;
  if (!kind.startsWith('Cluster')) return { ...object, metadata: { ...metadata, namespace } };
  const name = `${metadata.name}-${namespace}`;
  if (kind === 'ClusterRole') return { ...object, metadata: { ...metadata, name } };
  const subjects = object.subjects.map((subject: object) => ({ ...subject, namespace }));
  return { ...object, metadata: { ...metadata, name }, subjects, roleRef: { ...object.roleRef, name } };
}

function pool(namespace: string): KubernetesObject {
  return {
    apiVersion: 'inference.networking.k8s.io/v1',
    kind: 'InferencePool',
    metadata: { name: 'llama', namespace },
    spec: {
      selector: { matchLabels: { app: 'vllm' } },
      targetPorts: [{ number: 8000 }],
      endpointPickerRef: { name: 'llama-epp', port: { number: 9002 } },
    },
  };
}
