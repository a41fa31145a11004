import type { AttributeValue, Span } from './span.js';

/** Writes spans as lines of JSON (OTEL_TRACES_EXPORTER=console). */
export function consoleLines(spans: readonly Span[]): string {
  return spans.map((span) => `${JSON.stringify(shown(span))}\n`).join('');
}

function shown({ attributes, startMs, endMs, error, ...span }: Span) {
  return {
    span: span.name,
    trace_id: span.traceId,
    span_id: span.spanId,
    parent_id: span.parentId,
    start: new Date(startMs).toISOString(),
    duration_ms: Math.round((endMs - startMs) * 1_000) / 1_000,
    attributes: Object.fromEntries(attributes.map(([name, value]) => [name, plain(value)])),
    error,
  };
}

function plain(value: AttributeValue) {
  return typeof value === 'object' && 'double' in value ? value.double : value;
}
