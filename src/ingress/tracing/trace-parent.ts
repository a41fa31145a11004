/** The `traceparent` header of https://www.w3.org/TR/trace-context/: the request's trace and the span that sent it. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly sampled: boolean;
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZEROES = /^0+$/;

/** Reads the header; undefined = it is not valid, which counts as absent. */
export function parseTraceParent(value: string): TraceParent | undefined {
  const [, version, traceId, spanId, flags, more] = FORM.exec(value) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (ZEROES.test(traceId!) || ZEROES.test(spanId!)) return undefined;
  return { traceId: traceId!, spanId: spanId!, sampled: (Number.parseInt(flags!, 16) & 1) === 1 };
}

/** The header of a span that is recorded. */
export function sampledTraceParent(traceId: string, spanId: string): string {
  return `00-${traceId}-${spanId}-01`;
}
