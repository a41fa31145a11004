import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, requestBody, requestHeaders } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, type FileEndpoint, metric, type Ports, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A server on a free port of 127.0.0.1. */
async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function start(endpoints: readonly FileEndpoint[], plugins: string, dataLayer: string): Promise<Ports> {
  const setting = await Setting.create(endpoints, plugins);
  cleanups.push(() => setting.remove());
  const { readFile, writeFile } = await import('node:fs/promises');
  const text = await readFile(setting.configFile, 'utf8');
  await writeFile(setting.configFile, `${text}  ${dataLayer}\n`);
  const { picker, ports } = await startPicker([
    ...setting.flags,
    '--allow-experimental-plugins',
    '--emit-endpoint-scores',
  ]);
  cleanups.push(() => picker.stop(0));
  return ports;
}

/** Scores of the endpoints of one request, by the end of their address. */
async function scores({ grpcPort }: Ports): Promise<Readonly<Record<string, number>> | number | undefined> {
  const client = dialPicker(grpcPort);
  try {
    const reply = decodeReply(await firstReply(ask(client, 'hello')));
    if (reply.kind === 'immediate') return reply.status;
    const metadata = reply.metadata as Readonly<
      Record<string, Readonly<Record<string, Readonly<Record<string, number>>>>>
    >;
    return metadata['envoy.lb']!['x-gateway-destination-endpoint-scores'];
  } finally {
    client.close();
  }
}

describe('the GPU utilization that DCGM tells', () => {
  it('the GPU utilization that DCGM tells filters and scores endpoints', async () => {
    // One exporter for the node: its page names the pods.
    const gpu: Record<string, number> = { a: 20, b: 60, c: 95 };
    const port = await serve((_request, response) => {
      const lines = Object.entries(gpu).map(([pod, value]) => `DCGM_FI_DEV_GPU_UTIL{gpu="0",pod="${pod}"} ${value}\n`);
      response.end(lines.join(''));
    });
    const endpoints = ['a', 'b', 'c'].map((name, i) => ({
      name,
      address: `127.0.0.${i + 2}`,
      port: 9,
      labels: { nodeAddress: '127.0.0.1' },
    }));
    const ports = await start(
      endpoints,
      `plugins:
- {type: dcgm-data-source, name: source, parameters: {port: ${port}, useNodeAddress: true, interval: 20ms}}
- {type: dcgm-extractor}
- {type: endpoint-attribute-filter, parameters: {attribute: GPUUtilization, producer: dcgm-extractor, onMissing: \
Fail, algorithm: {type: threshold, threshold: {operator: LessThanOrEqual, value: 0.9}}}}
- {type: endpoint-attribute-scorer, parameters: {attributeKey: GPUUtilization, producer: dcgm-extractor, algorithm: \
{type: linear_lower_is_better, normalization: {fixedRange: {min: 0, max: 1}}}}}
`,
      'sources: [{pluginRef: source, extractors: [{pluginRef: dcgm-extractor}]}]',
    );
    let seen: unknown;
    await eventually('the GPUs are known', async () => {
      seen = await scores(ports);
      return typeof seen === 'object' && Object.keys(seen!).length === 2;
    });
    expect(seen).toEqual({ '127.0.0.2:9': expect.closeTo(0.8, 5), '127.0.0.3:9': expect.closeTo(0.4, 5) });
    gpu.b = 0;
    await eventually('a change is seen', async () => {
      seen = await scores(ports);
      return (seen as Record<string, number>)['127.0.0.3:9'] === 1;
    });
  });
});

