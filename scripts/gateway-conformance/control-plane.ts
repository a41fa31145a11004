// A Kubernetes API server with its controllers, and Istio's control plane on it.
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments, stringify } from 'yaml';
import { ApiServer } from '../../test/kubernetes/api-server-process.ts';
import { type Cluster, gieCrds, type KubernetesObject } from '../../test/kubernetes/cluster.ts';
import { writeKubeconfig } from '../../test/kubernetes/kubeconfig.ts';
import { HOST_ADDRESS } from './isolation.ts';

const ISTIO = fileURLToPath(new URL('../../.tools/istio/', import.meta.url));
const ISTIOD_NAMESPACE = 'istio-system';
const ISTIOD_MS_MAX = 120_000;
export const ISTIOD_PORT = 15010;
const ISTIOD_HTTP_PORT = 8080;
export const GATEWAY_CLASS = 'istio';

const CONTROLLERS = [
  ...['deployment-controller', 'replicaset-controller', 'endpointslice-controller', 'namespace-controller'],
  ...['serviceaccount-controller', 'garbage-collector-controller', 'root-ca-certificate-publisher-controller'],
];

/** What istiod offers beyond a plain Envoy is off: its ALPN and metadata filters, mutual TLS, webhooks. */
const ISTIOD_ENVIRONMENT = {
  ENABLE_GATEWAY_API_INFERENCE_EXTENSION: 'true',
  PILOT_ENABLE_ALPN_FILTER: 'false',
  PILOT_ENABLE_METADATA_EXCHANGE: 'false',
  POD_NAMESPACE: ISTIOD_NAMESPACE,
  POD_NAME: 'istiod',
  REVISION: 'default',
  CLUSTER_ID: 'Kubernetes',
  VALIDATION_WEBHOOK_CONFIG_NAME: '',
  INJECTION_WEBHOOK_CONFIG_NAME: '',
};

export interface ControlPlane {
  readonly apiServer: ApiServer;
  readonly cluster: Cluster;
  readonly kubeconfig: string;
}

/** @param logs folder of the logs */
export async function startKubernetes(logs: string): Promise<ControlPlane> {
  const apiServer = new ApiServer(['--service-cluster-ip-range', '10.96.0.0/16'], HOST_ADDRESS);
  await apiServer.start();
  const cluster = apiServer.cluster();
  const kubeconfig = writeKubeconfig(cluster).file;
  start('kube-controller-manager', logs, [
    ...['--kubeconfig', kubeconfig, '--secure-port', '0', '--leader-elect=false'],
    ...['--service-account-private-key-file', join(apiServer.folder, 'service-account.key')],
    ...['--root-ca-file', apiServer.caFile, `--controllers=${CONTROLLERS}`],
  ]);
  await cluster.installCrds([...crdsOf('gateway-api.yaml'), ...crdsOf('istio.yaml'), ...gieCrds('v1.6.0')]);
  return { apiServer, cluster, kubeconfig };
}

/** istiod with a GatewayClass, and this project's template of the pods of a Gateway. */
export async function startIstio({ cluster, kubeconfig }: ControlPlane, folder: string, logs: string): Promise<void> {
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: ISTIOD_NAMESPACE } });
  await cluster.create(injectorSettings());
  await cluster.demand('POST', '/apis/gateway.networking.k8s.io/v1/gatewayclasses', {
    ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'GatewayClass', metadata: { name: GATEWAY_CLASS } },
    spec: { controllerName: 'istio.io/gateway-controller' },
  });
  const mesh = join(folder, 'mesh.yaml');
  writeFileSync(mesh, stringify({ enableAutoMtls: false, enablePrometheusMerge: false, accessLogFile: '' }));
  const port = (number: number) => `${HOST_ADDRESS}:${number}`;
  const istiod = start(
    'pilot-discovery',
    logs,
    [
      ...['discovery', '--kubeconfig', kubeconfig, '--meshConfig', mesh, '--networksConfig', '/dev/null'],
      ...['--grpcAddr', port(ISTIOD_PORT), '--monitoringAddr', port(15014), '--httpAddr', port(ISTIOD_HTTP_PORT)],
      ...['--secureGRPCAddr', port(15012), '--httpsAddr', '', '--ctrlz_port', '0', '--domain', 'cluster.local'],
    ],
    ISTIOD_ENVIRONMENT,
  );
  await ready(istiod, `http://${port(ISTIOD_HTTP_PORT)}/ready`, join(logs, 'pilot-discovery.log'));
}

/** @throws when istiod has ended, or is not ready in time */
async function ready(istiod: ChildProcess, url: string, log: string): Promise<void> {
  const deadline = performance.now() + ISTIOD_MS_MAX;
  while (performance.now() < deadline && istiod.exitCode === null) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
    if (answer?.ok === true) return;
    await pause(200);
  }
  throw new Error(`istiod did not become ready:\n${readFileSync(log, 'utf8').trim().split('\n').slice(-5).join('\n')}`);
}

/** The settings from which istiod takes the template of a Gateway's pods. */
function injectorSettings(): KubernetesObject {
  const template = readFileSync(new URL('gateway-template.yaml', import.meta.url), 'utf8');
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'istio-sidecar-injector', namespace: ISTIOD_NAMESPACE },
    data: {
      config: stringify({ policy: 'disabled', defaultTemplates: [], templates: { 'kube-gateway': template } }),
      values: JSON.stringify({ global: { proxy: { image: 'plain-envoy' } } }),
    },
  };
}

/** Gives every picker that an InferencePool names the DestinationRule of pointsman-gateway, until the signal. */
export async function trustPickers(cluster: Cluster, signal: AbortSignal, say: (line: string) => void): Promise<void> {
  const made = new Set<string>();
  while (!signal.aborted) {
    try {
      const { items } = await cluster.demand('GET', '/apis/inference.networking.k8s.io/v1/inferencepools');
      // One test has a pool without a picker.
      for (const { metadata, spec } of items as readonly KubernetesObject[])
        if (spec.endpointPickerRef !== undefined)
          await trust(cluster, made, metadata.namespace!, spec.endpointPickerRef.name);
    } catch (error) {
      say(`DestinationRules: ${String(error)}`);
    }
    await pause(500);
  }
}

async function trust(cluster: Cluster, made: Set<string>, namespace: string, picker: string): Promise<void> {
  const host = `${picker}.${namespace}.svc.cluster.local`;
  if (made.has(host)) return;
  const spec = { host, trafficPolicy: { tls: { mode: 'SIMPLE', insecureSkipVerify: true } } };
  const metadata = { name: picker, namespace };
  await cluster.create({ apiVersion: 'networking.istio.io/v1', kind: 'DestinationRule', metadata, spec });
  made.add(host);
}

function crdsOf(file: string): KubernetesObject[] {
  return parseAllDocuments(readFileSync(join(ISTIO, 'crds', file), 'utf8'))
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((one): one is KubernetesObject => one?.kind === 'CustomResourceDefinition');
}

/** A program of .tools/istio, which ends with the namespaces it runs in. */
export function start(
  program: string,
  logs: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): ChildProcess {
  const log = openSync(join(logs, `${program}.log`), 'w');
  return spawn(join(ISTIO, program), args, {
    stdio: ['ignore', log, log],
    env: { PATH: process.env.PATH, HOME: logs, TMPDIR: process.env.TMPDIR, ...env },
    cwd: logs,
  });
}
