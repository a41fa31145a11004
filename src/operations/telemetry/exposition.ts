import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  type GaugeConfiguration,
  type MetricObjectWithValues,
  type MetricValue,
  Histogram as ObservedHistogram,
  Registry,
} from 'prom-client';
import type { Endpoint } from '../../contract/endpoint.js';
import { endpointLabels } from '../../contract/endpoint-labels.js';
import { CORE } from '../../core/core-names.js';
import type { CoreInstance } from '../../core/memory.js';
import { CellFamilies, PIECE_CHARACTERS } from './cell-families.js';
import { labelValue } from './label-values.js';
import { PREFIX_PRODUCER } from './metric-table.js';
import { type PoolSummary, type Spread, summarisePool } from './pool-gauges.js';
import type { VouchedNames } from './shown-names.js';

export interface ExpositionOptions {
  /** The control thread's instance. */
  readonly core: CoreInstance;
  /** Value of the label `name` of the pool's gauges. */
  readonly poolName: string;
  /** Endpoint of a slot; undefined when the slot is free. */
  readonly endpointOf: (slot: number) => Endpoint | undefined;
  /** Whether the metrics of ext_proc streams are shown (`--enable-grpc-stream-metrics`). */
  readonly streamMetrics: boolean;
  /** The producer that fills the prefix index. */
  readonly prefixProducer?: { readonly name: string; readonly type: string } | undefined;
  /** Undefined = the page says nothing of the build. */
  readonly build: { readonly version: string; readonly commit: string; readonly buildRef: string } | undefined;
  /** Whether metrics of the process and of Node are shown. Default: true; a test may leave them out. */
  readonly processMetrics?: boolean;
  /** Milliseconds of a clock that does not go back; for tests. */
  readonly now?: (() => number) | undefined;
}

/**
 * Sample of a metric without a value: the event loop has no mean delay when nothing was sampled since the last page.
 */
