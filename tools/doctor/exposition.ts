/** A sample of a metrics page. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Samples of a metrics page by name. */
export type Samples = ReadonlyMap<string, readonly Sample[]>;

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** Reads a page in the Prometheus text format. */
export function readSamples(page: string): Samples {
  const samples = new Map<string, Sample[]>();
  for (const line of page.split('\n')) {
    const [, name, labels = '', value] = (line.startsWith('#') ? null : LINE.exec(line)) ?? [];
    if (name === undefined) continue;
    const pairs = [...labels.matchAll(LABEL)].map(([, label, text]) => [label!, text!.replaceAll(/\\(.)/g, '$1')]);
    const sample = { labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
    const known = samples.get(name);
    if (known === undefined) samples.set(name, [sample]);
    else known.push(sample);
  }
  return samples;
}

/** Sum of the samples of a name with these labels; 0 when there are none. */
export function sumOf(samples: Samples, name: string, labels: Readonly<Record<string, string>> = {}): number {
  return (samples.get(name) ?? [])
    .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((sum, { value }) => sum + (Number.isFinite(value) ? value : 0), 0);
}

/**
 * Samples of one pool, and those of the process. A metric with the label `pool` counts by the series of that pool. The
 * own pool of the process has series without the label.
 */
export function ofPool(samples: Samples, pool: string): Samples {
  const isFurther = (samples.get('pointsman_ledger_entries') ?? []).some(({ labels }) => labels.pool === pool);
  const kept = [...samples].map(([name, all]) => {
    const labelled = all.some(({ labels }) => labels.pool !== undefined);
    const wanted = isFurther && labelled ? pool : undefined;
    return [name, all.filter(({ labels }) => labels.pool === wanted)] as const;
  });
  return new Map(kept.filter(([, all]) => all.length > 0));
}
