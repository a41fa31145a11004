import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Endpoint } from '../../dist/src/contract/endpoint.js';
import { CORE } from '../../dist/src/core/core-names.js';
import {
  attachCore,
  type CoreInstance,
  createPoolMemory,
  defaultPoolSizes,
  type PoolMemory,
} from '../../dist/src/core/memory.js';
import { PrefixIndex } from '../../dist/src/core/prefix-index.js';
import { boundText, labelText, numberText } from '../../dist/src/operations/telemetry/cell-families.js';
import { MetricsExposition } from '../../dist/src/operations/telemetry/exposition.js';
import { cellsOf } from '../../dist/src/operations/telemetry/metric-kind.js';
import { attemptKind, requestKind, seriesKinds } from '../../dist/src/operations/telemetry/metric-table.js';
import { spread } from '../../dist/src/operations/telemetry/pool-gauges.js';
import { ShardRecorder } from '../../dist/src/operations/telemetry/shard-recorder.js';
import { UNUSED_MS_MAX } from '../../dist/src/operations/telemetry/shown-names.js';

const labels = { model: 'm1', target: 'm1-v2', fairness: 'default-flow', priority: 0 };
const noUsage = { promptTokens: -1, completionTokens: -1, totalTokens: -1, cachedTokens: -1 };
const pods: Endpoint[] = ['pod-0', 'pod-1', 'pod-2'].map((name, index) => ({
  id: `default/${name}`,
  name,
  namespace: 'default',
  address: `127.0.1.${index + 1}`,
  port: 8000,
  labels: {},
}));

let pool: PoolMemory;
let control: CoreInstance;
let endpoints: (Endpoint | undefined)[];

function makePool(sizes: Partial<typeof defaultPoolSizes> = {}): void {
  pool = createPoolMemory({
    ...defaultPoolSizes,
    endpoints: 64,
    indexBlocks: 1024,
    requests: 64,
    threads: 4,
    telemetryBytes: 262_144,
    ...sizes,
  });
  control = attachCore(pool, 0);
}

const endpointOf = (slot: number) => endpoints[slot];

function recorder(thread: number, options: { shards?: number } = {}): ShardRecorder {
  const recorder = new ShardRecorder(attachCore(pool, thread), { endpointOf, ...options });
  recorder.vouch(vouched([labels.model, labels.target], [labels.fairness]));
  return recorder;
}

function expositionOptions(options: { streamMetrics?: boolean } = {}) {
  return {
    core: control,
    poolName: 'epp',
    endpointOf,
    streamMetrics: options.streamMetrics ?? false,
    build: { version: '1.2.3', commit: 'abc', buildRef: 'main' },
    processMetrics: false,
  };
}

function exposition(options: { streamMetrics?: boolean } = {}): MetricsExposition {
  return new MetricsExposition(expositionOptions(options));
}

const vouched = (models: readonly string[], fairnessIds: readonly string[]) => ({
  models: new Set(models),
  fairnessIds: new Set(fairnessIds),
});

/** The page as series text → value. */
async function page(from: MetricsExposition = exposition()): Promise<Map<string, number>> {
  const lines = (await from.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const cut = line.lastIndexOf(' ');
      return [line.slice(0, cut), Number(line.slice(cut + 1))] as const;
    }),
  );
}

function setSignals(slot: number, waiting: number, running: number, kvUsage: number, known = 7): void {
  const { sizes } = control;
  const at = (column: number) =>
    (control.call.regionAddress(CORE.REGION_ENDPOINTS) >>> 2) + column * sizes.endpoints + slot;
  control.u32[at(CORE.COLUMN_STATE)] = 1;
  control.u32[at(CORE.COLUMN_KNOWN)] = known;
  const times = at(CORE.COLUMN_SIGNAL_TIME) - slot;
  control.view.setFloat64(times * 4 + slot * 8, 1, true);
  control.f32[at(CORE.COLUMN_WAITING)] = waiting;
  control.f32[at(CORE.COLUMN_RUNNING)] = running;
  control.f32[at(CORE.COLUMN_KV_USAGE)] = kvUsage;
  control.u32[at(CORE.COLUMN_INFLIGHT)] = 2;
  control.u32[at(CORE.COLUMN_INFLIGHT_TOKENS)] = 768;
}

beforeEach(() => {
  endpoints = [...pods];
  makePool();
});

