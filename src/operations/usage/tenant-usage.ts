import type { CoreInstance } from '../../core/memory.js';
import type { Metric } from '../telemetry/metric-kind.js';
import { errorKind, requestKind } from '../telemetry/metric-table.js';
import { queueEndKind } from '../telemetry/queue-kinds.js';
import { type Series, SeriesReader } from '../telemetry/series-block.js';

/** Usage by the requests of one tenant (fairness id). Tokens are those that model servers reported. */
export interface TenantTotals {
  /** Requests that were given a destination. */
  readonly requests: number;
  readonly errors: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Output tokens of streams without usage, counted from their chunks; no part of the others. */
  readonly estimatedOutputTokens: number;
  readonly cachedTokens: number;
  /** Requests that passed flow control, and the sum of their waits in seconds. */
  readonly waits: number;
  readonly waitSeconds: number;
}

export const NO_USAGE: TenantTotals = {
  requests: 0,
  errors: 0,
  inputTokens: 0,
  outputTokens: 0,
  estimatedOutputTokens: 0,
  cachedTokens: 0,
  waits: 0,
  waitSeconds: 0,
};

const FIELDS = Object.keys(NO_USAGE) as (keyof TenantTotals)[];

/** @param sign -1 = the second one is subtracted */
export function combine(one: TenantTotals, other: TenantTotals, sign: 1 | -1 = 1): TenantTotals {
  const sums = FIELDS.map((field) => [field, one[field] + sign * other[field]]);
  return Object.fromEntries(sums) as unknown as TenantTotals;
}

type Writable = { -readonly [Field in keyof TenantTotals]: TenantTotals[Field] };

/** Series that count by tenant, and the function that adds the cells of one to the totals. */
interface Source {
  readonly kind: Series['kind'];
  readonly add: (totals: Writable, cells: Float64Array, base: number) => void;
}

function bucketsOf(cells: Float64Array, base: number, { offset, buckets }: Metric): number {
  let count = 0;
  for (let cell = 0; cell <= buckets.length; cell++) count += cells[base + offset + cell]!;
  return count;
}

function sumOf(cells: Float64Array, base: number, { offset, buckets }: Metric): number {
  return cells[base + offset + buckets.length + 1]!;
}

const SOURCES: readonly Source[] = [
  {
    kind: requestKind,
    add: (totals, cells, base) => {
      const { total, inputTokens, outputTokens, estimatedTokens, cachedTokens } = requestKind.at;
      totals.requests += cells[base + total.offset]!;
      totals.inputTokens += sumOf(cells, base, inputTokens);
      totals.outputTokens += sumOf(cells, base, outputTokens);
      totals.estimatedOutputTokens += cells[base + estimatedTokens.offset]!;
      totals.cachedTokens += sumOf(cells, base, cachedTokens);
    },
  },
  {
    kind: errorKind,
    add: (totals, cells, base) => {
      totals.errors += cells[base + errorKind.at.total.offset]!;
    },
  },
  {
    kind: queueEndKind,
    add: (totals, cells, base) => {
      totals.waits += bucketsOf(cells, base, queueEndKind.at.duration);
      totals.waitSeconds += sumOf(cells, base, queueEndKind.at.duration);
    },
  },
];

/**
 * Sums existing counters of the shards by tenant, at no further cost for a request. Tenants are the values of
 * `fairness_id` in the metrics, so their number has the same bound; further tenants count as `other`.
 */
export class TenantUsage {
  readonly #cells: Float64Array;
  readonly #readers: readonly SeriesReader[];
  readonly #known: { readonly source: Source; readonly tenant: string; readonly base: number }[] = [];

  constructor(core: CoreInstance) {
    this.#cells = core.f64;
    this.#readers = Array.from({ length: core.sizes.threads }, (_, thread) => new SeriesReader(core, thread));
  }

  /** Totals of every tenant since the start; they never fall. */
  read(): ReadonlyMap<string, TenantTotals> {
    this.#discover();
    const tenants = new Map<string, Writable>();
    for (const { source, tenant, base } of this.#known) {
      const totals = tenants.get(tenant) ?? { ...NO_USAGE };
      tenants.set(tenant, totals);
      source.add(totals, this.#cells, base);
    }
    return tenants;
  }

  #discover(): void {
    for (const reader of this.#readers) {
      for (const { kind, values, base } of reader.fresh()) {
        const source = SOURCES.find((candidate) => candidate.kind === kind);
        if (source === undefined) continue;
        this.#known.push({ source, tenant: values[kind.labels.indexOf('fairness_id')]!, base });
      }
    }
  }
}
