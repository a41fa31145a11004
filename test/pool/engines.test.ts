import { describe, expect, it } from 'vitest';
import { EngineTable } from '../../dist/src/pool/engines/engine-table.js';
import { parseMetricSpec } from '../../dist/src/pool/engines/metric-spec.js';
import { scanText } from './plain-scanner.js';

const table = new EngineTable();

/** Signals that an engine reads from a page. */
function signalsOf(engineName: string, page: string, engines = table) {
  const { engine } = engines.choose({ 'llm-d.ai/engine-type': engineName });
  return engine.read(scanText(page, engine.wanted), { labels: undefined, adapters: undefined, shown: '' });
}

describe('loaded adapters on a page', () => {
  const engines = new EngineTable({ loadedAdapters: true });
  const loaded = (name: string, level: string, pinned: boolean, value = 1) =>
    `vllm:lora_adapter_loaded{adapter_name="${name}",level="${level}",pinned="${pinned}",rank="8"} ${value}\n`;

  it('loaded adapters on a page are read by level, with their count and slots', () => {
    const page =
      loaded('a', 'gpu', true) +
      loaded('b', 'gpu', false) +
      loaded('c', 'cpu', false) +
      loaded('gone', 'gpu', false, 0) +
      'vllm:num_gpu_loaded_lora_adapters{model_name="m"} 2\nvllm:max_gpu_lora_adapters{model_name="m"} 4\n';
    const expected = { gpu: ['a', 'b'], cpu: ['c'], pinned: ['a'], onGpu: 2, slots: 4 };
    expect(signalsOf('vllm', page, engines).residency).toEqual(expected);
  });

  it('loaded adapters on a page are none where the gauges say so, and unknown without them', () => {
    const none = { gpu: [], cpu: [], pinned: [], onGpu: 0, slots: undefined };
    expect(signalsOf('vllm', 'vllm:num_gpu_loaded_lora_adapters 0\n', engines).residency).toEqual(none);
    expect(signalsOf('vllm', 'vllm:num_requests_running 1\n', engines).residency).toBeUndefined();
  });

  it('loaded adapters on a page are not looked for where no plugin reads them', () => {
    const names = (readsLoaded: boolean) =>
      new EngineTable({ loadedAdapters: readsLoaded }).choose({}).engine.wanted.map(({ name }) => name);
    expect(names(false)).not.toContain('vllm:lora_adapter_loaded');
    expect(names(true)).toContain('vllm:lora_adapter_loaded');
  });

  it('loaded adapters on a page of another engine are read by its own names', () => {
    const own = { name: 'own', loraLoadedSpec: 'own:loaded', loraGPUSlotsSpec: 'own:slots' };
    const both = new EngineTable({ loadedAdapters: true, engineConfigs: [own] });
    const page = 'own:loaded{adapter_name="a",level="cpu"} 1\nown:slots 3\n';
    const { residency } = signalsOf('own', page, both);
    expect(residency).toEqual({ gpu: [], cpu: ['a'], pinned: [], onGpu: undefined, slots: 3 });
  });
});

describe('built-in engines', () => {
  const pages: Record<string, { page: string; running: number | undefined; blocks: boolean; kvUsage?: undefined }> = {
    vllm: {
      page:
        'vllm:num_requests_waiting{model_name="m"} 3\nvllm:num_requests_running 4\nvllm:kv_cache_usage_perc ' +
        '0.25\nvllm:cache_config_info{block_size="16",num_gpu_blocks="2048"} 1\n',
      running: 4,
      blocks: true,
    },
    sglang: {
      page:
        'sglang:num_queue_reqs 3\nsglang:num_running_reqs 4\nsglang:token_usage ' +
        '0.25\nsglang:cache_config_info{page_size="16",num_pages="2048"} 1\n',
      running: 4,
      blocks: true,
    },
    'trtllm-serve': {
      page:
        'trtllm_num_requests_waiting 3\ntrtllm_num_requests_running 4\ntrtllm_kv_cache_utilization ' +
        '0.25\ntrtllm_kv_cache_tokens_per_block 16\ntrtllm_kv_cache_max_blocks 2048\n',
      running: 4,
      blocks: true,
    },
    'triton-tensorrt-llm': {
      page:
        'nv_trt_llm_request_metrics{request_type="waiting"} 3\nnv_trt_llm_request_metrics{request_type="scheduled"} ' +
        '4\nnv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"} ' +
        '0.25\nnv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per"} ' +
        '16\nnv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max"} 2048\n',
      running: 4,
      blocks: true,
    },
  };
  for (const [name, { page, running }] of Object.entries(pages)) {
    it(`${name}: waiting, running, KV usage and cache size`, () => {
      expect(signalsOf(name, page)).toMatchObject({
        waiting: 3,
        running,
        kvUsage: 0.25,
        blockTokens: 16,
        blockCount: 2048,
      });
    });
  }

  it('triton: waiting only, because its execution count is no gauge of what runs', () => {
    const signals = signalsOf('triton', 'nv_inference_pending_request_count 3\nnv_inference_exec_count 90000\n');
    expect(signals).toMatchObject({ waiting: 3, running: undefined, kvUsage: undefined });
  });
});