describe('request metrics', () => {
  const own = 'fairness_id="default-flow",model_name="m1",priority="0",target_model_name="m1-v2"';
  const byModel = 'model_name="m1",target_model_name="m1-v2"';

  test('a routed request counts under the new and the older name with the labels of each', async () => {
    const shard = recorder(1);
    shard.routed(shard.series(labels), 3062);
    const found = await page();
    expect(found.get(`llm_d_epp_request_total{${own}}`)).toBe(1);
    expect(found.get('inference_objective_request_total{model_name="m1",priority="0",target_model_name="m1-v2"}')).toBe(
      1,
    );
    expect(found.get(`llm_d_epp_request_size_bytes_sum{${own}}`)).toBe(3062);
    expect(found.get(`llm_d_epp_request_size_bytes_bucket{${own},le="2048"}`)).toBe(0);
    expect(found.get(`llm_d_epp_request_size_bytes_bucket{${own},le="4096"}`)).toBe(1);
    expect(found.get(`inference_objective_request_sizes_bucket{${byModel},le="1.048576e+06"}`)).toBe(1);
  });

  test('older names add up the series that differ only in labels they lack', async () => {
    const shard = recorder(1);
    shard.running(shard.series(labels), 1);
    shard.running(shard.series({ ...labels, fairness: 'tenant-2', target: 'm1-v3' }), 2);
    const found = await page();
    expect(found.get('inference_objective_running_requests{model_name="m1"}')).toBe(3);
    expect(found.get(`llm_d_epp_request_running{${own}}`)).toBe(1);
  });

  test('an observation on a bucket bound falls into that bucket', async () => {
    const shard = recorder(1);
    const series = shard.series(labels);
    for (const seconds of [0.005, 0.0050001, 3600, 3601]) {
      shard.responseEnded(series, {
        durationSeconds: seconds,
        responseBytes: 1,
        streaming: false,
        usage: noUsage,
        firstTokenSeconds: undefined,
        status: 200,
      });
    }
    const found = await page();
    const name = 'llm_d_epp_request_duration_seconds';
    expect(found.get(`${name}_bucket{${own},le="0.005"}`)).toBe(1);
    expect(found.get(`${name}_bucket{${own},le="0.025"}`)).toBe(2);
    expect(found.get(`${name}_bucket{${own},le="3600"}`)).toBe(3);
    expect(found.get(`${name}_bucket{${own},le="+Inf"}`)).toBe(4);
    expect(found.get(`${name}_count{${own}}`)).toBe(4);
  });

  test('tokens are observed when reported: zero cached tokens count, zero output tokens do not', async () => {
    const shard = recorder(1);
    const series = shard.series({ ...labels, model: '', target: '' });
    shard.tokens(series, { promptTokens: 7, completionTokens: 0, totalTokens: 7, cachedTokens: 0 });
    shard.tokens(series, noUsage);
    const empty = 'fairness_id="default-flow",model_name="",priority="0",target_model_name=""';
    const found = await page();
    expect(found.get(`llm_d_epp_request_input_tokens_sum{${empty}}`)).toBe(7);
    expect(found.get(`llm_d_epp_request_input_tokens_count{${empty}}`)).toBe(1);
    expect(found.get('inference_objective_input_tokens_sum{model_name="",target_model_name=""}')).toBe(7);
    expect(found.get(`llm_d_epp_request_cached_tokens_count{${empty}}`)).toBe(1);
    expect(found.has(`llm_d_epp_request_output_tokens_count{${empty}}`)).toBe(false);
  });

  test('a streamed answer gives time to first token, time per output token and normalised time', async () => {
    const shard = recorder(1);
    const series = shard.series(labels);
    shard.firstToken(series, true, 0.2);
    shard.interTokenLatency(series, 0.03);
    shard.responseEnded(series, {
      durationSeconds: 2.2,
      responseBytes: 900,
      streaming: true,
      usage: { ...noUsage, completionTokens: 11 },
      firstTokenSeconds: 0.2,
      status: 200,
    });
    const found = await page();
    expect(found.get(`llm_d_epp_request_ttft_seconds_sum{${own},streaming="true"}`)).toBeCloseTo(0.2);
    expect(found.has(`llm_d_epp_request_ttft_seconds_sum{${own},streaming="false"}`)).toBe(false);
    expect(found.get(`llm_d_epp_request_streaming_tpot_seconds_sum{${own}}`)).toBeCloseTo(0.2);
    expect(found.get(`llm_d_epp_request_ntpot_seconds_sum{${own}}`)).toBeCloseTo(0.2);
    expect(found.get(`llm_d_epp_request_streaming_itl_seconds_bucket{${own},le="0.04"}`)).toBe(1);
  });

  test('a streamed answer that comes in one piece has no time per output token', async () => {
    const shard = recorder(1);
    const series = shard.series(labels);
    shard.firstToken(series, true, 0.2);
    shard.responseEnded(series, {
      durationSeconds: 0.2,
      responseBytes: 900,
      streaming: true,
      usage: { ...noUsage, completionTokens: 11 },
      firstTokenSeconds: 0.2,
      status: 200,
    });
    const found = await page();
    expect(found.has(`llm_d_epp_request_streaming_tpot_seconds_sum{${own}}`)).toBe(false);
    expect(found.get(`llm_d_epp_request_ntpot_seconds_count{${own}}`)).toBe(1);
  });

  test('errors count by code', async () => {
    const shard = recorder(1);
    const series = shard.series({ ...labels, model: '', target: '' });
    shard.failed(series, 'BadRequest');
    shard.failed(series, 'BadRequest');
    shard.failed(series, 'ServiceUnavailable');
    const found = await page();
    const rest = 'fairness_id="default-flow",model_name="",priority="0",target_model_name=""';
    expect(found.get(`llm_d_epp_request_error_total{error_code="BadRequest",${rest}}`)).toBe(2);
    expect(
      found.get(
        'inference_objective_request_error_total{error_code="ServiceUnavailable",model_name="",target_model_name=""}',
      ),
    ).toBe(1);
    expect(found.has(`llm_d_epp_request_total{${rest}}`)).toBe(false);
  });

  test('a gauge that is back at zero stays on the page', async () => {
    const shard = recorder(1);
    const series = shard.series(labels);
    shard.routed(series, 1);
    shard.running(series, 1);
    shard.running(series, -1);
    expect((await page()).get(`llm_d_epp_request_running{${own}}`)).toBe(0);
  });

  test('values that are no numbers are left out of a histogram', async () => {
    const shard = recorder(1);
    shard.interTokenLatency(shard.series(labels), Number.NaN);
    shard.interTokenLatency(shard.series(labels), 0.5);
    expect((await page()).get(`llm_d_epp_request_streaming_itl_seconds_sum{${own}}`)).toBe(0.5);
  });

  test('quotes and backslashes in a model name are escaped, and control characters are replaced', async () => {
    const shard = recorder(1);
    shard.routed(shard.series({ ...labels, model: 'a"b\\c\nd\u0000\u001b' }), 1);
    expect(await exposition().text()).toContain('model_name="a\\"b\\\\c\ufffdd\ufffd\ufffd"');
  });
});

