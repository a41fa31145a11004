import { CACHE_SOURCES, type EngineFigures } from '../../contract/engine-figures.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';
import type { EngineConfig } from './builtin-engines.js';
import { parseMetricSpec } from './metric-spec.js';

/** One metric that a scan looks for, in the scanner's terms. */
export interface WantedMetric {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  /**
   * Over several series of the name: their sum, their maximum, the labels of the series with the largest value, or the
   * distinct names of comma lists in the labels of all, as one comma list (`set-names`: of those with a value above 0).
   */
  readonly aggregate: 'sum' | 'max' | 'latest-labels' | 'names' | 'set-names';
  readonly wantLabels?: readonly string[];
}

/** Result of a scan: one element per wanted metric, in its order. */
export interface ScannedPage {
  readonly found: readonly boolean[];
  readonly values: Float64Array;
  readonly labels: readonly (readonly string[] | undefined)[];
}

export type Adapters = NonNullable<EndpointSignals['adapters']>;
type Residency = NonNullable<EndpointSignals['residency']>;

/** The adapters on an endpoint's last page, kept so that equal labels are not parsed again. */
export interface AdapterMemory {
  labels: readonly string[] | undefined;
  adapters: Adapters | undefined;
  /** Names in any series of the gauge, as the page listed them. */
  shown: string;
}

/** Metric of every Prometheus client; absent from the pages of an engine with several API processes. */
const START_TIME = 'process_start_time_seconds';

/** Label of the metrics of vLLM, SGLang and TensorRT-LLM that names the served model. */
const MODEL_LABEL = 'model_name';

/**
 * Requests that one endpoint can plausibly run or have waiting, and the plausible share of its KV cache in use (engines
 * round, and a page of percents would be read as a hundred full caches). Larger values are of a broken page and count
 * as unknown.
 */
const REQUESTS_MAX = 1_000_000;
const KV_USAGE_MAX = 1.5;

const WHOLE_MAX = 0xffff_ffff;
/**
 * Labels of vLLM's cache information that say at which tokens a hit can end, the most exact first. Its `block_size` is
 * that of one kind of layer; hashes can be finer, and those of a parallel decode context coarser.
 */
const HIT_LABELS = [
  ...['cache_hit_alignment_tokens', 'prefix_match_unit', 'hash_block_size', 'effective_attention_block_size'],
] as const;
/** Tokens of the whole cache, which blocks of unequal layers do not tell. */
const CAPACITY_LABEL = 'kv_cache_size_tokens';

const ADAPTER_LISTS = ['running_lora_adapters', 'waiting_lora_adapters'] as const;
/** Levels and pins of loraLoadedSpec, each read as the adapters of the series with these labels. */
const LOADED_SERIES = [{ level: 'gpu' }, { level: 'cpu' }, { level: 'gpu', pinned: 'true' }] as const;
const ADAPTER_LABELS = [...ADAPTER_LISTS, 'max_lora'] as const;

/** An engine's metrics, compiled to what the scanner wants, and the way back from a scanned page to signals. */
export class Engine {
  readonly name: string;
  readonly wanted: readonly WantedMetric[];
  /** Positions in `wanted`; -1 = the engine does not tell. */
  readonly #waiting: number;
  readonly #running: number;
  readonly #kvUsage: number;
  readonly #earlierKvUsage: number;
  readonly #awake: number;
  readonly #model: number;
  readonly #adapters: number;
  readonly #shown: number;
  readonly #cacheInfo: number;
  readonly #blockTokens: number;
  readonly #blockCount: number;
  readonly #start: number;
  readonly #deferred: number;
  readonly #refused: number;
  readonly #externalQueries: number;
  readonly #externalHits: number;
  /** In the order of CACHE_SOURCES. */
  readonly #cachedBySource: readonly number[];
  /** Of every attribute that plugins read; -1 = the engine does not tell it, null = it comes from elsewhere. */
  readonly #attributes: readonly (number | null)[];
  /** Of loaded adapters: by LOADED_SERIES, their count on the GPU, and its slots; empty = they are not read. */
  readonly #loaded: readonly number[] = [];

