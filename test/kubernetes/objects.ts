import type { KubernetesObject } from './cluster.ts';

export const POOL_GROUP = 'inference.networking.k8s.io';
export const LEGACY_GROUP = 'inference.networking.x-k8s.io';

type Made = KubernetesObject;

export function pool(namespace: string, spec: object = {}, name = 'pool'): Made {
  return {
    apiVersion: `${POOL_GROUP}/v1`,
    kind: 'InferencePool',
    metadata: { name, namespace },
    spec: {
      selector: { matchLabels: { app: 'vllm' } },
      targetPorts: [{ number: 8000 }],
      endpointPickerRef: { name: 'epp', port: { number: 9002 } },
      ...spec,
    },
  };
}

export function objective(namespace: string, name: string, spec: object = {}, group = LEGACY_GROUP): Made {
  return {
    apiVersion: `${group}/v1alpha2`,
    kind: 'InferenceObjective',
    metadata: { name, namespace },
    spec: { poolRef: { name: 'pool', group: POOL_GROUP }, ...spec },
  };
}

export function rewrite(namespace: string, name: string, rules: object[], group = LEGACY_GROUP): Made {
  return {
    apiVersion: `${group}/v1alpha2`,
    kind: 'InferenceModelRewrite',
    metadata: { name, namespace },
    spec: { poolRef: { name: 'pool', group: POOL_GROUP }, rules },
  };
}

export function model(namespace: string, name: string, spec: object): Made {
  return {
    apiVersion: `${LEGACY_GROUP}/v1alpha2`,
    kind: 'InferenceModel',
    metadata: { name, namespace },
    spec: { poolRef: { name: 'pool' }, ...spec },
  };
}