describe('scheduling metrics', () => {
  test('attempts name the endpoint that sits in the slot at that moment', async () => {
    const shard = recorder(1);
    shard.scheduled(0.00015, 'success', 'm1', 1);
    shard.scheduled(0.00015, 'success', 'm1', 1);
    endpoints[1] = { ...pods[1]!, name: 'pod-9', port: 9000 };
    shard.scheduled(0.00015, 'success', 'm1', 1);
    shard.scheduled(0.00015, 'failure', 'm1', -1);
    const found = await page();
    const name = 'llm_d_epp_scheduler_attempts_total';
    const rest = 'status="success",target_model_name="m1"';
    expect(found.get(`${name}{endpoint_name="pod-1",namespace="default",port="8000",${rest}}`)).toBe(2);
    expect(found.get(`${name}{endpoint_name="pod-9",namespace="default",port="9000",${rest}}`)).toBe(1);
    expect(found.get(`${name}{endpoint_name="",namespace="",port="",status="failure",target_model_name="m1"}`)).toBe(1);
    expect(
      found.get(
        `inference_extension_scheduler_attempts_total{namespace="default",pod_name="pod-9",port="9000",${rest}}`,
      ),
    ).toBe(1);
    expect(found.get('llm_d_epp_scheduler_e2e_duration_seconds_bucket{le="0.0001"}')).toBe(0);
    expect(found.get('llm_d_epp_scheduler_e2e_duration_seconds_bucket{le="0.0002"}')).toBe(4);
    expect(found.get('inference_extension_scheduler_e2e_duration_seconds_count')).toBe(4);
  });

  test('attempts name the pod of an endpoint that has one, and its port, as llm-d-router’s', async () => {
    const shard = recorder(1);
    endpoints[1] = { ...pods[1]!, name: 'pod-9-rank-1', podName: 'pod-9', port: 8001 };
    shard.scheduled(0.00015, 'success', 'm1', 1);
    const found = await page();
    const [place, rest] = ['namespace="default"', 'port="8001",status="success",target_model_name="m1"'];
    const counted = found.get(`llm_d_epp_scheduler_attempts_total{endpoint_name="pod-9",${place},${rest}}`);
    const older = found.get(`inference_extension_scheduler_attempts_total{${place},pod_name="pod-9",${rest}}`);
    expect([counted, older]).toEqual([1, 1]);
  });

  test('prefix matches count as a share of the blocks and in bytes', async () => {
    const shard = recorder(1);
    shard.prefix(3, 4, 256);
    shard.prefix(0, 0, 256);
    const found = await page();
    const producer = 'plugin_name="approx-prefix-cache-producer",plugin_type="approx-prefix-cache-producer"';
    expect(found.get(`llm_d_epp_prefix_indexer_hit_ratio_sum{${producer}}`)).toBe(0.75);
    expect(found.get(`llm_d_epp_prefix_indexer_hit_ratio_count{${producer}}`)).toBe(1);
    expect(found.get(`llm_d_epp_prefix_indexer_hit_bytes_sum{${producer}}`)).toBe(768);
    expect(found.get('inference_extension_prefix_indexer_hit_bytes_count')).toBe(2);
  });

  test('the size of the prefix index counts a block once per endpoint that holds it', async () => {
    const index = new PrefixIndex(control);
    index.writeHashes(BigUint64Array.from([11n, 12n, 13n]));
    index.insert(1, 3);
    index.insert(2, 2);
    const found = await page();
    const producer = 'plugin_name="approx-prefix-cache-producer",plugin_type="approx-prefix-cache-producer"';
    expect(found.get(`llm_d_epp_prefix_indexer_size{${producer}}`)).toBe(5);
    expect(found.get('inference_extension_prefix_indexer_size')).toBe(5);
  });

  test('rewrites, processing times and overload count', async () => {
    const shard = recorder(1);
    shard.rewritten('canary', 'm1', 'm1-v2');
    shard.processing('request', 0.001);
    shard.processing('response', 0.00025);
    shard.overloaded();
    const found = await page();
    const rewrite = '{model_name="m1",model_rewrite_name="canary",target_model="m1-v2"}';
    expect(found.get(`llm_d_epp_model_rewrite_decisions_total${rewrite}`)).toBe(1);
    expect(found.get(`inference_extension_model_rewrite_decisions_total${rewrite}`)).toBe(1);
    expect(found.get('llm_d_epp_request_processing_duration_seconds_bucket{le="0.001"}')).toBe(1);
    expect(found.get('llm_d_epp_response_processing_duration_seconds_bucket{le="0.00025"}')).toBe(1);
    expect(found.get('pointsman_overload_rejections_total')).toBe(1);
  });

  test('stream metrics show only when they are asked for', async () => {
    const shard = recorder(1);
    shard.streamOpened();
    shard.streamOpened();
    shard.streamClosed('OK', 0.3);
    expect((await page()).has('llm_d_epp_extproc_streams_inflight')).toBe(false);
    const found = await page(exposition({ streamMetrics: true }));
    expect(found.get('llm_d_epp_extproc_streams_inflight')).toBe(1);
    expect(found.get('llm_d_epp_extproc_streams_total{code="OK"}')).toBe(1);
    expect(found.get('llm_d_epp_extproc_stream_duration_seconds_bucket{le="0.5"}')).toBe(1);
  });
});

