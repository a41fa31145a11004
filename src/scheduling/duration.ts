const MILLISECONDS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
export const DURATION_FORM = /^[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/;
const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g;

export const DURATION_EXPECTED = 'expected a duration such as 50ms, 1.5s or 2m30s';

/**
 * Milliseconds of a duration in Go's notation (`1h30m`, `50ms`, `0`), which may be negative; undefined for other texts.
 */
export function parseDuration(text: string): number | undefined {
  if (!DURATION_FORM.test(text)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(PART)) sum += Number(amount) * MILLISECONDS[unit!]!;
  return text.startsWith('-') ? -sum : sum;
}

/** Milliseconds of a duration that a schema has already checked. */
export function durationMilliseconds(checked: string): number {
  const value = parseDuration(checked);
  if (value === undefined) throw new TypeError(`not a duration: ${checked}`);
  return value;
}