describe('signals of a page', () => {
  it('the start time of the process is read from the page of any engine, and tells nothing of the engine by itself', () => {
    const page = 'process_start_time_seconds 1.7e9\n';
    for (const engine of table.all()) {
      const scanned = scanText(page, engine.wanted);
      expect(engine.read(scanned, { labels: undefined, adapters: undefined, shown: '' }).startSeconds).toBe(1.7e9);
      expect(engine.isForeign(scanned)).toBe(true);
    }
  });

  it('an implausibly large value is unknown, and the largest plausible one is not', () => {
    const page = (requests: string, usage: string) =>
      `vllm:num_requests_waiting ${requests}\nvllm:num_requests_running ${requests}\nvllm:kv_cache_usage_perc ` +
      `${usage}\n`;
    const unknown = { waiting: undefined, running: undefined, kvUsage: undefined };
    expect(signalsOf('vllm', page('1e26', '45.2'))).toMatchObject(unknown);
    expect(signalsOf('vllm', page('1000001', '1.6'))).toMatchObject(unknown);
    expect(signalsOf('vllm', page('1000000', '1.01'))).toMatchObject({ waiting: 1e6, running: 1e6, kvUsage: 1.01 });
  });

  it.each([
    ['vllm', 'vllm:num_requests_running{engine="0",model_name="llama"} 4\n'],
    ['sglang', 'sglang:num_running_reqs{model_name="llama"} 4\n'],
    ['trtllm-serve', 'trtllm_num_requests_running{model_name="llama"} 4\n'],
  ])('%s names its model', (engine, page) => {
    expect(signalsOf(engine, page).model).toBe('llama');
    expect(signalsOf(engine, page.replace(/\{.*\}/, '')).model).toBeUndefined();
  });

  it('the use of the cache is read under its earlier name where the present one is not on the page', () => {
    const earlier = 'vllm:num_requests_running 1\nvllm:gpu_cache_usage_perc 0.4\n';
    expect(signalsOf('vllm', earlier).kvUsage).toBe(0.4);
    expect(signalsOf('vllm', `${earlier}vllm:kv_cache_usage_perc 0\n`).kvUsage).toBe(0);
  });

  it.each([
    ['the size of a block', '', 16, 2_048],
    ['the blocks of full attention', 'effective_attention_block_size="64"', 64, 512],
    ['the tokens of a hash', 'effective_attention_block_size="64",hash_block_size="32"', 32, 1_024],
    ['the unit of matches', 'hash_block_size="64",prefix_match_unit="32",num_cpu_blocks="None"', 32, 1_024],
    ['the alignment of hits', 'prefix_match_unit="32",cache_hit_alignment_tokens="128"', 128, 256],
    ['no unit that is None', 'cache_hit_alignment_tokens="None",hash_block_size="None"', 16, 2_048],
    ['the tokens of the cache', 'kv_cache_size_tokens="12000"', 16, 750],
    ['the tokens of the cache in units', 'kv_cache_size_tokens="12000",prefix_match_unit="32"', 32, 375],
  ])('hits of vLLM end at %s', (_, labels, blockTokens, blockCount) => {
    const page = `vllm:cache_config_info{block_size="16",num_gpu_blocks="2048",${labels}} 1\n`;
    expect(signalsOf('vllm', page)).toMatchObject({ blockTokens, blockCount });
  });

  it('a cache with a unit of hits and without its own block size has an unknown number of blocks', () => {
    const page = 'vllm:cache_config_info{num_gpu_blocks="2048",hash_block_size="32"} 1\n';
    expect(signalsOf('vllm', page)).toMatchObject({ blockTokens: 32, blockCount: undefined });
  });

  it('figures of vLLM tell deferred and refused requests, external caches, and the tiers of cached tokens', () => {
    const page =
      'vllm:num_requests_waiting 5\nvllm:num_requests_waiting_by_reason{reason="capacity"} 3\n' +
      'vllm:num_requests_waiting_by_reason{reason="deferred"} 2\n' +
      'vllm:admission_rejections_total{reason="max_num_queued_reqs"} 4\n' +
      'vllm:admission_rejections_total{reason="max_num_queued_tokens"} 1\n' +
      'vllm:external_prefix_cache_queries_total 100\nvllm:external_prefix_cache_hits_total 30\n' +
      'vllm:prompt_tokens_cached_by_source_total{source="device"} 70\n' +
      'vllm:prompt_tokens_cached_by_source_total{source="host"} 20\n' +
      'vllm:prompt_tokens_cached_by_source_total{source="p2p"} 10\n';
    const { waiting, figures } = signalsOf('vllm', page);
    expect(waiting).toBe(5);
    expect(figures).toEqual({
      ...{ deferred: 2, refused: 5, externalQueries: 100, externalHits: 30 },
      cachedBySource: [70, 20, undefined, 10],
    });
  });

  it('an engine that has none of these metrics tells no figures', () => {
    expect(signalsOf('sglang', 'sglang:num_queue_reqs 1\n').figures).toBeUndefined();
  });

  it('signals of a page sum the queues of several series and take the fullest cache', () => {
    const page =
      'vllm:num_requests_waiting{engine="0"} 1\nvllm:num_requests_waiting{engine="1"} ' +
      '9\nvllm:num_requests_running{engine="0"} 2\nvllm:num_requests_running{engine="1"} ' +
      '3\nvllm:kv_cache_usage_perc{engine="0"} 0.2\nvllm:kv_cache_usage_perc{engine="1"} 0.7\n';
    expect(signalsOf('vllm', page)).toMatchObject({ waiting: 10, running: 5, kvUsage: 0.7 });
  });

  it('signals of a page are unknown where the page has none', () => {
    expect(signalsOf('vllm', 'other 1\n')).toEqual({
      waiting: undefined,
      running: undefined,
      kvUsage: undefined,
      blockTokens: undefined,
      blockCount: undefined,
      adapters: undefined,
    });
  });

  for (const value of ['NaN', '+Inf', '-Inf', '-1']) {
    it(`signals of a page are unknown where the page says ${value}`, () => {
      expect(signalsOf('vllm', `vllm:num_requests_waiting ${value}\nvllm:num_requests_running 1\n`)).toMatchObject({
        waiting: undefined,
        running: 1,
      });
    });
  }

  it('signals of a page leave the cache size unknown where its label is no number', () => {
    const page = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1\n';
    expect(signalsOf('vllm', page)).toMatchObject({ blockTokens: 16, blockCount: undefined });
  });

  it('signals of a page hold the adapters of the newest series', () => {
    const series = (running: string, waiting: string, value: number) =>
      `vllm:lora_requests_info{running_lora_adapters="${running}",waiting_lora_adapters="${waiting}",max_lora="4"} ` +
      `${value}\n`;
    const { adapters } = signalsOf('vllm', series('old', '', 100) + series('a, b', 'c', 200));
    expect(adapters).toEqual({ running: ['a', 'b'], waiting: ['c'], max: 4 });
  });

  it('an engine shows the adapters of every series of its gauge, once as long as they are the same', () => {
    const series = (running: string, waiting: string, value: number) =>
      `vllm:lora_requests_info{running_lora_adapters="${running}",waiting_lora_adapters="${waiting}",max_lora="4"} ` +
      `${value}\n`;
    const { engine } = table.choose({});
    const memory = { labels: undefined, adapters: undefined, shown: '' };
    const shown = (page: string) => engine.newlyShown(scanText(page, engine.wanted), memory);
    const page = series('fast', '', 100) + series('fast, slow', 'late', 200) + series('', '', 300);
    expect(shown(page)).toEqual(['fast', 'slow', 'late']);
    expect(shown(page)).toEqual([]);
    expect(shown(page + series('other', '', 400))).toEqual(['fast', 'slow', 'late', 'other']);
  });

  it('signals of a page hold empty lists while no adapter is in use', () => {
    const page =
      'vllm:lora_requests_info{running_lora_adapters="",waiting_lora_adapters="",max_lora="2"} 1700000000.5\n';
    expect(signalsOf('vllm', page).adapters).toEqual({ running: [], waiting: [], max: 2 });
  });

  it('signals of a page give the same adapters object as long as the labels are the same', () => {
    const { engine } = table.choose({});
    const memory = { labels: undefined, adapters: undefined, shown: '' };
    const page = (running: string) =>
      scanText(
        `vllm:lora_requests_info{running_lora_adapters="${running}",waiting_lora_adapters="",max_lora="2"} 1\n`,
        engine.wanted,
      );
    const first = engine.read(page('a'), memory).adapters;
    expect(engine.read(page('a'), memory).adapters).toBe(first);
    expect(engine.read(page('b'), memory).adapters).toEqual({ running: ['b'], waiting: [], max: 2 });
  });
});