describe('bounds', () => {
  test('100,000 names that clients make up leave the page under 2 MB, and no request is lost', async () => {
    makePool({ telemetryBytes: 4 << 20 });
    const shards = [recorder(1, { shards: 2 }), recorder(2, { shards: 2 })];
    for (let i = 0; i < 100_000; i++) {
      const shard = shards[i % 2]!;
      const made = (what: string, turn: number) => (i % 3 === turn ? `${what} ${i} ${'x'.repeat(i % 200)}` : undefined);
      const target = made('target', 1) ?? labels.target;
      const series = shard.series({
        fairness: made('tenant', 2) ?? labels.fairness,
        model: made('model', 0) ?? labels.model,
        priority: 0,
        target,
      });
      shard.routed(series, 1_000);
      shard.running(series, 1);
      shard.tokens(series, { promptTokens: 7, completionTokens: 7, totalTokens: 14, cachedTokens: 7 });
      shard.firstToken(series, true, 0.1);
      shard.interTokenLatency(series, 0.1);
      shard.scheduled(0.001, 'success', target, i % 3);
      shard.rewritten('rule', labels.model, target);
      shard.failed(series, 'Internal');
      shard.queueLeft(series, 'Dispatched', 0.1);
      const usage = { promptTokens: 7, completionTokens: 7, totalTokens: 14, cachedTokens: 7 };
      shard.responseEnded(series, {
        status: 200,
        durationSeconds: 1,
        firstTokenSeconds: 0.1,
        responseBytes: 100,
        streaming: true,
        usage,
      });
    }
    const from = exposition();
    const text = await from.text();
    expect(text.length).toBeLessThan(2_000_000);
    expect(from.sum('llm_d_epp_request_total')).toBe(100_000);
    expect(text).toContain('model_name="m1",priority="0",target_model_name="other"');
    expect(text).toContain('fairness_id="other",model_name="m1",priority="0",target_model_name="m1-v2"');
  });

  test('names of 2,000 objects are all shown', () => {
    makePool({ telemetryBytes: 16 << 20 });
    const shard = recorder(1);
    const models = Array.from({ length: 2_000 }, (_, i) => `object-${i}`);
    shard.vouch(vouched(models, ['default-flow']));
    for (const model of models) shard.routed(shard.series({ ...labels, model, target: model }), 1);
    const from = exposition();
    expect(from.sum('llm_d_epp_request_total', { model_name: 'object-1999' })).toBe(1);
    expect(from.sum('llm_d_epp_request_total', { model_name: 'other' })).toBe(0);
  });

  test('a series without a voucher leaves the page an hour after its last request, until the next', async () => {
    let now = 0;
    const from = new MetricsExposition({ ...expositionOptions(), now: () => now });
    const shard = recorder(1);
    const series = shard.series({ ...labels, model: 'made up' });
    const shown = async () => (await from.text()).includes('model_name="made up"');
    shard.routed(series, 1);
    expect(await shown()).toBe(true);
    now = UNUSED_MS_MAX;
    expect(await shown()).toBe(false);
    expect(from.sum('llm_d_epp_request_total')).toBe(1);
    shard.routed(series, 1);
    expect(await shown()).toBe(true);
  });

  test('a series with a voucher stays on the page, and leaves it an hour after it loses the voucher', async () => {
    let now = 0;
    const from = new MetricsExposition({ ...expositionOptions(), now: () => now });
    const shard = recorder(1);
    const names = vouched([labels.model, labels.target], [labels.fairness]);
    shard.vouch(names);
    from.vouch(names);
    shard.routed(shard.series(labels), 1);
    const shown = async () => (await from.text()).includes('model_name="m1"');
    now = 3 * UNUSED_MS_MAX;
    expect(await shown()).toBe(true);
    from.vouch(vouched([], []));
    now += UNUSED_MS_MAX - 1;
    expect(await shown()).toBe(true);
    now += UNUSED_MS_MAX;
    expect(await shown()).toBe(false);
  });

  test('a full block counts into the series other and loses nothing', async () => {
    makePool({ telemetryBytes: 65_536 });
    const shard = recorder(1);
    shard.vouch(
      vouched(
        Array.from({ length: 200 }, (_, model) => `model-${model}`),
        [],
      ),
    );
    for (let model = 0; model < 200; model++) {
      shard.routed(shard.series({ ...labels, model: `model-${model}` }), 1);
      shard.failed(shard.series({ ...labels, model: `model-${model}` }), 'Internal');
    }
    const from = exposition();
    expect(from.sum('llm_d_epp_request_total')).toBe(200);
    expect(from.sum('llm_d_epp_request_error_total')).toBe(200);
    expect(from.sum('llm_d_epp_request_total', { model_name: 'other' })).toBeGreaterThan(150);
  });

  test('a block that is too small for one series of each kind is refused', () => {
    makePool({ telemetryBytes: 1024 });
    expect(() => recorder(1)).toThrow(/telemetryBytes must be at least \d+/);
  });

  test('label values longer than 1,024 characters are cut', async () => {
    const shard = recorder(1);
    shard.vouch(vouched([labels.model, labels.target], ['f'.repeat(1024)]));
    shard.routed(shard.series({ ...labels, fairness: 'f'.repeat(5000) }), 1);
    expect(exposition().sum('llm_d_epp_request_total', { fairness_id: 'f'.repeat(1024) })).toBe(1);
  });
});

