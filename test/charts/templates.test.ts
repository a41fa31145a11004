import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { parseServeFlags } from '../../dist/src/serve/flags.js';
import { markedLibrary } from '../../scripts/chart-library.ts';
import { complaints } from './configuration.ts';
import {
  chartFolder,
  container,
  find,
  helm,
  helmSkipReason,
  type Manifest,
  podSpec,
  render,
  valueArguments,
} from './helm.ts';
import { LLM_D_ROUTER, type ObjectFacts } from './llm-d-router.ts';
import { type Chart, VALUE_SETS, type ValueSetName } from './value-sets.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const sets = Object.entries(VALUE_SETS).map(([name, set]) => ({ name: name as ValueSetName, ...set }));
const charts: readonly Chart[] = ['gateway', 'standalone'];
const modelServers = { matchLabels: { app: 'vllm' } };

const rendered = (name: ValueSetName) => render(VALUE_SETS[name].chart, VALUE_SETS[name].values);
const router = (values: object) => ({ router: { modelServers, ...values } });
const key = ({ kind, name }: { kind: string; name: string }) => `${kind}/${name}`;
const keys = (manifests: readonly Manifest[]) => manifests.map(({ kind, metadata }) => key({ kind, ...metadata }));

/** Facts of an object that an upgrade cannot change. */
function fixed({ kind, spec, roleRef }: Manifest): Partial<ObjectFacts> {
  if (kind === 'Deployment') return { selector: spec.selector.matchLabels };
  if (kind === 'Service') return { selector: spec.selector };
  return roleRef === undefined ? {} : { roleRef: roleRef.name };
}

