import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../tools/gateway/client.ts';
import { answer, cleanUp, dial, ENDPOINTS, profile, request, start, waiting } from './queued-requests.ts';
import { metric, metricsPage, type Ports } from './serving.ts';

afterEach(cleanUp);

const flow = (ports: Ports, name: string, labels = '') =>
  metric(ports.metricsPort, `llm_d_epp_flow_control_${name}`, labels);

/** Two requests that run, `waits` that wait. */
async function queue(given: Parameters<typeof start>[0], waits: number) {
  const bed = await start(given);
  const client = dial(bed.ports.grpcPort);
  const running = [request(client, 'a'), request(client, 'b')];
  await eventually('both are placed', () => running.every(({ reply }) => reply !== undefined));
  const queued = Array.from({ length: waits }, (_, i) => request(client, `waits ${i}`));
  await eventually('the others wait', async () => (await waiting(bed.ports)) === waits);
  return { ...bed, client, running, queued };
}

describe('the metrics of flow control', () => {
  it('the metrics of flow control count every request that passes, also those that need not wait', async () => {
    const { ports, running, queued } = await queue({}, 1);
    const dispatched = () => flow(ports, 'requests_total', 'outcome="Dispatched",priority="0",inference_pool=');
    expect(await dispatched()).toBe(2);
    answer(running[0]!.call);
    await eventually('it goes on', () => queued[0]!.reply !== undefined);
    expect(await dispatched()).toBe(3);
    const ended = 'outcome="Dispatched",fairness_id="default-flow",priority="0"';
    expect(await flow(ports, 'request_queue_duration_seconds_count', ended)).toBe(3);
    expect(await flow(ports, 'request_queue_duration_seconds_bucket', `${ended},inference_pool`)).toBeGreaterThan(2);
  });

  it('the metrics of flow control show an empty queue as zero, once a request of its flow has passed', async () => {
    const { ports, running, queued } = await queue({}, 1);
    expect([await flow(ports, 'queue_size'), (await flow(ports, 'queue_bytes'))! > 0]).toEqual([1, true]);
    answer(running[0]!.call);
    await eventually('it goes on', () => queued[0]!.reply !== undefined);
    expect([await flow(ports, 'queue_size'), await flow(ports, 'queue_bytes')]).toEqual([0, 0]);
  });

  it('the metrics of flow control show how long requests take into the queue, and their outcomes', async () => {
    const { ports, client } = await queue({ section: '  maxRequests: 1\n' }, 1);
    const refused = request(client, 'more');
    await eventually('one is refused', () => refused.reply !== undefined);
    const count = (outcome: string) =>
      flow(ports, 'request_enqueue_duration_seconds_count', `outcome="${outcome}",priority="0"`);
    // Two passed at once, one waits.
    expect([await count('NotYetFinalized'), await count('RejectedCapacity')]).toEqual([3, 1]);
    const older = 'inference_extension_flow_control_request_enqueue_duration_seconds_count';
    expect(await metric(ports.metricsPort, older)).toBe(4);
  });

  it.each([
    ['pool-requests', '  maxRequests: 1\n'],
    ['pool-bytes', '  maxBytes: 100\n'],
    ['pool-tokens', '  maxTokens: 300\n'],
    ['band-requests', '  priorityBands: [{priority: 0, maxRequests: 1}]\n'],
    ['band-bytes', '  priorityBands: [{priority: 0, maxBytes: 100}]\n'],
    ['band-tokens', '  priorityBands: [{priority: 0, maxTokens: 300}]\n'],
  ])('the metrics of flow control name the bound that a refused request met: %s', async (cause, section) => {
    const { ports, client } = await queue({ section }, 1);
    const refused = request(client, 'more');
    await eventually('one is refused', () => refused.reply !== undefined);
    expect(refused.reply).toMatchObject({ kind: 'immediate', status: 429 });
    const refusals = (labels: string) => metric(ports.metricsPort, 'pointsman_flow_control_refusals_total', labels);
    expect(await refusals(`cause="${cause}",priority="0"`)).toBe(1);
    expect(await refusals('')).toBe(1);
  });

  it('the metrics of flow control show how full each stage of the pool is; the fuller one counts', async () => {
    const roles = ['prefill', 'decode'];
    const endpoints = ENDPOINTS.map((endpoint, i) => ({ ...endpoint, labels: { 'llm-d.ai/role': roles[i]! } }));
    const { ports, setting } = await start({ places: 2, endpoints });
    const client = dial(ports.grpcPort);
    const running = [request(client, 'a'), request(client, 'b'), request(client, 'c')];
    await eventually('all are placed', () => running.every(({ reply }) => reply !== undefined));
    const stage = (name: string) => flow(ports, 'pool_saturation', `stage="${name}"`);
    const stages = [await stage('prefill'), await stage('decode')];
    expect(stages.toSorted()).toEqual([0.5, 1]);
    expect(await stage('effective')).toBe(1);
    expect(await metric(ports.metricsPort, 'inference_extension_flow_control_pool_saturation', 'effective')).toBe(1);
    await setting.writeEndpoints([]);
    await eventually('the pool is empty', async () => (await stage('prefill')) === undefined);
    expect(await stage('effective')).toBe(1);
  });

  it('the metrics of flow control count endpoints whose signals are missing, for the detectors that use signals', async () => {
    const bed = await start({});
    const stale = (detector: string) => flow(bed.ports, 'stale_endpoints', `detector="${detector}"`);
    expect(await flow(bed.ports, 'stale_endpoints')).toBeUndefined();
    const use = (detector: string) =>
      profile({}).replaceAll(/concurrency-detector(, parameters: {.*})?}/g, `${detector}}`);
    await bed.setting.configure(use('utilization-detector'));
    await eventually('both are counted', async () => (await stale('utilization-detector')) === 2);
    await bed.setting.configure(use('learned-limit-detector'));
    await eventually('both are counted again', async () => (await stale('learned-limit-detector')) === 2);
  });

  it('the metrics of flow control show what each of several detectors says, by its stages', async () => {
    const plugins =
      '- {type: concurrency-detector, name: roomy, parameters: {maxConcurrency: 4}}\n' +
      '- type: max-saturation-detector\n  name: worst\n' +
      '  parameters: {detectors: [concurrency-detector, roomy], stages: {roomy: [decode]}}\n';
    const bed = await start({ plugins });
    const both = profile({ plugins }).replace('{pluginRef: concurrency-detector}\n', '{pluginRef: worst}\n');
    await bed.setting.configure(both);
    const says = (detector: string) => flow(bed.ports, 'detector_saturation', `detector="${detector}",stage="decode"`);
    await eventually('the detectors are there', async () => (await says('roomy')) === 0);
    const client = dial(bed.ports.grpcPort);
    const running = [request(client, 'a'), request(client, 'b'), request(client, 'c')];
    await eventually('two are placed', () => running.filter(({ reply }) => reply !== undefined).length === 2);
    await eventually('the third waits', async () => (await waiting(bed.ports)) === 1);
    expect([await says('concurrency-detector'), await says('roomy')]).toEqual([1, 0.25]);
  });

  it('the metrics of flow control show the shares of the bounds that are in use', async () => {
    const section =
      '  maxRequests: 8\n  maxBytes: 1M\n  priorityBands: [{priority: 0, maxRequests: 4, maxTokens: 1000}]\n';
    const { ports } = await queue({ section }, 2);
    expect(await flow(ports, 'capacity_utilization_requests', 'priority="0"')).toBe(0.5);
    expect(await flow(ports, 'global_capacity_utilization_requests')).toBe(0.25);
    const bytes = (await flow(ports, 'queue_bytes'))!;
    expect(await flow(ports, 'global_capacity_utilization_bytes')).toBeCloseTo(bytes / 1_000_000);
    const tokens = 'pointsman_flow_control_capacity_utilization_tokens';
    expect(await metric(ports.metricsPort, tokens, 'priority="0"')).toBeGreaterThan(0.2);
  });

  it('the metrics of flow control have the names, labels and buckets of llm-d-router', async () => {
    const { ports } = await queue({ section: '  maxRequests: 9\n  maxBytes: 1M\n' }, 1);
    const page = await metricsPage(ports.metricsPort);
    for (const [name, labels] of SERIES) {
      const line = page.split('\n').find((each) => new RegExp(`^${name}(_count)?(\\{|\\s)`).test(each));
      expect([...(line ?? '').matchAll(/(\w+)="/g)].map(([, label]) => label).sort(), name).toEqual(labels);
    }
    const buckets = (name: string) => {
      const lines = page.split('\n').filter((line) => line.startsWith(`${name}_bucket`));
      return [...new Set(lines.map((line) => line.match(/le="([^"]+)"/)![1]))];
    };
    const prefix = 'llm_d_epp_flow_control_';
    const waits = '0.0001 0.0005 0.001 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 60 +Inf';
    expect(buckets(`${prefix}request_queue_duration_seconds`)).toEqual(waits.split(' '));
    const short = '0.0001 0.0002 0.0005 0.001 0.002 0.005 0.01 0.02 0.05 0.1 +Inf'.split(' ');
    expect(buckets(`${prefix}request_enqueue_duration_seconds`)).toEqual(short);
    expect(buckets(`${prefix}dispatch_cycle_duration_seconds`)).toEqual(short);
  });
});

const queued = ['fairness_id', 'inference_pool', 'model_name', 'priority', 'target_model_name'];
/** As llm-d-router's page shows them, with the older names that it still has. */
const SERIES = [
  ['queue_size', queued, true],
  ['queue_bytes', queued, true],
  ['request_queue_duration_seconds', [...queued, 'outcome'].sort(), true],
  ['request_enqueue_duration_seconds', ['fairness_id', 'outcome', 'priority'], true],
  ['dispatch_cycle_duration_seconds', [], true],
  ['pool_saturation', ['inference_pool', 'stage'], true],
  ['capacity_utilization_requests', ['inference_pool', 'priority'], false],
  ['capacity_utilization_bytes', ['inference_pool', 'priority'], false],
  ['global_capacity_utilization_requests', ['inference_pool'], false],
  ['global_capacity_utilization_bytes', ['inference_pool'], false],
  ['requests_total', ['inference_pool', 'outcome', 'priority'], false],
].flatMap(([name, labels, older]) => [
  [`llm_d_epp_flow_control_${name}`, labels] as const,
  ...(older ? [[`inference_extension_flow_control_${name}`, labels] as const] : []),
]);
