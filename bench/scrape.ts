import { ExpositionScanner, type WantedMetric } from '../dist/src/core/exposition-scanner.js';
import { attachCore, createPoolMemory, defaultPoolSizes } from '../dist/src/core/memory.js';

const sizes = { ...defaultPoolSizes, endpoints: 64, indexBlocks: 1024, requests: 64, threads: 1, scans: 64 };

const wanted: readonly WantedMetric[] = [
  { name: 'vllm:num_requests_waiting', aggregate: 'sum' },
  { name: 'vllm:num_requests_running', aggregate: 'sum' },
  { name: 'vllm:kv_cache_usage_perc', aggregate: 'max' },
  {
    name: 'vllm:lora_requests_info',
    aggregate: 'latest-labels',
    wantLabels: ['running_lora_adapters', 'waiting_lora_adapters', 'max_lora'],
  },
  { name: 'vllm:cache_config_info', aggregate: 'latest-labels', wantLabels: ['block_size', 'num_gpu_blocks'] },
];

const labels = 'engine="0",model_name="Llama-3.1-8B"';

function family(name: string, type: string, samples: readonly string[]): string {
  return `# HELP ${name} What ${name} means, in a few words.\n# TYPE ${name} ${type}\n${samples.join('')}`;
}

function histogram(name: string, buckets: number): string {
  const bounds = Array.from({ length: buckets }, (_, i) => String(0.001 * 2 ** (i / 2)).slice(0, 8)).concat('+Inf');
  const series = bounds.map((le, i) => `${name}_bucket{${labels},le="${le}"} ${i * 17}.0\n`);
  return family(name, 'histogram', [
    ...series,
    `${name}_count{${labels}} 901.0\n`,
    `${name}_sum{${labels}} 4.25e+02\n`,
  ]);
}

/** A page as vLLM writes it: a few gauges and counters, then histograms; about 36 KB and 350 samples. */
function page(): Buffer {
  const gauge = (name: string, value: string) => family(name, 'gauge', [`${name}{${labels}} ${value}\n`]);
  const histograms = [
    'time_to_first_token_seconds',
    'time_per_output_token_seconds',
    'inter_token_latency_seconds',
    'e2e_request_latency_seconds',
    'request_queue_time_seconds',
    'request_prefill_time_seconds',
    'request_decode_time_seconds',
    'request_inference_time_seconds',
    'request_prompt_tokens',
    'request_generation_tokens',
    'iteration_tokens_total',
    'request_params_n',
    'request_max_num_generation_tokens',
  ];
  return Buffer.from(
    [
      gauge('python_info', '1.0'),
      gauge('process_resident_memory_bytes', '1.7179869184e+10'),
      gauge('vllm:num_requests_running', '12.0'),
      gauge('vllm:num_requests_waiting', '3.0'),
      gauge('vllm:num_requests_waiting_by_reason', '3.0'),
      gauge('vllm:kv_cache_usage_perc', '0.4375012207'),
      family('vllm:lora_requests_info', 'gauge', [
        'vllm:lora_requests_info{max_lora="4",running_lora_adapters="sql,chat",waiting_lora_adapters=""} ' +
          '1.7600000005e+09\n',
      ]),
      family('vllm:cache_config_info', 'gauge', [
        'vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine="0",' +
          'gpu_memory_utilization="0.9",num_gpu_blocks="27500",swap_space="4"} 1.0\n',
      ]),
      ...histograms.map((name) => histogram(`vllm:${name}`, 23)),
    ].join(''),
  );
}

/** One operation is one whole page, from bytes to values. */
async function scrape() {
  const scanner = new ExpositionScanner(attachCore(createPoolMemory(sizes), 0));
  const query = scanner.compile(wanted);
  const bytes = page();
  return {
    run: () => {
      scanner.begin(query);
      scanner.feed(bytes);
      if (scanner.end().values[1] !== 12) throw new Error('the page was misread');
    },
    bytes: bytes.length,
    samples: bytes.toString().match(/^[^#]/gm)!.length,
  };
}

export const benches: { name: string; setup(): Promise<{ run: () => void; opsPerRun?: number }> }[] = [
  { name: 'scrape/36KB', setup: scrape },
];
