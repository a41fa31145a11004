import { describe, expect, test } from 'vitest';
import { predictionServers } from '../../dist/src/scheduling/producers/prediction-servers.js';
import { parseServeFlags, type ServeFlags } from '../../dist/src/serve/flags.js';
import { complaints } from './configuration.ts';
import { LLM_D_ROUTER } from './llm-d-router.ts';
import { VALUE_SETS, type ValueSetName } from './value-sets.ts';

const names = Object.keys(VALUE_SETS) as ValueSetName[];
const pool = { poolName: 'rel', poolNamespace: 'default', poolGroup: 'inference.networking.k8s.io' };

/** What the flags of each release mean, beside those that all of them have. */
const MEANING: Readonly<Record<ValueSetName, object>> = {
  basic: pool,
  'three replicas': { ...pool, haEnableLeaderElection: true },
  'grpc servers': pool,
  'latency predictor': pool,
  'prometheus with auth': { ...pool, metricsEndpointAuth: true },
  'prometheus without auth': { ...pool, metricsEndpointAuth: false },
  'custom configuration': {
    ...pool,
    configFile: '/config/custom-plugins.yaml',
    v: 3,
    logLevel: 'debug',
    metricsStalenessThreshold: 5000,
  },
  tracing: { ...pool, tracing: true },
  'standalone with sidecar': pool,
  'standalone with proxy service': pool,
  'selector mode': { poolName: '', endpointSelector: 'app=vllm', endpointTargetPorts: [8000] },
};

/** Environment of the picker's container as kubelet fills it in. */
function environment(name: ValueSetName): Record<string, string> {
  const fields: Record<string, string> = { NAMESPACE: 'default', POD_NAME: 'rel-epp-5d8f7-x2z', NODE_NAME: 'node-0' };
  return Object.fromEntries(
    LLM_D_ROUTER.sets[name].picker.env.map(({ name, value }) => [name, value ?? fields[name] ?? 'node-0']),
  );
}

function flags(name: ValueSetName): ServeFlags {
  const parsed = parseServeFlags(LLM_D_ROUTER.sets[name].picker.args, environment(name));
  if ('help' in parsed) throw new Error('got the help');
  return parsed;
}

describe('the release that llm-d-router’s chart makes, with our image', () => {
  test.each(names)(
    'the release of llm-d-router’s chart for %s has flags that are all known and mean what they say',
    (name) => {
      const usual = {
        grpcHealthPort: 9003,
        zapEncoder: 'json',
        tracing: false,
        configFile: '/config/default-plugins.yaml',
      };
      expect(flags(name)).toMatchObject({ ...usual, podName: 'rel-epp-5d8f7-x2z', ...MEANING[name] });
    },
  );

  test.each(names)(
    'the release of llm-d-router’s chart for %s has a configuration that loads without a finding',
    (name) => {
      const found = complaints(JSON.stringify(LLM_D_ROUTER.sets[name].configuration));
      // llm-d-router's own configuration for predictions lists scorers that it does not use.
      const unused = name === 'latency predictor' ? 4 : 0;
      expect(found.filter((one) => /has no effect/.test(one))).toHaveLength(unused);
      expect(found).toHaveLength(unused);
    },
  );

  test.each(names)('the release of llm-d-router’s chart for %s has the configuration where its flag says', (name) => {
    const { volumeMounts } = LLM_D_ROUTER.sets[name].picker;
    expect(volumeMounts).toEqual([{ name: 'plugins-config-volume', mountPath: '/config' }]);
    expect(flags(name).configFile).toMatch(/^\/config\//);
  });

  test.each(names)('the release of llm-d-router’s chart for %s has container ports that the flags open', (name) => {
    const { grpcPort, grpcHealthPort, metricsPort } = flags(name);
    expect(LLM_D_ROUTER.sets[name].picker.ports).toEqual([
      { name: 'grpc', containerPort: grpcPort },
      { name: 'grpc-health', containerPort: grpcHealthPort },
      { name: 'metrics', containerPort: metricsPort },
    ]);
  });

  test('the release of llm-d-router’s chart with a latency predictor asks its servers, with its numbers', () => {
    expect(predictionServers({}, environment('latency predictor'))).toMatchObject({
      prediction: ['http://localhost:8001', 'http://localhost:8002'],
      training: 'http://localhost:8000',
      samplesMax: 10_000,
      dispatchesMax: 36,
      coalesceMs: 1,
    });
  });
});
