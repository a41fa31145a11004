import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freePorts } from '../../dist/src/serve/port.js';
import { sharedCluster, skipReason } from '../kubernetes/api-server.ts';
import { type Cluster, gieCrds, type KubernetesObject } from '../kubernetes/cluster.ts';
import { writeKubeconfig } from '../kubernetes/kubeconfig.ts';
import { Kubelet } from '../kubernetes/kubelet.ts';
import { ContainerProcess, type PickerContainer, pickerOf } from './container-process.ts';
import { helmSkipReason, type Manifest, RELEASE, render } from './helm.ts';
import { LLM_D_ROUTER } from './llm-d-router.ts';
import { VALUE_SETS, type ValueSetName } from './value-sets.ts';

const reason = skipReason || helmSkipReason;
const names = Object.keys(VALUE_SETS) as ValueSetName[];
const ACCOUNT = `${RELEASE}-epp`;
/** Kinds that nothing in these tests would act on. */
const INERT = ['ServiceMonitor', 'Secret', 'Service', 'ConfigMap', 'Deployment'];

describe.skipIf(reason !== '')(`the picker’s container of a release, in a cluster${reason}`, () => {
  let cluster: Cluster;
  let namespace: string;
  const cleanups: (() => unknown)[] = [];

  beforeAll(async () => {
    cluster = await sharedCluster();
    await cluster.installCrds(gieCrds('v1.5.0'));
  });
  afterAll(() => cluster?.close());
  beforeEach(async () => {
    namespace = await cluster.makeNamespace('container');
    await new Kubelet(cluster, namespace).run('vllm-0', { ip: '127.1.8.1', labels: { app: 'vllm' } });
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function apply(objects: readonly KubernetesObject[]): Promise<void> {
    for (const object of objects) {
      if (INERT.includes(object.kind)) continue;
      const { status, body } = await cluster.apply(object);
      if (status > 201) throw new Error(`${object.kind} ${object.metadata.name}: ${body.message}`);
    }
  }

  /** Starts a container with the token of the release's account, and the metrics where the second value says. */
  async function start(container: PickerContainer, configuration: Record<string, string>) {
    const kubeconfig = writeKubeconfig(cluster, await cluster.serviceAccountToken(namespace, ACCOUNT));
    const [grpc, health, metrics] = await freePorts(3);
    const picker = new ContainerProcess({
      container,
      configuration,
      namespace,
      environment: { KUBECONFIG: kubeconfig.file },
      ports: { grpc: grpc!, health: health!, metrics: metrics! },
    });
    cleanups.push(() => kubeconfig.remove());
    cleanups.push(() => picker.stop());
    return { picker, page: (token?: string) => read(`http://127.0.0.1:${metrics}/metrics`, token) };
  }

  test.each(names)('the picker’s container lives, gets ready and reads its pool for %s', async (name) => {
    const manifests: Manifest[] = await render(VALUE_SETS[name].chart, VALUE_SETS[name].values, namespace);
    await apply(manifests as KubernetesObject[]);
    const { container, configuration } = pickerOf(manifests);
    const { picker, page } = await start(container, configuration);
    await picker.succeeds('livenessProbe');
    await picker.succeeds('readinessProbe');
    expect(picker.log).toContain('the first state of the pool has 1 endpoint');
    // The account may read the metrics where Prometheus reads them with its token.
    if (name === 'prometheus with auth') {
      expect(await page(await cluster.serviceAccountToken(namespace, ACCOUNT))).toContain('llm_d_epp_ready_endpoints');
    }
    expect(await page()).toMatch(name === 'prometheus without auth' ? /llm_d_epp_ready_endpoints/ : /^401$/);
    expect(picker.log).not.toContain('forbidden');
    expect(picker.log).not.toContain('nobody can read the metrics');
  });

  test.each(names)(
    'the picker’s container of llm-d-router’s chart lives, gets ready and reads its pool for %s',
    async (name) => {
      const facts = LLM_D_ROUTER.sets[name];
      await apply(rights(name));
      const file = facts.picker.args[facts.picker.args.indexOf('--config-file') + 1]!.replace('/config/', '');
      const args = facts.picker.args.map((argument, i) =>
        facts.picker.args[i - 1] === '--pool-namespace' ? namespace : argument,
      );
      const { picker, page } = await start({ ...facts.picker, args }, { [file]: JSON.stringify(facts.configuration) });
      await picker.succeeds('livenessProbe');
      await picker.succeeds('readinessProbe');
      expect(picker.log).toContain('the first state of the pool has 1 endpoint');
      expect(await page()).toMatch(name === 'prometheus without auth' ? /llm_d_epp_ready_endpoints/ : /^401$/);
      // Its roles lack the older InferenceModel, which is optional, and with Prometheus off the reviews of tokens.
      const missing = [...picker.log.matchAll(/"msg":"(\w+)[^"]*forbidden/g)].map((match) => match[1]);
      expect(missing.filter((resource) => resource !== 'inferencemodels')).toEqual([]);
      const reviews = facts.objects.some(({ kind }) => kind === 'ClusterRole') || name === 'prometheus without auth';
      if (!reviews) expect(picker.log).toContain('nobody can read the metrics');
    },
  );

  /** Account, rights and pool as llm-d-router's chart makes them. */
  function rights(name: ValueSetName): KubernetesObject[] {
    return LLM_D_ROUTER.sets[name].objects.flatMap((facts) => {
      const { apiVersion, kind, name, rules, roleRef, subject, selector, appProtocol } = facts;
      const cluster = kind.startsWith('Cluster');
      const metadata = cluster ? { name: `${name}-${namespace}` } : { name, namespace };
      const object = { apiVersion, kind, metadata };
      if (rules !== undefined) return [{ ...object, rules }];
      if (kind === 'ServiceAccount') return [object];
      if (kind === 'InferencePool') {
        const endpointPickerRef = { name: ACCOUNT, port: { number: 9002 } };
        const matched = { selector: { matchLabels: selector }, targetPorts: [{ number: 8000 }] };
        return [{ ...object, spec: { ...matched, appProtocol, endpointPickerRef } }];
      }
      if (roleRef === undefined) return [];
      const role = cluster ? { kind: 'ClusterRole', name: `${roleRef}-${namespace}` } : { kind: 'Role', name: roleRef };
      const subjects = [{ kind: 'ServiceAccount', name: subject, namespace }];
      return [{ ...object, subjects, roleRef: { apiGroup: 'rbac.authorization.k8s.io', ...role } }];
    });
  }
});

/** The page of the metrics, or the status when it is not 200. */
async function read(url: string, token?: string): Promise<string> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(url, { headers });
  return answer.status === 200 ? answer.text() : String(answer.status);
}