describe('threads', () => {
  test('the page adds up what all threads counted', async () => {
    const shards = [1, 2, 3].map((thread) => recorder(thread));
    const from = exposition();
    for (const shard of shards) shard.routed(shard.series(labels), 100);
    expect(from.sum('llm_d_epp_request_total')).toBe(3);
    for (const shard of shards) shard.routed(shard.series({ ...labels, model: 'later' }), 100);
    expect(from.sum('llm_d_epp_request_total', { model_name: 'later' })).toBe(3);
  });

  test('a thread that takes a dead one’s place keeps its counters and starts its gauges at zero', async () => {
    const dead = recorder(1);
    dead.routed(dead.series(labels), 100);
    dead.running(dead.series(labels), 1);
    dead.streamOpened();
    const next = recorder(1);
    next.routed(next.series(labels), 100);
    const from = exposition({ streamMetrics: true });
    expect(from.sum('llm_d_epp_request_total')).toBe(2);
    expect(from.sum('llm_d_epp_request_running')).toBe(0);
    expect(from.sum('llm_d_epp_extproc_streams_inflight')).toBe(0);
  });

  test('worker threads that count at once lose nothing, also when one is killed', async () => {
    const script = new URL('./counting-worker.mjs', import.meta.url);
    const workers = [1, 2, 3].map((thread) => new Worker(script, { workerData: { pool, thread, rounds: 20_000 } }));
    const counted = await Promise.all(
      workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))),
    );
    await workers[0]!.terminate();
    const from = exposition();
    expect(counted).toEqual([20_000, 20_000, 20_000]);
    expect(from.sum('llm_d_epp_request_total')).toBe(60_000);
    expect(from.sum('llm_d_epp_request_size_bytes')).toBe(60_000);
    await Promise.all(workers.map((worker) => worker.terminate()));
  });
});