describe(`the charts${helmSkipReason}`, { skip: helmSkipReason !== '', concurrent: true }, () => {
  test.each(sets)('the charts pass helm lint with the values of $name', async ({ chart, values }) => {
    const { stdout } = await helm('lint', '--strict', chartFolder(chart), ...valueArguments(values));
    expect(stdout).toContain('1 chart(s) linted, 0 chart(s) failed');
  });

  test.each(sets)('the charts make the objects of llm-d-router for $name, by name', async ({ name }) => {
    const own = keys(await rendered(name));
    const theirs = LLM_D_ROUTER.sets[name].objects.map(key);
    // The proxy's configuration has the name of the release here, and two releases fit into one namespace.
    const missing = theirs.filter((one) => !own.includes(one) && one !== 'ConfigMap/envoy');
    // Without guarded metrics there is nothing that a ClusterRole has to allow.
    const open = (one: string) => name === 'prometheus without auth' && one.startsWith('ClusterRole');
    expect(missing.filter((one) => !open(one))).toEqual([]);
  });

  test.each(sets)('the charts keep what cannot change in an upgrade of $name', async ({ name }) => {
    const manifests = await rendered(name);
    for (const theirs of LLM_D_ROUTER.sets[name].objects) {
      const own = manifests.find(({ kind, metadata }) => key({ kind, name: metadata.name }) === key(theirs));
      if (own === undefined) continue;
      const { selector, roleRef } = theirs;
      const expected = own.kind === 'Deployment' || own.kind === 'Service' ? { selector } : roleRef ? { roleRef } : {};
      expect(fixed(own)).toEqual(expected);
    }
  });

  test.each(sets)('the charts keep the port names and numbers of the Services of $name', async ({ name }) => {
    const manifests = await rendered(name);
    const services = LLM_D_ROUTER.sets[name].objects.filter(({ kind }) => kind === 'Service');
    for (const { name: service, ports } of services) {
      const own = find(manifests, 'Service', service).spec.ports as { name: string; port: number }[];
      // With a proxy of its own, the picker's Service has no port of the proxy: nothing would answer there.
      const expected = ports!.filter(
        (port) => !(name === 'standalone with proxy service' && service === 'rel-epp' && port.name === 'http'),
      );
      expect(own.map(({ name, port }) => ({ name, port }))).toEqual(expected.map(({ name, port }) => ({ name, port })));
    }
  });

  test.each(sets)('the charts mean the same with their flags as llm-d-router for $name', async ({ name }) => {
    const { warnings: own, ...flags } = parseServeFlags(container(await rendered(name)).args, {}) as {
      warnings: unknown;
    };
    const { warnings, ...theirs } = parseServeFlags(LLM_D_ROUTER.sets[name].picker.args, {}) as { warnings: unknown };
    expect(own).toEqual(warnings);
    expect(flags).toEqual(theirs);
  });

  test.each(sets)(
    'the charts give the picker of $name a configuration that loads without a finding',
    async ({ name }) => {
      const manifests = await rendered(name);
      const { data } = find(manifests, 'ConfigMap', 'rel-epp') as unknown as { data: Record<string, string> };
      const { configFile } = parseServeFlags(container(manifests).args, {}) as { configFile: string };
      expect(complaints(data[configFile.replace('/config/', '')]!)).toEqual([]);
    },
  );

  test.each(sets)(
    'the charts give the picker of $name every variable and mount that llm-d-router gives it',
    async ({ name }) => {
      const own = container(await rendered(name));
      const { env, volumeMounts } = LLM_D_ROUTER.sets[name].picker;
      const byName = (list: typeof env) => Object.fromEntries(list.map((one) => [one.name, one]));
      const plain = (variable: object) => JSON.parse(JSON.stringify(variable).replace('"apiVersion":"v1",', ''));
      for (const variable of env) expect(byName(own.env)[variable.name]).toEqual(plain(variable));
      for (const { name, mountPath } of volumeMounts)
        expect(own.volumeMounts).toContainEqual({ name, mountPath, readOnly: true });
    },
  );

  test('the charts let payload-agnostic.yaml use its scorer of Alpha stability', async () => {
    const manifests = await render('gateway', router({ epp: { pluginsConfigFile: 'payload-agnostic.yaml' } }));
    expect(container(manifests).args).toContain('--allow-experimental-plugins=true');
    expect(complaints(find(manifests, 'ConfigMap').data['payload-agnostic.yaml'], true)).toEqual([]);
  });

  test('the charts ask liveness and readiness apart, on the port of grpcHealthPort', async () => {
    const { livenessProbe, readinessProbe, ports } = container(
      await render('gateway', router({ epp: { grpcHealthPort: 9013 } })),
    );
    expect(livenessProbe.grpc).toEqual({ port: 9013, service: 'liveness' });
    expect(readinessProbe.grpc).toEqual({ port: 9013, service: 'readiness' });
    expect(ports).toContainEqual({ name: 'grpc-health', containerPort: 9013 });
  });

  test('the charts run the picker as no root, with a root file system that is read only and no rights of the kernel', async () => {
    expect(container(await rendered('basic')).securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  test('the charts elect no leader where the flags say so, and give no right to leases', async () => {
    const epp = { replicas: 3, flags: { 'ha-enable-leader-election': false } };
    const manifests = await render('gateway', router({ epp }));
    expect(container(manifests).args).toContain('--ha-enable-leader-election=false');
    expect(keys(manifests)).not.toContain('Role/rel-epp-leader-election');
  });

  test('the charts write a large number as a flag takes it', async () => {
    const { args } = container(await render('gateway', router({ epp: { flags: { 'index-blocks': 2097152 } } })));
    expect(args).toContain('--index-blocks=2097152');
  });

  test('the charts give a flag several times that is a list', async () => {
    const { args } = container(await render('gateway', router({ epp: { flags: { plugin: ['a', 'b'] } } })));
    expect(args.filter((argument) => argument.startsWith('--plugin'))).toEqual(['--plugin=a', '--plugin=b']);
  });

  test('the charts lead the Service to the picker whatever port extProcPort is, and the pool to the Service', async () => {
    const manifests = await render('gateway', router({ epp: { extProcPort: 9876 } }));
    const [extProc] = find(manifests, 'Service').spec.ports;
    expect(extProc).toMatchObject({ name: 'grpc-ext-proc', port: 9876, targetPort: 'grpc' });
    expect(find(manifests, 'InferencePool').spec.endpointPickerRef.port).toEqual({ number: 9876 });
  });

  test('the charts honour insecureSkipVerify: false', async () => {
    const manifests = await render('gateway', router({ epp: { metricsDataSource: { insecureSkipVerify: false } } }));
    const { plugins } = parse(find(manifests, 'ConfigMap').data['default-plugins.yaml']);
    expect(plugins[0]).toEqual({
      type: 'metrics-data-source',
      parameters: { scheme: 'http', path: '/metrics', insecureSkipVerify: false },
    });
  });

  test.each(['sglang', 'trtllm-serve', 'triton-tensorrt-llm', 'triton'])(
    'the charts read the metrics of %s',
    async (type) => {
      const manifests = await render('gateway', { router: { modelServers: { ...modelServers, type } } });
      const text = find(manifests, 'ConfigMap').data['default-plugins.yaml'];
      expect(parse(text).plugins).toContainEqual({
        type: 'core-metrics-extractor',
        parameters: { defaultEngine: type },
      });
      expect(complaints(text)).toEqual([]);
    },
  );

  test('the charts take the environment as a list or as names and values', async () => {
    const list = container(await render('gateway', router({ epp: { env: [{ name: 'A', value: '1' }] } })));
    const map = container(await render('gateway', router({ epp: { env: { A: 1 } } })));
    expect(list.env).toContainEqual({ name: 'A', value: '1' });
    expect(map.env).toContainEqual({ name: 'A', value: '1' });
  });

  test('the charts replace the image of llm-d-router, which --reuse-values keeps among the values, and say so', async () => {
    const image = { registry: 'ghcr.io/llm-d', repository: 'llm-d-router-endpoint-picker', tag: 'main' };
    expect(container(await render('gateway', router({ epp: { image } }))).image).toMatch(/^pointsman:\d/);
  });

  test('the charts take an image by registry, repository and tag', async () => {
    const image = { registry: 'example.org/team', repository: 'picker', tag: 'v7' };
    expect(container(await render('gateway', router({ epp: { image } }))).image).toBe('example.org/team/picker:v7');
  });

  test('the charts let the readers of guarded metrics be asked about, with Prometheus or without', async () => {
    const { rules } = find(await rendered('basic'), 'ClusterRole') as unknown as { rules: object[] };
    const reviews = ['tokenreviews', 'subjectaccessreviews'];
    expect(rules.map((rule) => (rule as { resources: string[] }).resources[0])).toEqual(reviews);
  });

  test('the charts make the objectives of the pool', async () => {
    const objectives = [
      { name: 'urgent', priority: 100 },
      { name: 'batch', priority: -1 },
    ];
    const manifests = await render('gateway', router({ inferenceObjectives: objectives }));
    const made = manifests.filter(({ kind }) => kind === 'InferenceObjective');
    const poolRef = { group: 'inference.networking.k8s.io', name: 'rel' };
    expect(made.map(({ metadata, spec }) => [metadata.name, spec])).toEqual([
      ['urgent', { priority: 100, poolRef }],
      ['batch', { priority: -1, poolRef }],
    ]);
  });

  test('the charts pass pods’ settings on: affinity, tolerations, annotations, volumes, mounts, ports, resources', async () => {
    const epp = {
      affinity: { nodeAffinity: {} },
      tolerations: [{ key: 'gpu', operator: 'Exists' }],
      podAnnotations: { 'prometheus.io/scrape': 'true' },
      volumes: [{ name: 'models', emptyDir: {} }],
      volumeMounts: [{ name: 'models', mountPath: '/models' }],
      extraContainerPorts: [{ name: 'debug', containerPort: 6060 }],
      resources: { requests: { cpu: '3', memory: '1Gi' } },
      imagePullSecrets: [{ name: 'registry' }],
    };
    const manifests = await render('gateway', router({ epp }));
    const pod = podSpec(manifests);
    const picker = container(manifests);
    expect(pod).toMatchObject({
      affinity: epp.affinity,
      tolerations: epp.tolerations,
      imagePullSecrets: epp.imagePullSecrets,
    });
    expect(find(manifests, 'Deployment').spec.template.metadata.annotations).toEqual(epp.podAnnotations);
    expect(pod.volumes).toContainEqual(epp.volumes[0]);
    expect(picker.volumeMounts).toContainEqual(epp.volumeMounts[0]);
    expect(picker.ports).toContainEqual(epp.extraContainerPorts[0]);
    expect(picker.resources.requests).toEqual({ cpu: '3', memory: '1Gi' });
  });

  test('the charts run vLLM’s render server beside the picker', async () => {
    const manifests = await render(
      'gateway',
      router({ tokenizer: { enabled: true, modelName: 'm', extraArgs: ['--x'] } }),
    );
    const render_ = container(manifests, 'vllm-render');
    expect([...render_.command!, ...render_.args]).toEqual(['vllm', 'launch', 'render', 'm', '--port=8000', '--x']);
    expect(render_.ports).toEqual([{ name: 'render-http', containerPort: 8000 }]);
    expect(podSpec(manifests).volumes).toContainEqual({ name: 'model-cache', emptyDir: {} });
  });

  test('the charts run the servers of the latency predictor beside the picker', async () => {
    const manifests = await rendered('latency predictor');
    const names = podSpec(manifests).containers.map(({ name }: { name: string }) => name);
    expect(names).toEqual(['epp', 'training-server', 'prediction-server-1', 'prediction-server-2']);
    const second = container(manifests, 'prediction-server-2');
    expect(second.args.slice(-2)).toEqual(['--port', '8002']);
    expect(second.livenessProbe).toMatchObject({ httpGet: { path: '/healthz', port: 8002 }, failureThreshold: 5 });
  });

  test('the charts make a route to the pool', async () => {
    const httpRoute = { create: true, baseModel: 'base', headerMatches: { 'x-team': 'a' }, requestTimeout: '10s' };
    const { spec } = find(await render('gateway', { ...router({}), httpRoute }), 'HTTPRoute');
    expect(spec.parentRefs[0].name).toBe('inference-gateway');
    expect(spec.rules[0].matches[0].headers).toEqual([
      { type: 'Exact', name: 'X-Gateway-Base-Model-Name', value: 'base' },
      { type: 'Exact', name: 'x-team', value: 'a' },
    ]);
    expect(spec.rules[0]).toMatchObject({
      backendRefs: [{ group: 'inference.networking.k8s.io', kind: 'InferencePool', name: 'rel' }],
      timeouts: { request: '10s' },
    });
  });

  test('the charts tell Istio to take the picker’s certificate, or to ask it in plain text', async () => {
    const istio = { destinationRule: { trafficPolicy: { connectionPool: { http: { maxRetries: 1 } } } } };
    const provider = { name: 'istio', istio };
    const { spec } = find(await render('gateway', { ...router({}), provider }), 'DestinationRule');
    expect(spec.host).toBe('rel-epp.default.svc.cluster.local');
    expect(spec.trafficPolicy).toEqual({
      tls: { mode: 'SIMPLE', insecureSkipVerify: true },
      connectionPool: { http: { maxRetries: 1 } },
    });
    const plain = await render('gateway', { ...router({ epp: { flags: { 'secure-serving': false } } }), provider });
    expect(find(plain, 'DestinationRule').spec.trafficPolicy.tls).toEqual({ mode: 'DISABLE' });
  });

  test('the charts make a Service and a policy for each replica with preferred backends of GKE', async () => {
    const preferredBackends = { enabled: true, preferredReplicas: 2, defaultReplicas: 2 };
    const manifests = await render('gateway', { ...router({}), provider: { name: 'gke', gke: { preferredBackends } } });
    const services = manifests
      .filter(({ kind }) => kind === 'Service')
      .map(({ metadata, spec }) => [metadata.name, spec.selector['statefulset.kubernetes.io/pod-name']]);
    expect(services.sort()).toEqual([
      ['rel-epp', 'rel-epp-0'],
      ['rel-epp-backup', 'rel-epp-2'],
      ['rel-epp-backup-1', 'rel-epp-3'],
      ['rel-epp-preferred-1', 'rel-epp-1'],
    ]);
    expect(find(manifests, 'StatefulSet').spec).toMatchObject({ replicas: 4, podManagementPolicy: 'Parallel' });
    expect(container(manifests).args.join()).not.toContain('ha-enable-leader-election');
    expect(find(manifests, 'InferencePool').spec.endpointPickerRef.name).toBe('rel-epp-backup');
    const policies = manifests.filter(({ kind }) => kind === 'GCPBackendPolicy');
    expect(policies.map(({ metadata, spec }) => [metadata.name, spec.default.backendPreference]).sort()).toEqual([
      ['rel', 'PREFERRED'],
      ['rel-backup', 'DEFAULT'],
      ['rel-backup-1', 'DEFAULT'],
      ['rel-preferred-1', 'PREFERRED'],
    ]);
  });

  test('the charts give Google’s collector a token that reads the metrics', async () => {
    const monitoring = { provider: { name: 'gmp', gmp: { autopilot: true } }, prometheus: { enabled: true } };
    const manifests = await render('gateway', router({ monitoring }));
    expect(keys(manifests)).toEqual(
      expect.arrayContaining([
        'PodMonitoring/rel',
        'Secret/rel-metrics-reader-secret',
        'ClusterRole/default-rel-metrics-reader',
        'RoleBinding/gke-gmp-system:collector:default-rel-metrics-reader-secret-read',
      ]),
    );
    expect(keys(manifests)).not.toContain('ServiceMonitor/rel-epp-monitor');
  });

  test('the charts give the picker no more rights than deploy/rbac lists', async () => {
    const files = readdirSync(join(root, 'deploy/rbac')).map((file) =>
      readFileSync(join(root, 'deploy/rbac', file), 'utf8'),
    );
    const shipped = files
      .flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Manifest))
      .flatMap(({ rules }) => rules ?? [])
      .map((rule) => JSON.stringify(rule));
    const values = router({ epp: { replicas: 3 }, monitoring: { prometheus: { enabled: true } } });
    for (const { kind, rules } of await render('gateway', values)) {
      if (kind !== 'Role' && kind !== 'ClusterRole') continue;
      for (const rule of rules) expect(shipped).toContain(JSON.stringify(rule));
    }
  });
});

describe('the library of the charts', () => {
  test.each(charts)(
    'the library of the charts has a copy in %s that says that it is one; "npm run chart-library" makes it',
    (chart) => {
      const copy = join(chartFolder(chart), 'charts/router');
      const texts = markedLibrary(join(root, 'deploy/charts/router'));
      const files = readdirSync(copy, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      const paths = files.map(({ parentPath, name }) => join(parentPath, name));
      expect(paths.map((path) => path.slice(copy.length)).sort()).toEqual([...texts.keys()].sort());
      for (const path of paths) {
        expect(readFileSync(path, 'utf8')).toBe(texts.get(path.slice(copy.length)));
        expect(readFileSync(path, 'utf8')).toContain('change it there.');
      }
    },
  );

  test.each(charts)('the library of the charts has the version of the project in %s', (chart) => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    for (const folder of [chartFolder(chart), join(root, 'deploy/charts/router')]) {
      const { version: chartVersion, appVersion } = parse(readFileSync(join(folder, 'Chart.yaml'), 'utf8'));
      expect({ chartVersion, appVersion }).toEqual({ chartVersion: version, appVersion: version });
    }
  });
});