  /**
   * @param field where the configuration stands, for error messages
   * @param attributes keys of the custom metrics that plugins read; null = a value that comes from elsewhere
   * @param readsLoaded whether a plugin reads which adapters are loaded
   */
  constructor(
    config: EngineConfig,
    field: string,
    attributes: readonly (string | null)[] = [],
    readsLoaded: boolean = false,
  ) {
    const wanted: WantedMetric[] = [];
    const want = (
      key: Exclude<keyof EngineConfig, 'customMetrics'>,
      aggregate: WantedMetric['aggregate'],
      wantLabels?: readonly string[],
      matched: Readonly<Record<string, string>> = {},
    ) => {
      const spec = config[key];
      if (spec === undefined || spec === '') return -1;
      const metric = parseMetricSpec(spec, `${field}.${key}`);
      const labels = { ...metric.labels, ...matched };
      return wanted.push({ ...metric, labels, aggregate, ...(wantLabels === undefined ? {} : { wantLabels }) }) - 1;
    };
    this.name = config.name;
    this.#waiting = want('queuedRequestsSpec', 'sum');
    this.#running = want('runningRequestsSpec', 'sum');
    this.#kvUsage = want('kvUsageSpec', 'max');
    this.#earlierKvUsage = want('earlierKvUsageSpec', 'max');
    this.#awake = want('awakeSpec', 'max');
    const named = config.runningRequestsSpec ? 'runningRequestsSpec' : 'queuedRequestsSpec';
    this.#model = want(named, 'latest-labels', [MODEL_LABEL]);
    this.#adapters = want('loraSpec', 'latest-labels', ADAPTER_LABELS);
    this.#shown = want('loraSpec', 'names', ADAPTER_LISTS);
    this.#cacheInfo = want('cacheInfoSpec', 'latest-labels', [
      config.cacheBlockSizeLabelName || 'block_size',
      config.cacheNumBlocksLabelName || 'num_gpu_blocks',
      CAPACITY_LABEL,
      ...HIT_LABELS,
    ]);
    this.#blockTokens = want('cacheBlockSizeSpec', 'max');
    this.#blockCount = want('cacheNumBlocksSpec', 'max');
    if (readsLoaded) {
      this.#loaded = [
        ...LOADED_SERIES.map((series) => want('loraLoadedSpec', 'set-names', ['adapter_name'], series)),
        want('loraGPULoadedSpec', 'max'),
        want('loraGPUSlotsSpec', 'max'),
      ];
    }
    this.#deferred = want('deferredRequestsSpec', 'sum');
    this.#refused = want('refusedRequestsSpec', 'sum');
    this.#externalQueries = want('externalQueriesSpec', 'sum');
    this.#externalHits = want('externalHitsSpec', 'sum');
    this.#cachedBySource = CACHE_SOURCES.map((source) => want('cachedBySourceSpec', 'sum', undefined, { source }));
    this.#start = wanted.push({ name: START_TIME, aggregate: 'max' }) - 1;
    this.#attributes = attributes.map((attribute) => {
      if (attribute === null) return null;
      const at = config.customMetrics?.findIndex(({ attributeKey }) => attributeKey === attribute) ?? -1;
      if (at < 0) return -1;
      const metric = parseMetricSpec(config.customMetrics![at]!.metricSpec, `${field}.customMetrics[${at}].metricSpec`);
      return wanted.push({ ...metric, aggregate: 'max' }) - 1;
    });
    this.wanted = wanted;
  }

  /** Returns whether a scanned page has none of the engine's own metrics. */
  isForeign({ found }: ScannedPage): boolean {
    return !found.some((one, index) => one && index !== this.#start);
  }

  /** Signals of a scanned page. What is not on it, or is NaN, negative or implausibly large, is unknown. */
  read(page: ScannedPage, memory: AdapterMemory): EndpointSignals {
    const cache = this.#cache(page);
    return {
      waiting: value(page, this.#waiting, REQUESTS_MAX),
      running: value(page, this.#running, REQUESTS_MAX),
      kvUsage: value(page, this.#kvUsage, KV_USAGE_MAX) ?? value(page, this.#earlierKvUsage, KV_USAGE_MAX),
      asleep: asleep(value(page, this.#awake, 1)),
      model: (this.#model < 0 ? undefined : page.labels[this.#model]?.[0]) || undefined,
      ...cache,
      startSeconds: value(page, this.#start, Number.MAX_SAFE_INTEGER),
      ...(this.#attributes.length === 0
        ? {}
        : { attributes: this.#attributes.map((index) => (index === null ? null : finite(page, index))) }),
      adapters: this.#adapters < 0 ? undefined : readAdapters(page.labels[this.#adapters], memory),
      ...(this.#loaded.length === 0 ? {} : { residency: readLoaded(page, this.#loaded) }),
      figures: this.#figures(page),
    };
  }

  /** Tokens at which a hit can end, and how many such blocks the cache holds. */
  #cache(page: ScannedPage): { blockTokens: number | undefined; blockCount: number | undefined } {
    const [size, count, capacity, ...hits] = (this.#cacheInfo < 0 ? undefined : page.labels[this.#cacheInfo]) ?? [];
    const engineBlock = whole(size) ?? whole(value(page, this.#blockTokens, WHOLE_MAX));
    const engineCount = whole(count) ?? whole(value(page, this.#blockCount, WHOLE_MAX));
    const blockTokens = hits.map(whole).find((tokens) => tokens !== undefined) ?? engineBlock;
    const tokens = whole(capacity) ?? (engineBlock ?? Number.NaN) * (engineCount ?? Number.NaN);
    // NaN where the size or the tokens are unknown.
    const blockCount = whole(Math.floor(tokens / (blockTokens ?? Number.NaN)));
    return { blockTokens, blockCount: blockCount ?? (blockTokens === engineBlock ? engineCount : undefined) };
  }

  #figures(page: ScannedPage): EngineFigures | undefined {
    const all = [this.#deferred, this.#refused, this.#externalQueries, ...this.#cachedBySource];
    if (!all.some((index) => page.found[index] === true)) return undefined;
    const count = (index: number) => value(page, index, Number.MAX_SAFE_INTEGER);
    return {
      deferred: value(page, this.#deferred, REQUESTS_MAX),
      refused: count(this.#refused),
      externalQueries: count(this.#externalQueries),
      externalHits: count(this.#externalHits),
      cachedBySource: this.#cachedBySource.map(count),
    };
  }

  /**
   * Adapters in any series of the gauge; none when they are those of the last page. vLLM keeps a series of each set of
   * adapters that ran together, and only the newest shows the present: an adapter of short requests is mostly in older
   * ones.
   */
  newlyShown(page: ScannedPage, memory: AdapterMemory): readonly string[] {
    const shown = (this.#shown < 0 ? undefined : page.labels[this.#shown]?.[0]) ?? '';
    if (shown === memory.shown) return [];
    memory.shown = shown;
    return names(shown);
  }
}

function asleep(awake: number | undefined): boolean | undefined {
  return awake === undefined ? undefined : awake === 0;
}

/** An attribute may be negative. */
function finite(page: ScannedPage, index: number): number | undefined {
  return index >= 0 && page.found[index] === true && Number.isFinite(page.values[index])
    ? page.values[index]
    : undefined;
}

function value(page: ScannedPage, index: number, max: number): number | undefined {
  if (index < 0 || page.found[index] !== true) return undefined;
  const number = page.values[index]!;
  return number >= 0 && number <= max ? number : undefined;
}

/** A whole number from 1 to 2^32 - 1; anything else ("None", 0, fractions) is unknown. */
function whole(text: string | number | undefined): number | undefined {
  const number = typeof text === 'string' ? (/^\d{1,10}$/.test(text) ? Number(text) : 0) : (text ?? 0);
  return Number.isInteger(number) && number >= 1 && number <= WHOLE_MAX ? number : undefined;
}

/** Comma lists of adapter names; without `max_lora` the room for more is taken as none. */
function readAdapters(labels: readonly string[] | undefined, memory: AdapterMemory): Adapters | undefined {
  if (labels === undefined) return undefined;
  const known = memory.labels;
  if (known !== undefined && labels[0] === known[0] && labels[1] === known[1] && labels[2] === known[2]) {
    return memory.adapters;
  }
  memory.labels = [...labels];
  memory.adapters = { running: names(labels[0]), waiting: names(labels[1]), max: whole(labels[2]) ?? 0 };
  return memory.adapters;
}

/** Adapters that are loaded; undefined = the page has none of the gauges. */
function readLoaded(page: ScannedPage, [gpu, cpu, pinned, onGpu, slots]: readonly number[]): Residency | undefined {
  if (![gpu, cpu, onGpu, slots].some((index) => index! >= 0 && page.found[index!])) return undefined;
  const listed = (index: number | undefined) => names(index! < 0 ? undefined : page.labels[index!]?.[0]);
  return {
    gpu: listed(gpu),
    cpu: listed(cpu),
    pinned: listed(pinned),
    onGpu: value(page, onGpu!, REQUESTS_MAX),
    slots: value(page, slots!, REQUESTS_MAX),
  };
}

function names(list: string | undefined): string[] {
  if (list === undefined || list === '') return [];
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
