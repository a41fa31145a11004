/** A metric by name and, if given, by label values that a series must have. */
export interface MetricSpec {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

// Prometheus' text format: metric names may hold colons, label names may not.
const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/**
 * Parses `name` or `name{label=value,…}`. Values may be quoted with `"`; quoted or not they hold no comma, quote or
 * brace. Throws an Error that names `field` and the remedy.
 */
export function parseMetricSpec(spec: string, field: string): MetricSpec {
  const text = spec.trim();
  const brace = text.indexOf('{');
  const name = brace < 0 ? text : text.slice(0, brace).trim();
  if (!METRIC_NAME.test(name)) throw badSpec(spec, field);
  if (brace < 0) return { name, labels: {} };
  if (!text.endsWith('}')) throw badSpec(spec, field);
  const labels: Record<string, string> = {};
  const inside = text.slice(brace + 1, -1).trim();
  for (const pair of inside === '' ? [] : inside.split(',')) {
    const [key, value, ...more] = pair.split('=').map((part) => part.trim());
    if (key === undefined || value === undefined || more.length > 0) throw badSpec(spec, field);
    const plain = /^"[^"]*"$/.test(value) ? value.slice(1, -1) : value;
    if (!LABEL_NAME.test(key) || Object.hasOwn(labels, key) || plain === '' || /["{}\\]/.test(plain)) {
      throw badSpec(spec, field);
    }
    labels[key] = plain;
  }
  return { name, labels };
}

function badSpec(spec: string, field: string): Error {
  return new Error(`${field}: "${spec}" is no metric: write name or name{label=value,other=value}`);
}
