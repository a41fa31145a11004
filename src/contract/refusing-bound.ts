/** Bounds and rules that refuse a request. A record keeps the position + 1, so a new one goes to the end. */
export const REFUSED_BY = [
  'pool-requests',
  'pool-bytes',
  'pool-tokens',
  'band-requests',
  'band-bytes',
  'band-tokens',
  'too-many-flows',
  'too-many-bands',
  'too-many-waiting',
  'tenant-limit',
  'expected-wait',
  'band-rate',
  'queue-deadline',
  'no-endpoints',
  'shutting-down',
  'pool-saturation',
  'no-wait-slot',
] as const;

export type RefusedBy = (typeof REFUSED_BY)[number];

/** The bound that refused a request. */
export interface RefusingBound {
  readonly by: RefusedBy;
  /** Use that the request would have made of it, or the use that is there; NaN = the bound is no number. */
  readonly used: number;
  /** NaN = the bound is no number. */
  readonly limit: number;
}

/** A bound without figures. */
export function plainBound(by: RefusedBy): RefusingBound {
  return { by, used: Number.NaN, limit: Number.NaN };
}

/** Number of a bound in shared memory; 0 = none. */
export function boundNumber(bound: RefusingBound | undefined): number {
  return bound === undefined ? 0 : REFUSED_BY.indexOf(bound.by) + 1;
}

/** @param number as of `boundNumber` */
export function boundOf(number: number, used: number, limit: number): RefusingBound | undefined {
  const by = REFUSED_BY[number - 1];
  return by === undefined ? undefined : { by, used, limit };
}
