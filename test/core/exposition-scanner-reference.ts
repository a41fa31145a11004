import type { WantedMetric } from '../../dist/src/core/exposition-scanner.js';

/** What a page says about one wanted metric. */
export interface ReferenceMetric {
  found: boolean;
  value: number;
  labels: string[] | undefined;
}

const labelPattern = /[ \t]*([A-Za-z0-9_:\x80-\xff]+)[ \t]*=[ \t]*"((?:[^"\\]|\\[\s\S])*)"[ \t]*(,|(?=\}))/y;
const numberPattern = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?$/i;
const notFinitePattern = /^[+-]?(?:nan|inf|infinity)$/i;

function decoded(raw: string): string {
  return raw.replace(/\\([\\"n])/g, (_, c: string) => (c === 'n' ? '\n' : c));
}

/** Labels from behind the brace; undefined when malformed, else with the text behind them. */
function readLabels(text: string): { labels: Map<string, string>; rest: string } | undefined {
  const labels = new Map<string, string>();
  let at = 0;
  for (;;) {
    const close = /[ \t]*\}/y;
    close.lastIndex = at;
    if (close.test(text)) return { labels, rest: text.slice(close.lastIndex) };
    labelPattern.lastIndex = at;
    const found = labelPattern.exec(text);
    if (!found) return undefined;
    labels.set(found[1]!, found[2]!);
    at = labelPattern.lastIndex;
  }
}

function sampleOf(behindName: string): { labels: Map<string, string>; token: string } | undefined {
  const text = behindName.replace(/^[ \t]+/, '');
  const read = text.startsWith('{') ? readLabels(text.slice(1)) : { labels: new Map<string, string>(), rest: text };
  return read && { labels: read.labels, token: /^[ \t]*([^ \t]*)/.exec(read.rest)![1]! };
}

function namesOf(list: string): string[] {
  const names = list.split(',').map((name) => name.replace(/^[ \t]+|[ \t]+$/g, ''));
  return names.filter((name) => name !== '');
}

/** A plain reader of a whole page at once. */
export function referenceExposition(page: Buffer, wanted: readonly WantedMetric[]) {
  const results: ReferenceMetric[] = wanted.map(() => ({ found: false, value: Number.NaN, labels: undefined }));
  let unusable = 0;
  const utf8 = (text: string) => Buffer.from(text, 'latin1').toString('utf8');
  for (const raw of page.toString('latin1').split('\n')) {
    const line = raw.replace(/\r$/, '').replace(/^[ \t]+/, '');
    for (const [i, metric] of wanted.entries()) {
      const name = Buffer.from(metric.name).toString('latin1');
      if (!line.startsWith(name) || !['', ' ', '\t', '{'].includes(line[name.length] ?? '')) continue;
      const sample = sampleOf(line.slice(name.length));
      if (!sample) {
        unusable++;
        continue;
      }
      const value = (label: string) => utf8(decoded(sample.labels.get(Buffer.from(label).toString('latin1')) ?? ''));
      if (Object.entries(metric.labels ?? {}).some(([label, want]) => value(label) !== want)) continue;
      if (notFinitePattern.test(sample.token)) continue;
      if (!numberPattern.test(sample.token)) {
        unusable++;
        continue;
      }
      const number = Number(sample.token);
      if (!Number.isFinite(number)) continue;
      const result = results[i]!;
      if (metric.aggregate === 'sum') result.value = result.found ? result.value + number : number;
      else if (metric.aggregate === 'names' || metric.aggregate === 'set-names') {
        result.value = result.found ? Math.max(result.value, number) : number;
        const own = metric.aggregate === 'names' || number > 0 ? (metric.wantLabels ?? []) : [];
        const lists = [result.labels?.[0] ?? '', ...own.map((label) => value(label))];
        result.labels = [[...new Set(lists.flatMap(namesOf))].join(',')];
      } else if (!result.found || number > result.value) {
        result.value = number;
        if (metric.aggregate === 'latest-labels') result.labels = (metric.wantLabels ?? []).map(value);
      }
      result.found = true;
    }
  }
  return { results, unusable };
}
