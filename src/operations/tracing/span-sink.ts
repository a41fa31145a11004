import { createExporter } from './exporters.js';
import { encodeTraces } from './otlp.js';
import type { TracingSettings } from './settings.js';
import type { AttributeValue, Span } from './span.js';
import type { SpanQueueOptions } from './span-queue.js';

/** Writes spans as lines of JSON (OTEL_TRACES_EXPORTER=console). */
function consoleLines(spans: readonly Span[]): string {
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

const SCOPE = 'pointsman';

/** Exporter and form of the spans. @throws {Error} one line, when a file of the settings cannot be read */
export async function spanSink(
  { otlp, resource }: TracingSettings,
  picker: { readonly version: string; readonly instance: string },
): Promise<Pick<SpanQueueOptions, 'exporter' | 'encode'>> {
  if (otlp === undefined) {
    const send = async (lines: Buffer) => {
      process.stdout.write(lines);
      return undefined;
    };
    return {
      exporter: { send, close: async () => {} },
      encode: (spans) => Buffer.from(consoleLines(spans)),
    };
  }
  const about = new Map([
    ['service.version', picker.version],
    ['service.instance.id', picker.instance],
    ['telemetry.sdk.name', SCOPE],
    ['telemetry.sdk.language', 'nodejs'],
    ['telemetry.sdk.version', picker.version],
    ...resource,
  ]);
  const scope = { name: SCOPE, version: picker.version };
  return { exporter: await createExporter(otlp), encode: (spans) => encodeTraces(about, scope, spans) };
}