describe('the load of clusters', () => {
  it('the load of clusters is what their pickers tell, where their labels say', async () => {
    const load = [
      [2, 0.25],
      [6, 0.5],
    ] as const;
    const ports = await Promise.all(
      load.map(([queue, cache]) =>
        serve((_request, response) =>
          response.end(
            `llm_d_epp_average_queue_size{name="p"} ${queue}\nllm_d_epp_average_kv_cache_utilization{name="p"} ` +
              `${cache}\n`,
          ),
        ),
      ),
    );
    const clusters = [...ports, 1].map((port, i) => ({
      name: `cluster-${i}`,
      address: `127.0.0.${i + 2}`,
      port: 9,
      labels: { metricsAddress: '127.0.0.1', metricsPort: String(port) },
    }));
    const setting = await Setting.create(clusters, 'plugins:\n');
    cleanups.push(() => setting.remove());
    const { writeFile } = await import('node:fs/promises');
    await writeFile(
      setting.configFile,
      `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- {type: multicluster-file-discovery, name: clusters, \
parameters: {path: ${JSON.stringify(`${setting.folder}/endpoints.yaml`)}}}
- {type: multicluster-metrics-data-source, parameters: {scheme: http, interval: 20ms}}
- {type: multicluster-metrics-extractor}
- {type: multicluster-session-affinity-filter}
- {type: multicluster-queue-scorer}
- {type: multicluster-kv-cache-utilization-scorer}
schedulingProfiles:
- name: p
  plugins:
  - {pluginRef: multicluster-session-affinity-filter}
  - {pluginRef: multicluster-queue-scorer, weight: 10}
  - {pluginRef: multicluster-kv-cache-utilization-scorer}
dataLayer:
  discovery: {pluginRef: clusters}
  sources: [{pluginRef: multicluster-metrics-data-source, extractors: [{pluginRef: multicluster-metrics-extractor}]}]
`,
    );
    const flags = [...setting.flags, '--allow-experimental-plugins', '--emit-endpoint-scores'];
    const { picker, ports: picked } = await startPicker(flags);
    cleanups.push(() => picker.stop(0));
    let seen: unknown;
    // The third one takes no connections: it scores 0 until that is found, and is no candidate from then on.
    await eventually('both clusters are known, and the third one is out', async () => {
      seen = await scores(picked);
      return Object.keys(seen as object).length === 2 && Object.values(seen as object).every((score) => score > 0);
    });
    // (6 - 2) / (6 - 2) × 10 + (1 - 0.25), and 0 × 10 + (1 - 0.5)
    expect(seen).toEqual({ '127.0.0.2:9': 10.75, '127.0.0.3:9': 0.5 });
  });
});

describe('the models of endpoints', () => {
  it('the models of endpoints stand on the metrics page', async () => {
    const port = await serve((request, response) =>
      response.end(
        request.url === '/v1/models' ? '{"object":"list","data":[{"id":"llama"},{"id":"lora","parent":"llama"}]}' : '',
      ),
    );
    const { metricsPort } = await start(
      [{ name: 'a', port }],
      'plugins:\n- {type: models-data-source, parameters: {interval: 20ms}}\n- {type: models-data-extractor}\n',
      'sources: [{pluginRef: models-data-source, extractors: [{pluginRef: models-data-extractor}]}]',
    );
    await eventually('the models are known', async () => (await metric(metricsPort, 'pointsman_endpoint_model')) === 2);
    expect(await metric(metricsPort, 'pointsman_endpoint_model', 'model="lora",parent="llama"')).toBe(1);
  });
});

describe('adapters that engines have loaded', () => {
  it('adapters that engines have loaded draw their requests', async () => {
    const gauges = 'vllm:num_requests_running{model_name="base"} 0\nvllm:max_gpu_lora_adapters 2\n';
    const holder = await serve((_request, response) =>
      response.end(
        `${gauges}vllm:num_gpu_loaded_lora_adapters 1\n` +
          'vllm:lora_adapter_loaded{adapter_name="m",level="gpu",pinned="false",rank="8"} 1\n',
      ),
    );
    const empty = await serve((_request, response) => response.end(`${gauges}vllm:num_gpu_loaded_lora_adapters 0\n`));
    const ports = await start(
      [
        { name: 'a', port: holder },
        { name: 'b', port: empty },
      ],
      'plugins:\n- {type: lora-load-state-scorer, parameters: {placementBonus: 0, headroomBonus: 0}}\n',
      '',
    );
    let seen: unknown;
    await eventually('both pages are read', async () => {
      seen = await scores(ports);
      return Object.values(seen as object).every((score) => score > 0);
    });
    const shown = seen as Readonly<Record<string, number>>;
    expect(shown[`127.0.0.1:${holder}`]).toBe(1);
    expect(shown[`127.0.0.1:${empty}`]).toBeCloseTo(0.6);
  });
});