describe('EngineTable', () => {
  it('EngineTable chooses by label, by the older label, and vllm without any', () => {
    const name = (labels: Record<string, string>) => table.choose(labels).engine.name;
    expect(name({ 'llm-d.ai/engine-type': 'sglang' })).toBe('sglang');
    expect(name({ 'inference.networking.k8s.io/engine-type': 'triton' })).toBe('triton');
    expect(name({ 'llm-d.ai/engine-type': 'sglang', 'inference.networking.k8s.io/engine-type': 'triton' })).toBe(
      'sglang',
    );
    expect(name({})).toBe('vllm');
  });

  it('EngineTable says that an engine is unknown and serves the default', () => {
    const { engine, known, asked } = table.choose({ 'llm-d.ai/engine-type': 'mystery' });
    expect([engine.name, known, asked]).toEqual(['vllm', false, 'mystery']);
  });

  it('EngineTable takes configured engines, label and default', () => {
    const engines = new EngineTable({
      engineConfigs: [
        { name: 'mine', queuedRequestsSpec: 'my_queue{kind=all}' },
        { name: 'vllm', queuedRequestsSpec: 'other_queue', kvUsageSpec: '' },
      ],
      engineLabelKey: 'engine',
      defaultEngine: 'mine',
    });
    expect(engines.choose({}).engine.wanted.slice(0, 1)).toEqual([
      { name: 'my_queue', labels: { kind: 'all' }, aggregate: 'sum' },
    ]);
    expect(
      engines
        .choose({ engine: 'vllm' })
        .engine.wanted.slice(0, 1)
        .map((metric) => metric.name),
    ).toEqual(['other_queue']);
  });

  const wrong: [string, ConstructorParameters<typeof EngineTable>[0]][] = [
    ['engineConfigs[0].queuedRequestsSpec: "a b"', { engineConfigs: [{ name: 'x', queuedRequestsSpec: 'a b' }] }],
    ['engineConfigs[0].name: is empty', { engineConfigs: [{ name: '' }] }],
    ['engineConfigs[1].name: "x" stands twice', { engineConfigs: [{ name: 'x' }, { name: 'x' }] }],
    ['defaultEngine: "nope" is unknown: choose one of vllm, sglang', { defaultEngine: 'nope' }],
  ];
  for (const [message, options] of wrong) {
    it(`EngineTable refuses with: ${message}`, () => {
      expect(() => new EngineTable(options)).toThrow(message);
    });
  }
});

describe('parseMetricSpec', () => {
  const good: [string, string, Record<string, string>][] = [
    ['vllm:queue', 'vllm:queue', {}],
    [' name{} ', 'name', {}],
    ['name{a=b}', 'name', { a: 'b' }],
    ['name{ a = b , c="d e" }', 'name', { a: 'b', c: 'd e' }],
  ];
  for (const [spec, name, labels] of good) {
    it(`parseMetricSpec reads ${spec}`, () => expect(parseMetricSpec(spec, 'f')).toEqual({ name, labels }));
  }
  for (const spec of [
    '',
    '1a',
    'a{',
    'a{b}',
    'a{b=}',
    'a{b=c,}',
    'a{b=c=d}',
    'a{b=c}x',
    'a{b=c,b=d}',
    'a{b="c}',
    'a{b:c=d}',
  ]) {
    it(`parseMetricSpec refuses ${spec || 'nothing'}`, () =>
      expect(() => parseMetricSpec(spec, 'field')).toThrow(/^field: /));
  }
});
