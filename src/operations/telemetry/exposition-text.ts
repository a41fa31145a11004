/** A number as the Prometheus text format and Go's clients write it; dashboards select buckets by this text. */
export function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e21 || size < 1e-4)) return exponentText(value);
  return String(value);
}

/** A bucket's upper bound: as `numberText`, but with an exponent from one million on. */
export function boundText(value: number): string {
  return Math.abs(value) >= 1e6 ? exponentText(value) : numberText(value);
}

// Go writes at least two digits of exponent.
function exponentText(value: number): string {
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

/** A label with its value, in which the text format's three special characters are escaped. */
export function labelText(name: string, value: string): string {
  const escaped = /["\\\n]/.test(value)
    ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
    : value;
  return `${name}="${escaped}"`;
}

export function headText(name: string, type: string, help: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}
