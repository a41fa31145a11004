import { describe, expect, test } from 'vitest';
import { container, helmSkipReason, refusal, render } from './helm.ts';
import type { Chart } from './value-sets.ts';

const modelServers = { matchLabels: { app: 'vllm' } };
const epp = (values: object) => ({ router: { modelServers, epp: values } });
const proxy = (values: object) => ({ router: { modelServers, inferencePool: { create: false }, proxy: values } });

/** What is refused: the values, and what the line has to hold. */
const REFUSED: readonly [name: string, chart: Chart, values: object, line: string][] = [
  ['no labels of the model servers', 'gateway', {}, 'router.modelServers.matchLabels: needed, such as {app: vllm}'],
  ['a misspelt key', 'gateway', epp({ replcas: 3 }), 'router.epp.replcas: unknown value; did you mean replicas?'],
  [
    'a misspelt key of the chart',
    'gateway',
    { ...epp({}), htpRoute: {} },
    'htpRoute: unknown value; did you mean httpRoute?',
  ],
  [
    'a key of the other chart',
    'standalone',
    { ...epp({}), httpRoute: {} },
    'httpRoute: unknown value; choose one of router, global',
  ],
  [
    'inferenceExtension',
    'gateway',
    { ...epp({}), inferenceExtension: { replicas: 1 } },
    'inferenceExtension: this key is no longer read; write its values under router.epp,',
  ],
  [
    'inferencePool at the top',
    'gateway',
    { ...epp({}), inferencePool: {} },
    'inferencePool: this key is no longer read; write its values under router.inferencePool and router.modelServers',
  ],
  [
    'inferenceObjectives at the top',
    'gateway',
    { ...epp({}), inferenceObjectives: [] },
    'inferenceObjectives: this key is no longer read; write its values under router.inferenceObjectives',
  ],
  [
    'experimentalHttpRoute',
    'gateway',
    { ...epp({}), experimentalHttpRoute: {} },
    'experimentalHttpRoute: this key is no longer read; write its values under httpRoute',
  ],
  [
    'experimentalHttpRoute in the other chart',
    'standalone',
    { ...epp({}), experimentalHttpRoute: {} },
    'write its values under httpRoute of the chart pointsman-gateway',
  ],
  [
    'epp.parser',
    'gateway',
    epp({ parser: 'vllmgrpc-parser' }),
    'router.epp.parser: this key is no longer read; write router.epp.parsers: [vllmgrpc-parser]',
  ],
  [
    'failureMode FailClosed',
    'gateway',
    { router: { modelServers, inferencePool: { failureMode: 'FailClosed' } } },
    'router.inferencePool.failureMode: the API server refuses FailClosed; write FailClose',
  ],
  [
    'another failureMode',
    'gateway',
    { router: { modelServers, inferencePool: { failureMode: 'failopen' } } },
    'unknown name "failopen"; did you mean FailOpen?',
  ],
  [
    'an unknown engine',
    'gateway',
    { router: { modelServers: { ...modelServers, type: 'sg-lang' } } },
    'router.modelServers.type: unknown name "sg-lang"; did you mean sglang?',
  ],
  [
    'an unknown protocol',
    'gateway',
    { router: { modelServers: { ...modelServers, protocol: 'h2c' } } },
    'router.modelServers.protocol: unknown name "h2c"; choose one of http, grpc',
  ],
  [
    'nine target ports',
    'gateway',
    {
      router: {
        modelServers: { ...modelServers, targetPorts: [1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => ({ number })) },
      },
    },
    'router.modelServers.targetPorts: one to eight different ports',
  ],
  [
    'an unknown parser',
    'gateway',
    epp({ parsers: ['opnai-parser'] }),
    'router.epp.parsers: unknown name "opnai-parser"; did you mean openai-parser?',
  ],
  [
    'an HTTP parser for gRPC',
    'gateway',
    { router: { modelServers: { ...modelServers, protocol: 'grpc' }, epp: { parsers: ['openai-parser'] } } },
    'router.epp.parsers: openai-parser cannot read the gRPC of vLLM',
  ],
  ['no replicas', 'gateway', epp({ replicas: 0 }), 'router.epp.replicas: must be at least 1, got 0'],
  [
    'no requested memory',
    'gateway',
    epp({ resources: { requests: { memory: null } } }),
    'router.epp.resources.requests.memory: needed',
  ],
  [
    'a configuration that is not there',
    'gateway',
    epp({ pluginsConfigFile: 'mine.yaml' }),
    'router.epp.pluginsConfigFile: no file "mine.yaml": write it into router.epp.pluginsCustomConfig',
  ],
  [
    'a flag that the chart sets',
    'gateway',
    epp({ flags: { 'pool-name': 'x' } }),
    'router.epp.flags.pool-name: the pool has the name of the release',
  ],
  [
    'a flag with dashes',
    'gateway',
    epp({ flags: { '--v': 3 } }),
    'router.epp.flags.--v: flags have no dashes in front here; write v',
  ],
  [
    'an unknown monitoring provider',
    'gateway',
    { router: { modelServers, monitoring: { provider: { name: 'promethus' } } } },
    'router.monitoring.provider.name: unknown name "promethus"; choose one of prometheusoperator, gmp',
  ],
  [
    'objectives without a pool',
    'gateway',
    { router: { modelServers, inferencePool: { create: false }, inferenceObjectives: [{ name: 'a' }] } },
    'router.inferenceObjectives: objectives belong to a pool',
  ],
  [
    'a tokenizer without a model',
    'gateway',
    { router: { modelServers, tokenizer: { enabled: true } } },
    'router.tokenizer.modelName: needed',
  ],
  [
    'an unknown gateway',
    'gateway',
    { ...epp({}), provider: { name: 'istoi' } },
    'provider.name: unknown name "istoi"; did you mean istio?',
  ],
  [
    'a proxy behind a gateway',
    'gateway',
    { router: { modelServers, proxy: { enabled: true } } },
    'router.proxy.enabled: the gateway is the proxy here; use the chart pointsman-standalone',
  ],
  [
    'preferred backends without GKE',
    'gateway',
    { ...epp({}), provider: { gke: { preferredBackends: { enabled: true } } } },
    'provider.gke.preferredBackends.enabled: only the load balancers of GKE',
  ],
  [
    'a route without a pool',
    'gateway',
    { router: { modelServers, inferencePool: { create: false } }, httpRoute: { create: true } },
    'httpRoute.create: the route leads to an InferencePool',
  ],
  [
    'an unknown proxy mode',
    'standalone',
    proxy({ mode: 'sidcar' }),
    'router.proxy.mode: unknown name "sidcar"; did you mean sidecar?',
  ],
  [
    'an unknown proxy',
    'standalone',
    proxy({ proxyType: 'nginx' }),
    'router.proxy.proxyType: unknown name "nginx"; choose one of envoy, agentgateway',
  ],
  [
    'a proxy Service without a proxy',
    'standalone',
    proxy({ enabled: false, mode: 'service' }),
    'router.proxy.mode: there is no proxy to serve',
  ],
  [
    'a proxy without a port',
    'standalone',
    { router: { modelServers, extraServicePorts: [] } },
    'router.extraServicePorts: exactly one port named "http" is needed, the proxy\'s; there are 0',
  ],
  [
    "a list of destinations over the chart's own Envoy",
    'standalone',
    {
      router: {
        modelServers,
        epp: {
          pluginsConfigFile: 'mine.yaml',
          pluginsCustomConfig: {
            'mine.yaml': 'plugins:\n- type: max-score-picker\n  parameters: {maxNumOfEndpoints: 2}\n',
          },
        },
      },
    },
    'router.epp.pluginsCustomConfig.mine.yaml: maxNumOfEndpoints above 1 names lists of destinations',
  ],
  [
    'agentgateway with a pool',
    'standalone',
    { router: { modelServers, proxy: { proxyType: 'agentgateway' } } },
    'router.inferencePool.create: agentgateway stands alone without a pool',
  ],
  [
    'agentgateway over TLS',
    'standalone',
    {
      router: {
        modelServers,
        inferencePool: { create: false },
        epp: { flags: { 'secure-serving': true } },
        proxy: { proxyType: 'agentgateway' },
      },
    },
    'router.epp.flags.secure-serving: agentgateway asks the picker in plain text',
  ],
  [
    'the older agentgateway values',
    'standalone',
    proxy({ proxyType: 'agentgateway', agentgateway: {} }),
    'router.proxy.agentgateway: this key is no longer read',
  ],
];

describe(`values of the charts${helmSkipReason}`, { skip: helmSkipReason !== '', concurrent: true }, () => {
  test.each(REFUSED)(
    'values of the charts with %s end the rendering with one line that says what to write',
    async (_, chart, values, line) => {
      expect(await refusal(chart, values)).toContain(line);
    },
  );

  test('values of the charts of a wrong type end it with the value and the type that is wanted', async () => {
    const error = await render('gateway', epp({ replicas: 'three' })).catch(({ stderr }: { stderr: string }) => stderr);
    expect(error).toContain("at '/epp/replicas': got string, want integer");
  });

  test('values of the charts take the older targetPortNumber where no targetPorts are given', async () => {
    const servers = { ...modelServers, targetPorts: null, targetPortNumber: 9999 };
    const manifests = await render('standalone', {
      router: { modelServers: servers, inferencePool: { create: false } },
    });
    expect(container(manifests).args).toContain('--endpoint-target-ports=9999');
  });
});