describe('pool gauges', () => {
  test('means and deviations are over the endpoints with fresh signals, to two decimals', async () => {
    setSignals(0, 3, 0, 0.2);
    setSignals(1, 0, 0, 0.1);
    setSignals(2, 1, 2, 0.2);
    const found = await page();
    expect(found.get('llm_d_epp_ready_endpoints{name="epp"}')).toBe(3);
    expect(found.get('inference_pool_ready_pods{name="epp"}')).toBe(3);
    expect(found.get('llm_d_epp_average_queue_size{name="epp"}')).toBe(1.33);
    expect(found.get('llm_d_epp_std_dev_queue_size{name="epp"}')).toBe(1.53);
    expect(found.get('llm_d_epp_average_running_requests{name="epp"}')).toBe(0.67);
    expect(found.get('llm_d_epp_std_dev_running_requests{name="epp"}')).toBe(1.15);
    expect(found.get('inference_pool_average_kv_cache_utilization{name="epp"}')).toBe(0.17);
    expect(found.get('llm_d_epp_std_dev_kv_cache_utilization{name="epp"}')).toBe(0.06);
  });

  test('an endpoint without fresh signals is not ready but keeps its queue size', async () => {
    setSignals(0, 3, 0, 0.2);
    setSignals(1, 5, 0, 0.2, 0);
    const found = await page();
    expect(found.get('llm_d_epp_ready_endpoints{name="epp"}')).toBe(1);
    expect(found.get('llm_d_epp_average_queue_size{name="epp"}')).toBe(3);
    expect(found.get('llm_d_epp_per_endpoint_queue_size{name="epp",model_server_endpoint="pod-1"}')).toBe(5);
    expect(found.get('inference_pool_per_pod_queue_size{name="epp",model_server_pod="pod-1"}')).toBe(5);
  });

  test('an endpoint that was never reached has no queue size', async () => {
    setSignals(0, 3, 0, 0.2);
    control.u32[
      (control.call.regionAddress(CORE.REGION_ENDPOINTS) >>> 2) + CORE.COLUMN_STATE * control.sizes.endpoints + 1
    ] = 1;
    const found = await page();
    expect(found.get('llm_d_epp_per_endpoint_queue_size{name="epp",model_server_endpoint="pod-0"}')).toBe(3);
    expect(found.has('llm_d_epp_per_endpoint_queue_size{name="epp",model_server_endpoint="pod-1"}')).toBe(false);
    expect(found.has('inference_pool_per_pod_queue_size{name="epp",model_server_pod="pod-1"}')).toBe(false);
  });

  test('an empty pool has no means, and a removed endpoint leaves the page', async () => {
    setSignals(0, 3, 0, 0.2);
    const from = exposition();
    await from.text();
    endpoints[0] = undefined;
    const found = await page(from);
    expect(found.get('llm_d_epp_ready_endpoints{name="epp"}')).toBe(0);
    expect([...found.keys()].filter((key) => /average|per_endpoint|std_dev|inflight/.test(key))).toEqual([]);
  });

  test('requests and tokens in flight show per endpoint', async () => {
    setSignals(0, 0, 0, 0);
    const series =
      '{endpoint_name="pod-0",namespace="default",producer_name="inflight-load-producer",fairness_id="",priority=""}';
    const found = await page();
    expect(found.get(`llm_d_epp_inflight_requests${series}`)).toBe(2);
    expect(found.get(`llm_d_epp_inflight_tokens${series}`)).toBe(768);
  });

  test('the spread of one value has no deviation, of none is unknown', () => {
    expect(spread([4])).toEqual({ mean: 4, deviation: 0 });
    expect(spread([])).toBeUndefined();
  });
});

