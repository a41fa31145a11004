import { BLOCK_TOKENS } from './block-hash.js';
import type { Engine, Sequence } from './engine.js';

/** A cumulative histogram in Prometheus' text exposition. */
class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count++;
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at >= 0) this.#counts[at]!++;
  }

  lines(name: string, labels: string): string {
    let below = 0;
    const buckets = this.#bounds.map((bound, index) => {
      below += this.#counts[index]!;
      return `${name}_bucket{${labels},le="${bound}"} ${below}\n`;
    });
    return (
      `${buckets.join('')}${name}_bucket{${labels},le="+Inf"} ${this.#count}\n${name}_sum{${labels}} ` +
      `${this.#sum}\n${name}_count{${labels}} ${this.#count}\n`
    );
  }
}

const SECONDS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const REQUEST_SECONDS = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480];
const TOKENS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];

/** Names of LoRA adapters the server has, and how many may run at once. */
export interface LoraOptions {
  readonly max: number;
  readonly names: readonly string[];
}

/** Sets of adapters whose series a page keeps; vLLM bounds them by nothing. */
const ADAPTER_SERIES_MAX = 1_000;

/** The `/metrics` page of a simulated server: names, labels and types of vLLM's. */
export class MetricsPage {
  readonly #engine: Engine;
  readonly #labels: string;
  readonly #lora: LoraOptions | undefined;
  /** Time in seconds of each series of the gauge of adapters, by its labels, the newest last. */
  readonly #adapterSeries = new Map<string, number>();
  readonly #firstToken = new Histogram(SECONDS);
  readonly #perToken = new Histogram(SECONDS);
  readonly #queue = new Histogram(REQUEST_SECONDS);
  readonly #whole = new Histogram(REQUEST_SECONDS);
  readonly #promptTokens = new Histogram(TOKENS);
  readonly #outputTokens = new Histogram(TOKENS);

  constructor(engine: Engine, model: string, lora: LoraOptions | undefined) {
    this.#engine = engine;
    this.#labels = `engine="0",model_name="${escapeLabel(model)}"`;
    this.#lora = lora;
  }

  /**
   * Takes a step of the engine: the gauge of adapters has a series of what runs and waits now, and keeps the others.
   */
  stepFormed(): void {
    if (this.#lora === undefined) return;
    const { max, names } = this.#lora;
    const among = (sequences: readonly Sequence[]) => [
      ...new Set(sequences.map((sequence) => sequence.request.model).filter((model) => names.includes(model))),
    ];
    const running = among(this.#engine.running).join(',');
    const waiting = among(this.#engine.waiting).join(',');
    const labels = `max_lora="${max}",running_lora_adapters="${running}",waiting_lora_adapters="${waiting}"`;
    this.#adapterSeries.delete(labels);
    this.#adapterSeries.set(labels, (performance.timeOrigin + performance.now()) / 1000);
    if (this.#adapterSeries.size > ADAPTER_SERIES_MAX) {
      this.#adapterSeries.delete(this.#adapterSeries.keys().next().value!);
    }
  }

  /** Counts a sequence that has ended by itself. */
  finished(sequence: Sequence): void {
    const seconds = (from: number, to: number) => Math.max(0, to - from) / 1000;
    this.#queue.observe(seconds(sequence.arrivedAt, sequence.startedAt));
    this.#firstToken.observe(seconds(sequence.arrivedAt, sequence.firstTokenAt));
    this.#whole.observe(seconds(sequence.arrivedAt, sequence.lastTokenAt));
    this.#promptTokens.observe(sequence.promptTokens);
    this.#outputTokens.observe(sequence.generatedTokens);
    if (sequence.generatedTokens > 1) {
      this.#perToken.observe(seconds(sequence.firstTokenAt, sequence.lastTokenAt) / (sequence.generatedTokens - 1));
    }
  }

  /** The present page. */
  text(): string {
    const { cache, totals, running, leftWaiting } = this.#engine;
    return [
      this.#gauge('num_requests_running', 'Number of requests in model execution batches.', running.length),
      this.#gauge('num_requests_waiting', 'Number of requests waiting to be processed.', leftWaiting),
      this.#gauge('kv_cache_usage_perc', 'KV-cache usage. 1 means 100 percent usage.', cache.used / cache.capacity),
      this.#counter(
        'prefix_cache_queries',
        'Prefix cache queries, in terms of number of queried tokens.',
        totals.prefixQueries,
      ),
      this.#counter('prefix_cache_hits', 'Prefix cache hits, in terms of number of cached tokens.', totals.prefixHits),
      this.#counter('prompt_tokens', 'Number of prefill tokens processed.', totals.prompt),
      this.#counter('generation_tokens', 'Number of generation tokens processed.', totals.generated),
      this.#counter('num_preemptions', 'Cumulative number of preemption from the engine.', 0),
      head('request_success_total', 'Count of successfully processed requests.', 'counter'),
      `vllm:request_success_total{${this.#labels},finished_reason="stop"} ${totals.finishedByStop}\n`,
      `vllm:request_success_total{${this.#labels},finished_reason="length"} ${totals.finishedByLength}\n`,
      `vllm:request_success_total{${this.#labels},finished_reason="abort"} ${totals.aborted}\n`,
      this.#histogram('time_to_first_token_seconds', 'Histogram of time to first token in seconds.', this.#firstToken),
      this.#histogram('time_per_output_token_seconds', 'Histogram of time per output token.', this.#perToken),
      this.#histogram('request_queue_time_seconds', 'Histogram of time spent in WAITING phase.', this.#queue),
      this.#histogram('e2e_request_latency_seconds', 'Histogram of e2e request latency in seconds.', this.#whole),
      this.#histogram('request_prompt_tokens', 'Number of prefill tokens processed.', this.#promptTokens),
      this.#histogram('request_generation_tokens', 'Number of generation tokens processed.', this.#outputTokens),
      head('cache_config_info', 'Information of the LLMEngine CacheConfig.', 'gauge'),
      `vllm:cache_config_info{block_size="${BLOCK_TOKENS}",cache_dtype="auto",enable_prefix_caching="True",` +
        `engine="0",gpu_memory_utilization="0.9",num_gpu_blocks="${cache.capacity}",` +
        'prefix_caching_hash_algo="sha256"} 1.0\n',
      this.#loraInfo(),
    ].join('');
  }

  #gauge(name: string, help: string, value: number): string {
    return `${head(name, help, 'gauge')}vllm:${name}{${this.#labels}} ${value}\n`;
  }

  #counter(name: string, help: string, value: number): string {
    return `${head(`${name}_total`, help, 'counter')}vllm:${name}_total{${this.#labels}} ${value}\n`;
  }

  #histogram(name: string, help: string, histogram: Histogram): string {
    return head(name, help, 'histogram') + histogram.lines(`vllm:${name}`, this.#labels);
  }

  #loraInfo(): string {
    if (this.#adapterSeries.size === 0) return '';
    const series = [...this.#adapterSeries].map(
      ([labels, seconds]) => `vllm:lora_requests_info{${labels}} ${seconds}\n`,
    );
    return head('lora_requests_info', 'Running stats on lora requests.', 'gauge') + series.join('');
  }
}

function head(name: string, help: string, type: string): string {
  return `# HELP vllm:${name} ${help}\n# TYPE vllm:${name} ${type}\n`;
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