const VALUELESS_LINE = /^[^#\n].* Nan\n/gm;

/** One value of a metric that is read for each page. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric whose values are read for each page. */
export interface ReadMetric {
  readonly name: string;
  readonly help: string;
  /** Names of the labels; every sample has exactly these. */
  readonly labels?: readonly string[];
  /** The whole state: a series that is missing disappears from the page. Totals of a counter must not fall. */
  readonly read: () => Iterable<Sample>;
}

/** Quantiles computed elsewhere: samples as of a gauge, under the type that the label `quantile` belongs to. */
class Summary extends Gauge {
  override async get(): Promise<MetricObjectWithValues<MetricValue<string>>> {
    // The enumeration of prom-client's types has no values at run time.
    return { ...(await super.get()), type: 'summary' as never };
  }
}

/** A histogram that is kept elsewhere: cumulative counts up to a value, the last of them without an end. */
export interface ReadHistogram {
  readonly name: string;
  readonly help: string;
  /** Undefined = no series. Counts must not fall. */
  readonly read: () =>
    | { readonly buckets: readonly { readonly upTo: number; readonly count: number }[]; readonly sum: number }
    | undefined;
}

/** Its samples, as of a gauge, under the type of a histogram. The reference names a type after its class. */
class Histogram extends Gauge {
  readonly #metric: ReadHistogram;

  constructor(metric: ReadHistogram, registry: Registry) {
    super({ name: metric.name, help: metric.help, registers: [registry] });
    this.#metric = metric;
  }

  override async get(): Promise<MetricObjectWithValues<MetricValue<string>>> {
    const { name, read } = this.#metric;
    const found = read();
    const sample = (suffix: string, value: number, labels = {}) => ({ metricName: `${name}_${suffix}`, value, labels });
    const values =
      found === undefined
        ? []
        : [
            ...found.buckets.map(({ upTo, count }) => sample('bucket', count, { le: limitText(upTo) })),
            sample('sum', found.sum),
            sample('count', found.buckets.at(-1)?.count ?? 0),
          ];
    return { ...(await super.get()), type: 'histogram' as never, values };
  }
}

function limitText(upTo: number): string {
  return Number.isFinite(upTo) ? String(Number(upTo.toPrecision(3))) : '+Inf';
}

/** The metrics page: counters in shared memory, the pool's gauges, and registered metrics. */
export class MetricsExposition {
  readonly registry = new Registry();
  readonly #cells: CellFamilies;
  readonly #core: CoreInstance;
  readonly #endpointOf: (slot: number) => Endpoint | undefined;
  /** Read once per page. */
  #pool: PoolSummary;

  constructor(options: ExpositionOptions) {
    this.#core = options.core;
    this.#endpointOf = options.endpointOf;
    this.#pool = summarisePool(options.core, options.endpointOf);
    this.#cells = new CellFamilies(options.core, options.streamMetrics, options.now);
    if (options.processMetrics !== false) collectDefaultMetrics({ register: this.registry });
    if (options.build !== undefined) this.#addInfo(options.build);
    this.#addPoolGauges(options.poolName);
    this.#addPrefixSize(options.prefixProducer ?? PREFIX_PRODUCER);
  }

  /** @throws when the name is taken */
  addGauge(metric: ReadMetric): void {
    new Gauge(this.#readAs(metric));
  }

  /** Quantiles, told by the label `quantile`, without a sum and a count. @throws when the name is taken */
  addQuantiles(metric: ReadMetric): void {
    new Summary(this.#readAs(metric));
  }

  #readAs({ name, help, labels = [], read }: ReadMetric): GaugeConfiguration<string> {
    return {
      name,
      help,
      labelNames: [...labels],
      registers: [this.registry],
      collect() {
        this.reset();
        for (const { labels, value } of read()) this.set(labelValues(labels), value);
      },
    };
  }

  /** @returns the function that records an observation @throws when the name is taken */
  addHistogram(metric: {
    readonly name: string;
    readonly help: string;
    readonly buckets: readonly number[];
    /** Equal in every observation. */
    readonly labels?: Readonly<Record<string, string>>;
  }): (value: number) => void {
    const { name, help, buckets, labels = {} } = metric;
    const labelNames = Object.keys(labels);
    const histogram = new ObservedHistogram({
      name,
      help,
      labelNames,
      buckets: [...buckets],
      registers: [this.registry],
    });
    return (value) => histogram.observe({ ...labels }, value);
  }

  /** A histogram whose counts are read for each page. @throws when the name is taken */
  addReadHistogram(metric: ReadHistogram): void {
    new Histogram(metric, this.registry);
  }

  /** @throws when the name is taken */
  addCounter(metric: ReadMetric): void {
    const { name, help, read } = metric;
    const labelNames = [...(metric.labels ?? [])];
    new Counter({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        this.reset();
        for (const { labels, value } of read()) this.inc(labelValues(labels), value);
      },
    });
  }

  /** Replaces the vouched names, which are shown as they are. */
  vouch(names: VouchedNames): void {
    this.#cells.vouch(names);
  }

  /** Sum of a metric in shared memory over all threads and all series with these label values. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.#cells.sum(name, labels);
  }

  /** The page in pieces of some tens of kilobytes, so that no single step takes long. */
  async *pieces(): AsyncGenerator<string> {
    yield* this.#cells.pieces();
    this.#pool = summarisePool(this.#core, this.#endpointOf);
    let piece = '';
    for (const { name } of this.registry.getMetricsAsArray()) {
      piece += `${await this.registry.getSingleMetricAsString(name)}\n\n`;
      if (piece.length < PIECE_CHARACTERS) continue;
      yield piece.replaceAll(VALUELESS_LINE, '');
      piece = '';
    }
    if (piece !== '') yield piece.replaceAll(VALUELESS_LINE, '');
  }

  /** The whole page. */
  async text(): Promise<string> {
    let text = '';
    for await (const piece of this.pieces()) text += piece;
    return text;
  }

  #addInfo({ version, commit, buildRef }: NonNullable<ExpositionOptions['build']>): void {
    const read = () => [{ labels: { commit, build_ref: buildRef }, value: 1 }];
    const labels = ['commit', 'build_ref'];
    this.addGauge({ name: 'llm_d_epp_info', help: 'The build that runs here.', labels, read });
    this.addGauge({ name: 'inference_extension_info', help: 'Older name of llm_d_epp_info.', labels, read });
    this.addGauge({
      name: 'pointsman_info',
      help: 'The version that runs here.',
      labels: ['version'],
      read: () => [{ labels: { version }, value: 1 }],
    });
  }

  #addPoolGauges(poolName: string): void {
    this.#addSpread(poolName, 'queue_size', 'requests waiting in the model servers', () => this.#pool.waiting);
    this.#addSpread(poolName, 'running_requests', 'requests running in the model servers', () => this.#pool.running);
    this.#addSpread(poolName, 'kv_cache_utilization', 'the share of the KV cache in use', () => this.#pool.kvUsage);
    const ready = () => [{ labels: { name: poolName }, value: this.#pool.ready }];
    const readyHelp = 'Endpoints whose signals are fresh.';
    this.addGauge({ name: 'llm_d_epp_ready_endpoints', help: readyHelp, labels: ['name'], read: ready });
    const olderReady = `Older name of llm_d_epp_ready_endpoints. ${readyHelp}`;
    this.addGauge({ name: 'inference_pool_ready_pods', help: olderReady, labels: ['name'], read: ready });
    this.#addQueueSizes(poolName);
    this.#addInflight();
  }

  #addSpread(poolName: string, name: string, what: string, read: () => Spread | undefined): void {
    const samples = (pick: (spread: Spread) => number) => () => {
      const found = read();
      return found ? [{ labels: { name: poolName }, value: pick(found) }] : [];
    };
    const labels = ['name'];
    const mean = { help: `Mean of ${what}, over the ready endpoints.`, labels, read: samples((s) => s.mean) };
    this.addGauge({ name: `llm_d_epp_average_${name}`, ...mean });
    const olderHelp = `Older name of llm_d_epp_average_${name}. ${mean.help}`;
    this.addGauge({ ...mean, name: `inference_pool_average_${name}`, help: olderHelp });
    const help = `Standard deviation of ${what}, over the ready endpoints.`;
    this.addGauge({ name: `llm_d_epp_std_dev_${name}`, help, labels, read: samples((s) => s.deviation) });
  }

  #addQueueSizes(poolName: string): void {
    const help = 'Requests waiting in each model server; no series until its page has been read.';
    const each = (label: string) => () => {
      const labelOf = endpointLabels(this.#pool.endpoints.map(({ endpoint }) => endpoint));
      return this.#pool.endpoints.flatMap(({ endpoint, waiting }) =>
        waiting === undefined ? [] : [{ labels: { name: poolName, [label]: labelOf(endpoint) }, value: waiting }],
      );
    };
    this.addGauge({
      name: 'llm_d_epp_per_endpoint_queue_size',
      help,
      labels: ['name', 'model_server_endpoint'],
      read: each('model_server_endpoint'),
    });
    this.addGauge({
      name: 'inference_pool_per_pod_queue_size',
      help: `Older name of llm_d_epp_per_endpoint_queue_size. ${help}`,
      labels: ['name', 'model_server_pod'],
      read: each('model_server_pod'),
    });
  }

  #addInflight(): void {
    // The ledger keeps these values per endpoint, not per client, so two labels of llm-d-router's series stay empty.
    const fixed = { producer_name: 'inflight-load-producer', fairness_id: '', priority: '' };
    const labels = ['endpoint_name', 'namespace', 'producer_name', 'fairness_id', 'priority'];
    const each = (pick: (load: PoolSummary['endpoints'][number]) => number) => () =>
      this.#pool.endpoints.map((load) => ({
        labels: { endpoint_name: load.endpoint.name, namespace: load.endpoint.namespace, ...fixed },
        value: pick(load),
      }));
    this.addGauge({
      name: 'llm_d_epp_inflight_requests',
      help: 'Requests placed on each endpoint that have not ended.',
      labels,
      read: each((load) => load.inflightRequests),
    });
    this.addGauge({
      name: 'llm_d_epp_inflight_tokens',
      help: 'Prompt tokens placed on each endpoint that are neither cached nor computed yet.',
      labels,
      read: each((load) => load.inflightTokens),
    });
  }

  #addPrefixSize({ name, type }: { readonly name: string; readonly type: string }): void {
    const { call } = this.#core;
    const size = (labels: Readonly<Record<string, string>>) => () => [
      { labels, value: call.prefixCounter(CORE.PREFIX_COUNTER_MEMBERSHIPS) >>> 0 },
    ];
    const help = 'Whole blocks in the prefix index, each counted once per endpoint that holds it.';
    this.addGauge({
      name: 'llm_d_epp_prefix_indexer_size',
      help,
      labels: ['plugin_name', 'plugin_type'],
      read: size({ plugin_name: name, plugin_type: type }),
    });
    this.addGauge({
      name: 'inference_extension_prefix_indexer_size',
      help: `Older name of llm_d_epp_prefix_indexer_size. ${help}`,
      read: size({}),
    });
  }
}

function labelValues(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, labelValue(value)]));
}