describe('the page', () => {
  test('gauges and counters that are read elsewhere follow their source', async () => {
    const from = exposition();
    const state = [{ labels: { reason: 'failures' }, value: 2 }];
    from.addCounter({ name: 'pointsman_ejections_total', help: 'Ejections.', labels: ['reason'], read: () => state });
    from.addGauge({ name: 'pointsman_ejected', help: 'Out now.', read: () => [{ labels: {}, value: state.length }] });
    expect((await page(from)).get('pointsman_ejections_total{reason="failures"}')).toBe(2);
    state[0]!.value = 5;
    state.push({ labels: { reason: 'resets' }, value: 1 });
    const found = await page(from);
    expect(found.get('pointsman_ejections_total{reason="failures"}')).toBe(5);
    expect(found.get('pointsman_ejected')).toBe(2);
  });

  test('a name that is taken is refused', () => {
    expect(() => exposition().addGauge({ name: 'llm_d_epp_ready_endpoints', help: 'x', read: () => [] })).toThrow(
      /already/,
    );
  });

  test('the page names the build', async () => {
    const found = await page();
    expect(found.get('llm_d_epp_info{commit="abc",build_ref="main"}')).toBe(1);
    expect(found.get('pointsman_info{version="1.2.3"}')).toBe(1);
  });

  test('every family has one HELP and one TYPE line, before its series', async () => {
    const shard = recorder(1);
    const series = shard.series(labels);
    shard.firstToken(series, true, 1);
    shard.firstToken(series, false, 1);
    const text = await exposition().text();
    const types = text
      .split('\n')
      .filter((line) => line.startsWith('# TYPE '))
      .map((line) => line.split(' ')[2]);
    expect(new Set(types).size).toBe(types.length);
    expect(text.match(/# TYPE llm_d_epp_request_ttft_seconds histogram\n/g)).toHaveLength(1);
  });

  test('buckets are written as Go writes them', () => {
    expect([0.00205, 1, 524_288, 1_048_576, 1_073_741_824].map(boundText)).toEqual([
      '0.00205',
      '1',
      '524288',
      '1.048576e+06',
      '1.073741824e+09',
    ]);
    expect([0, 0.00001, 1_048_576, Number.POSITIVE_INFINITY, Number.NaN].map(numberText)).toEqual([
      '0',
      '1e-05',
      '1048576',
      '+Inf',
      'NaN',
    ]);
    expect(labelText('a', 'x"y')).toBe('a="x\\"y"');
  });

  test('the metric table has rising buckets, unique kinds and cells without overlap', () => {
    expect(new Set(seriesKinds.map((kind) => kind.id)).size).toBe(seriesKinds.length);
    for (const kind of seriesKinds) {
      let next = 0;
      for (const metric of kind.metrics) {
        expect(metric.offset).toBe(next);
        next += cellsOf(metric);
        expect([...metric.buckets].sort((a, b) => a - b)).toEqual(metric.buckets);
      }
      expect(next).toBe(kind.cells);
    }
    expect(requestKind.at.total.offset).toBe(0);
    expect(attemptKind.cells).toBe(1);
  });
});

describe('against a plain model', () => {
  const label = fc.constantFrom('a', 'b', 'c"\\d', '');
  const step = fc.record({
    thread: fc.integer({ min: 0, max: 2 }),
    model: label,
    fairness: label,
    priority: fc.integer({ min: -1, max: 1 }),
    bytes: fc.integer({ min: 0, max: 2 ** 31 }),
  });

  test('any interleaving of threads and labels adds up to what was counted', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 200 }), async (steps) => {
        makePool();
        const shards = [1, 2, 3].map((thread) => recorder(thread));
        const from = exposition();
        const requests = new Map<string, number>();
        const bytes = new Map<string, number>();
        const small = new Map<string, number>();
        const add = (to: Map<string, number>, key: string, by: number) => to.set(key, (to.get(key) ?? 0) + by);
        for (const { thread, model, fairness, priority, bytes: size } of steps) {
          const shard = shards[thread]!;
          shard.routed(shard.series({ model, target: 't', fairness, priority }), size);
          const text = [
            labelText('fairness_id', fairness),
            labelText('model_name', model),
            labelText('priority', String(priority)),
            labelText('target_model_name', 't'),
          ].join(',');
          add(requests, `llm_d_epp_request_total{${text}}`, 1);
          add(bytes, `llm_d_epp_request_size_bytes_sum{${text}}`, size);
          add(small, `llm_d_epp_request_size_bytes_bucket{${text},le="1.048576e+06"}`, size <= 1_048_576 ? 1 : 0);
        }
        const found = await page(from);
        for (const [key, value] of [...requests, ...bytes, ...small]) expect(found.get(key)).toBe(value);
        const shown = [...found.keys()].filter((key) => key.startsWith('llm_d_epp_request_total{'));
        expect(shown).toHaveLength(requests.size);
      }),
      { numRuns: Number(process.env.POINTSMAN_FUZZ_RUNS ?? 30) },
    );
  });
});

