/** Name under which llm-d-router also shows a metric, and its labels, for older dashboards. */
export interface OlderName {
  readonly name: string;
  /** Labels of the older name, as `[label here, label there]`. */
  readonly labels: readonly (readonly [string, string])[];
}

export interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Whether the gauge shows the value set last instead of a sum. Its second cell is the time. */
  readonly latest: boolean;
  /** Upper bounds in rising order; `+Inf` is added. Histograms only. */
  readonly buckets: readonly number[];
  /** A label with a fixed value, for metrics with few known values. */
  readonly fixed: readonly [string, string] | undefined;
  readonly older: OlderName | undefined;
  /** First cell within the series. */
  readonly offset: number;
}

/** Metrics with the same labels: their cells are contiguous and found by one lookup. */
export interface SeriesKind {
  /** Number in the series directory in shared memory. */
  readonly id: number;
  readonly labels: readonly string[];
  readonly metrics: readonly Metric[];
  readonly cells: number;
}

export type Draft = Omit<Metric, 'offset'>;

/**
 * Number of cells of a metric. A histogram has one per bucket, one for `+Inf` and one for the sum; a gauge of the
 * latest value has a second one for its time.
 */
export function cellsOf(metric: Pick<Metric, 'type' | 'buckets' | 'latest'>): number {
  if (metric.type === 'histogram') return metric.buckets.length + 2;
  return metric.latest ? 2 : 1;
}

export const keep = (...labels: string[]) => labels.map((label) => [label, label] as const);

export function older(name: string, labels: OlderName['labels']): OlderName {
  return { name, labels };
}

export function counter(name: string, help: string, olderName?: OlderName, fixed?: readonly [string, string]): Draft {
  return { name, type: 'counter', help, latest: false, buckets: [], fixed, older: olderName };
}

export function gauge(name: string, help: string, olderName?: OlderName): Draft {
  return { name, type: 'gauge', help, latest: false, buckets: [], fixed: undefined, older: olderName };
}

/** A gauge that shows the value set last by any thread. */
export function latest(
  name: string,
  help: string,
  olderName: OlderName | undefined,
  fixed: readonly [string, string],
): Draft {
  return { name, type: 'gauge', help, latest: true, buckets: [], fixed, older: olderName };
}

export function histogram(
  name: string,
  help: string,
  buckets: readonly number[],
  olderName?: OlderName,
  fixed?: readonly [string, string],
): Draft {
  return { name, type: 'histogram', help, latest: false, buckets, fixed, older: olderName };
}

function place(drafts: readonly Draft[]): { metrics: readonly Metric[]; cells: number } {
  let offset = 0;
  const metrics = drafts.map((draft) => {
    const metric = { ...draft, offset };
    offset += cellsOf(draft);
    return metric;
  });
  return { metrics, cells: offset };
}

export function kind<Name extends string>(
  id: number,
  labels: readonly string[],
  drafts: Readonly<Record<Name, Draft>>,
): SeriesKind & { readonly at: Readonly<Record<Name, Metric>> } {
  const names = Object.keys(drafts) as Name[];
  const { metrics, cells } = place(names.map((name) => drafts[name]));
  const at = Object.fromEntries(names.map((name, index) => [name, metrics[index]!])) as Record<Name, Metric>;
  return { id, labels, metrics, cells, at };
}

/** Bounds of histograms of a decision's time and of that to the queues, seconds; llm-d-router's. */
export const schedulingTimes = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1];
