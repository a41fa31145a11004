/** Bounds of the queues that refuse a request at once. A closed set, for metric labels. */
export const REFUSAL_CAUSES = [
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
] as const;

export type RefusalCause = (typeof REFUSAL_CAUSES)[number];

/** Bounds and rules that refuse a request. Records in shared memory keep the position + 1. */
const REFUSED_BY = [
  ...REFUSAL_CAUSES,
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
  /** Use with the request, or the present use; NaN = the bound is no number. */
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