describe('a thread that is killed while it counts', () => {
  test('a thread that is killed while it counts leaves a directory that can be read, and no total ever falls', {
    timeout: 60_000,
  }, async () => {
    makePool({ telemetryBytes: 4 << 20 });
    const script = new URL('./counting-worker.mjs', import.meta.url);
    const from = exposition();
    let before = 0;
    const kills = Number(process.env.POINTSMAN_KILLS ?? 20);
    for (let kill = 0; kill < kills; kill++) {
      const worker = new Worker(script, {
        workerData: { pool, thread: 1, rounds: Number.POSITIVE_INFINITY, first: kill },
      });
      const enough = from.sum('llm_d_epp_request_total') + 100;
      while (from.sum('llm_d_epp_request_total') < enough) await new Promise((resolve) => setImmediate(resolve));
      await worker.terminate();
      await from.text();
      const after = from.sum('llm_d_epp_request_total');
      expect(after).toBeGreaterThanOrEqual(before + 100);
      before = after;
    }
    const found = await page(exposition());
    const total = [...found].filter(([key]) => key.startsWith('llm_d_epp_request_total{'));
    expect(total.reduce((sum, [, value]) => sum + value, 0)).toBe(before);
  });
});

describe('predicted latency', () => {
  const prediction = { name: 'predicted', type: 'predicted-latency-producer', streaming: true };
  const own =
    'model_name="m1",plugin_name="predicted",plugin_type="predicted-latency-producer",target_model_name="m1-v2"';
  const predicting = (thread: number) => new ShardRecorder(attachCore(pool, thread), { endpointOf, prediction });

  beforeEach(() => makePool());

  test('predicted latency shows what was predicted, what came of it, and wishes that were broken', async () => {
    const shard = predicting(1);
    const series = shard.series(labels);
    const guess = { ttftMs: 200, tpotMs: 10, wantedTtftMs: 300, wantedTpotMs: 15 };
    shard.predicted(series, guess, { firstTokenSeconds: 0.4, perTokenSeconds: 0.01, durationSeconds: 1 });
    const page = await exposition().text();
    expect(page).toContain(`llm_d_epp_request_predicted_ttft_seconds_sum{${own}} 0.2\n`);
    expect(page).toContain(`llm_d_epp_request_predicted_tpot_seconds_sum{${own}} 0.01\n`);
    expect(page).toContain(`pointsman_prediction_accuracy_ratio_sum{${own},time="ttft"} 2\n`);
    expect(page).toContain(`pointsman_prediction_accuracy_ratio_sum{${own},time="tpot"} 1\n`);
    expect(page).toContain(`llm_d_epp_request_slo_violation_total{${own},type="ttft"} 1\n`);
    expect(page).not.toContain(`llm_d_epp_request_slo_violation_total{${own},type="tpot"}`);
    expect(page).toContain(
      'inference_objective_request_slo_violation_total{model_name="m1",target_model_name="m1-v2",type="ttft"} 1\n',
    );
    expect(page).toContain(`llm_d_epp_inference_request_metric{${own},type="tpot_slo_violation"} 0\n`);
    expect(page).toContain(`llm_d_epp_inference_request_metric{${own},type="ttft"} 0.4\n`);
    expect(page).not.toContain('type="ttft_prediction_duration"');
  });

  test('predicted latency shows of several threads the value that was set last', async () => {
    const [one, two] = [predicting(1), predicting(2)];
    const seen = (seconds: number) => ({
      firstTokenSeconds: seconds,
      perTokenSeconds: undefined,
      durationSeconds: seconds,
    });
    const guess = { ttftMs: undefined, tpotMs: undefined, wantedTtftMs: 0, wantedTpotMs: 0 };
    one.predicted(one.series(labels), guess, seen(3));
    two.predicted(two.series(labels), guess, seen(5));
    one.predicted(one.series(labels), guess, seen(4));
    expect(await exposition().text()).toContain(`llm_d_epp_inference_request_metric{${own},type="ttft"} 4\n`);
  });

  test('predicted latency takes the duration for the first token of whole answers', async () => {
    const shard = new ShardRecorder(attachCore(pool, 1), {
      endpointOf,
      prediction: { ...prediction, streaming: false },
    });
    const guess = { ttftMs: 500, tpotMs: 10, wantedTtftMs: 0, wantedTpotMs: 5 };
    const seen = { firstTokenSeconds: 0.1, perTokenSeconds: 0.02, durationSeconds: 1 };
    shard.predicted(shard.series(labels), guess, seen);
    const silent = recorder(2);
    silent.predicted(silent.series(labels), guess, seen);
    const page = await exposition().text();
    expect(page).toContain(`pointsman_prediction_accuracy_ratio_sum{${own},time="ttft"} 2\n`);
    expect(page).not.toContain('time="tpot"');
    expect(page).not.toContain('slo_violation_total{');
  });
});
