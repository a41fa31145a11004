import type { ScannedPage, WantedMetric } from '../../dist/src/pool/engines/engine.js';
import type { PageScanner } from '../../dist/src/pool/sources/page-reader.js';

const SERIES = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;

/** The scanner's plain twin: one regular expression a line, no escapes. */
export function scanText(text: string, wanted: readonly WantedMetric[]): ScannedPage {
  const found = wanted.map(() => false);
  const values = new Float64Array(wanted.length);
  const labels: (readonly string[] | undefined)[] = wanted.map(() => undefined);
  for (const line of text.split('\n')) {
    const series = SERIES.exec(line);
    if (series === null) continue;
    const own = Object.fromEntries([...(series[2] ?? '').matchAll(/(\w+)="([^"]*)"/g)].map((m) => [m[1], m[2]]));
    const value = readValue(series[3]!);
    for (const [i, metric] of wanted.entries()) {
      if (metric.name !== series[1]) continue;
      if (Object.entries(metric.labels ?? {}).some(([key, label]) => own[key] !== label)) continue;
      const first = !found[i];
      found[i] = true;
      if (metric.aggregate === 'sum') values[i] = values[i]! + value;
      else if (metric.aggregate === 'names') labels[i] = [distinctNames(labels[i], metric, own)];
      else if (metric.aggregate === 'set-names') {
        labels[i] = value > 0 ? [distinctNames(labels[i], metric, own)] : (labels[i] ?? ['']);
      } else if (first || value > values[i]!) {
        values[i] = value;
        if (metric.aggregate === 'latest-labels') labels[i] = metric.wantLabels?.map((key) => own[key] ?? '');
      }
    }
  }
  return { found, values, labels };
}

function distinctNames(
  before: readonly string[] | undefined,
  { wantLabels = [] }: WantedMetric,
  own: Readonly<Record<string, string | undefined>>,
): string {
  const lists = [before?.[0] ?? '', ...wantLabels.map((key) => own[key] ?? '')];
  const names = lists.flatMap((list) => list.split(',').map((name) => name.trim()));
  return [...new Set(names.filter((name) => name !== ''))].join(',');
}

function readValue(text: string): number {
  return text.endsWith('Inf') ? Number(`${text.slice(0, -3)}Infinity`) : Number(text);
}

/** A PageScanner over `scanText`. */
export function makePlainScanner(): PageScanner {
  const queries: (readonly WantedMetric[])[] = [];
  let query: readonly WantedMetric[] = [];
  let text = '';
  return {
    compile: (wanted) => queries.push(wanted) - 1,
    begin(number) {
      query = queries[number]!;
      text = '';
    },
    feed(chunk) {
      text += Buffer.from(chunk).toString();
    },
    end: () => scanText(text, query),
  };
}
