import { field, fixedField, int64Field, MalformedMessage, readFields, text } from '../../runtime/protobuf.js';
import type { AttributeValue, Span } from './span.js';

/**
 * Messages of OTLP, https://github.com/open-telemetry/opentelemetry-proto (trace/v1, common/v1, resource/v1), by their
 * field numbers. Written here because the exporters of OpenTelemetry's SDK would bring some thirty packages for these
 * seven messages.
 */

const STATUS_ERROR = 2;
/** Bits of `Span.flags`: the sampled flag of W3C, and whether the parent is known to be local or remote. */
const FLAG_SAMPLED = 0x001;
const FLAG_PARENT_KNOWN = 0x100;
const FLAG_PARENT_REMOTE = 0x200;

export interface Scope {
  readonly name: string;
  readonly version: string;
}

/** `ExportTraceServiceRequest`: spans of one picker. */
export function encodeTraces(resource: ReadonlyMap<string, string>, scope: Scope, spans: readonly Span[]): Buffer {
  const attributes = [...resource].map((pair) => field(1, keyValue(pair)));
  const scopeMessage = field(1, field(1, text(scope.name)), field(2, text(scope.version)));
  const scopeSpans = field(2, scopeMessage, ...spans.map((span) => field(2, ...spanFields(span))));
  return field(1, field(1, ...attributes), scopeSpans);
}

/** Spans that the receiver refused, and why, from an `ExportTraceServiceResponse`; undefined = none. */
export function readRefusal(response: Buffer): { readonly spans: number; readonly why: string } | undefined {
  const refusal = { spans: 0, why: '' };
  try {
    readFields(response, (outer, partial) => {
      if (outer !== 1) return;
      readFields(partial, (inner, content, value) => {
        if (inner === 1) refusal.spans = value;
        else if (inner === 2) refusal.why = content.toString('utf8');
      });
    });
  } catch (error) {
    // What was read before holds: the spans have been taken, and only the reason may be cut off.
    if (!(error instanceof MalformedMessage)) throw error;
  }
  return refusal.spans === 0 && refusal.why === '' ? undefined : refusal;
}

function spanFields(span: Span): Buffer[] {
  const fields = [
    field(1, Buffer.from(span.traceId, 'hex')),
    field(2, Buffer.from(span.spanId, 'hex')),
    field(5, text(span.name)),
    int64Field(6, span.kind),
    time(7, span.startMs),
    time(8, span.endMs),
    ...span.attributes.map((pair) => field(9, keyValue(pair))),
    flags(span),
  ];
  if (span.parentId !== undefined) fields.push(field(4, Buffer.from(span.parentId, 'hex')));
  if (span.error !== undefined) fields.push(field(15, field(2, text(span.error)), int64Field(3, STATUS_ERROR)));
  return fields;
}

function flags({ hasRemoteParent }: Span): Buffer {
  const value = Buffer.alloc(4);
  value.writeUInt32LE(FLAG_SAMPLED | FLAG_PARENT_KNOWN | (hasRemoteParent ? FLAG_PARENT_REMOTE : 0));
  return fixedField(16, value);
}

function keyValue([key, value]: readonly [string, AttributeValue]): Buffer {
  return Buffer.concat([field(1, text(key)), field(2, anyValue(value))]);
}

function anyValue(value: AttributeValue): Buffer {
  if (typeof value === 'string') return field(1, text(value));
  if (typeof value === 'boolean') return int64Field(2, value ? 1 : 0);
  if (typeof value === 'number') return int64Field(3, value);
  if ('double' in value) return double(value.double);
  const items = value.map((item) => field(1, typeof item === 'number' ? double(item) : field(1, text(item))));
  return field(5, ...items);
}

function double(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return fixedField(4, bytes);
}

/** Nanoseconds since 1970. */
function time(number: number, ms: number): Buffer {
  const bytes = Buffer.alloc(8);
  const whole = Math.floor(ms);
  bytes.writeBigUInt64LE(BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6)));
  return fixedField(number, bytes);
}