describe('models-responder over the wire', () => {
  it('models-responder over the wire answers GET /v1/models itself, with the models of all endpoints', async () => {
    const list = (...names: string[]) => JSON.stringify({ object: 'list', data: names.map((id) => ({ id })) });
    const one = await serve((_request, response) => response.end(list('llama', 'lora-a')));
    const two = await serve((_request, response) => response.end(list('llama', 'lora-b')));
    const endpoints = [
      { name: 'a', port: one },
      { name: 'b', port: two },
    ];
    const plugins =
      'plugins:\n- {type: models-responder}\n- {type: models-data-source, parameters: {interval: 20ms}}\n' +
      '- {type: models-data-extractor}\n- {type: served-model-filter}\n' +
      'schedulingProfiles:\n- {name: p, plugins: [{pluginRef: served-model-filter}]}\n';
    const { grpcPort, metricsPort } = await start(endpoints, plugins, 'injectDefaults: false');
    const client = dialPicker(grpcPort);
    cleanups.push(() => client.close());
    const listed = async () => {
      const call = client.process();
      call.write(requestHeaders({ ':method': 'GET', ':path': '/v1/models?all=1' }, true));
      const { kind, status, headers, body } = decodeReply(await firstReply(call));
      return { kind, status, type: headers['content-type'], body: body.toString() };
    };
    await eventually('both lists are known', async () => (await listed()).body.includes('lora-b'));
    const { kind, status, type, body } = await listed();
    expect([kind, status, type]).toEqual(['immediate', 200, 'application/json']);
    const names = ['llama', 'lora-a', 'lora-b'];
    expect(JSON.parse(body)).toEqual({ object: 'list', data: names.map((id) => ({ id })) });

    const call = client.process();
    call.on('error', () => undefined);
    call.write(requestHeaders({ ':path': '/v1/completions' }));
    call.write(requestBody('{"model":"lora-b","prompt":"hello"}'));
    expect(decodeReply(await firstReply(call)).headers['x-gateway-destination-endpoint']).toBe(`127.0.0.1:${two}`);
    const decisions = (outcome: string) =>
      metric(metricsPort, 'llm_d_epp_served_model_filter_decisions_total', `outcome="${outcome}"`);
    expect(await decisions('listed')).toBe(1);
    // models-responder has kept the other endpoint away.
    expect(await metric(metricsPort, 'llm_d_epp_served_model_filter_candidates_total')).toBe(1);
    expect(await metric(metricsPort, 'llm_d_epp_served_model_filter_unlisted_candidates_total')).toBeUndefined();
  });
});

describe('decisions of prefix-cache-affinity-filter', () => {
  it('decisions of prefix-cache-affinity-filter are counted by outcome', async () => {
    const endpoints = await Promise.all(
      ['a', 'b'].map(async (name) => ({ name, port: await serve((_request, response) => response.end()) })),
    );
    const plugins =
      'plugins:\n- {type: approx-prefix-cache-producer}\n' +
      '- {type: prefix-cache-affinity-filter, parameters: {explorationProbability: 0}}\n' +
      'schedulingProfiles:\n- {name: p, plugins: [{pluginRef: prefix-cache-affinity-filter}]}\n';
    const { grpcPort, metricsPort } = await start(endpoints, plugins, 'injectDefaults: false');
    const client = dialPicker(grpcPort);
    cleanups.push(() => client.close());
    for (let i = 0; i < 3; i++) {
      const call = client.process();
      call.on('error', () => undefined);
      call.write(requestHeaders({ ':path': '/v1/completions' }));
      call.write(requestBody(JSON.stringify({ model: 'm', prompt: 'the same words again '.repeat(100) })));
      await firstReply(call);
      call.end();
    }
    const name = 'llm_d_epp_prefix_cache_affinity_filter_decisions_total';
    const decisions = (outcome: string) => metric(metricsPort, name, `outcome="${outcome}"`);
    expect([await decisions('no_match'), await decisions('sticky')]).toEqual([1, 2]);
  });
});
