/** A number that is sent as a double although it may be whole. */
export interface Double {
  readonly double: number;
}

/** Lists of numbers are sent as doubles; a single number is an integer. */
export type AttributeValue = string | number | boolean | Double | readonly string[] | readonly number[];

/** Numbers of `Span.SpanKind` in OTLP. */
export const SpanKind = { internal: 1, server: 2 } as const;

/** One span, ready to be sent. Times are milliseconds since 1970 with fractions. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined = the trace begins with it. */
  readonly parentId: string | undefined;
  /** Whether the parent belongs to another process. */
  readonly hasRemoteParent: boolean;
  readonly name: string;
  readonly kind: (typeof SpanKind)[keyof typeof SpanKind];
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: readonly (readonly [string, AttributeValue])[];
  /** Failure as a short name; undefined = there was none. */
  readonly error: string | undefined;
}

export function double(value: number): Double {
  return { double: value };
}
