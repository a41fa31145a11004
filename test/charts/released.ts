import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Container, RELEASE } from './helm.ts';
import { LLM_D_ROUTER, type ObjectFacts, type ReleaseFacts } from './llm-d-router.ts';
import type { Chart, ValueSetName } from './value-sets.ts';

/** Text in the place of llm-d-router's configuration of Envoy: the templates that it includes, in the order it does. */
const ENVOY_TEXT = `failure_mode_allow: {{ include "llm-d-router.proxy.failOpen" . }}
type: {{ include "llm-d-router.proxy.extProcClusterType" . }}
health:
  check: 1
{{ include "llm-d-router.proxy.envoyExtProcTLSOptions" . | indent 2 }}
{{ include "llm-d-router.proxy.envoyExtProcTransportSocket" . | indent 0 }}
address: {{ include "llm-d-router.proxy.extProcHost" . }}
`;

/** A chart that makes the objects of llm-d-router's with the same names and selectors, and has its values. */
export class ReleasedChart {
  readonly folder = mkdtempSync(join(tmpdir(), 'released-chart-'));

  constructor(name: ValueSetName) {
    const facts = LLM_D_ROUTER.sets[name];
    mkdirSync(join(this.folder, 'templates'));
    const chart = { apiVersion: 'v2', name: `llm-d-router-${facts.chart}`, version: '0.0.0', appVersion: '0.0.0' };
    writeFileSync(join(this.folder, 'Chart.yaml'), JSON.stringify(chart));
    writeFileSync(join(this.folder, 'values.yaml'), JSON.stringify(defaults(facts.chart)));
    const objects = facts.objects.map((object) => JSON.stringify(manifest(object, facts)));
    writeFileSync(join(this.folder, 'templates/objects.yaml'), objects.join('\n---\n'));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function defaults(chart: Chart): object {
  const values = structuredClone(LLM_D_ROUTER.defaults[chart]) as {
    router: { proxy: { presets?: { envoy: { configMap: { data?: object } } } } };
  };
  const { presets } = values.router.proxy;
  if (presets !== undefined) presets.envoy.configMap.data = { 'envoy.yaml': ENVOY_TEXT };
  return values;
}

function manifest(object: ObjectFacts, facts: ReleaseFacts): object {
  const { apiVersion, kind, name } = object;
  return { apiVersion, kind, metadata: { name, ...annotations(object) }, ...body(object, facts) };
}

function annotations({ kind }: ObjectFacts): object {
  const account = { 'kubernetes.io/service-account.name': `${RELEASE}-epp` };
  return kind === 'Secret' ? { annotations: account } : {};
}

function body(object: ObjectFacts, facts: ReleaseFacts): object {
  const { kind, selector, ports, rules, roleRef, subject } = object;
  switch (kind) {
    case 'Deployment':
      return { spec: deployment(object, facts) };
    case 'Service':
      return { spec: { selector, ports } };
    case 'ConfigMap':
      return { data: { key: 'value' } };
    case 'Secret':
      return { type: 'kubernetes.io/service-account-token' };
    case 'Role':
    case 'ClusterRole':
      return { rules };
    case 'RoleBinding':
    case 'ClusterRoleBinding': {
      const subjects = [{ kind: 'ServiceAccount', name: subject, namespace: '{{ .Release.Namespace }}' }];
      const role = kind === 'RoleBinding' ? 'Role' : 'ClusterRole';
      return { subjects, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: role, name: roleRef } };
    }
    case 'InferencePool':
      return { spec: pool(object) };
    case 'ServiceMonitor':
      return { spec: { endpoints: [{ port: 'http-metrics' }], selector: { matchLabels: selector ?? {} } } };
    default:
      return {};
  }
}

function deployment({ selector, strategy, containers }: ObjectFacts, { picker, grace }: ReleaseFacts): object {
  const { args, env, ports, livenessProbe, readinessProbe, volumeMounts } = picker;
  const epp = { args, env, ports, livenessProbe, readinessProbe, volumeMounts };
  const all = containers!.map(
    (name) => ({ name, image: 'none', ...(name === 'epp' ? epp : {}) }) as Partial<Container>,
  );
  const volumes = [{ name: 'plugins-config-volume', configMap: { name: `${RELEASE}-epp` } }];
  return {
    replicas: 1,
    ...(strategy === undefined ? {} : { strategy: { type: strategy } }),
    selector: { matchLabels: selector },
    template: {
      metadata: { labels: selector },
      spec: { terminationGracePeriodSeconds: grace, containers: all, volumes },
    },
  };
}

function pool({ selector }: ObjectFacts): object {
  return {
    selector: { matchLabels: selector },
    targetPorts: [{ number: 8000 }],
    endpointPickerRef: { name: `${RELEASE}-epp`, port: { number: 9002 } },
  };
}
