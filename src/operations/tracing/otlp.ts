import type { AttributeValue, Span } from './span.js';

/**
 * Messages of OTLP, https://github.com/open-telemetry/opentelemetry-proto (trace/v1, common/v1, resource/v1), by their field
 * numbers. Written here because the exporters of OpenTelemetry's SDK would bring some thirty packages for these seven messages.
 */

/** Wire types of https://protobuf.dev/programming-guides/encoding/. */
const Wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;
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
  const attributes = [...resource].map((pair) => bytes(1, keyValue(pair)));
  const scopeMessage = bytes(1, text(1, scope.name), text(2, scope.version));
  const scopeSpans = bytes(2, scopeMessage, ...spans.map((span) => bytes(2, ...spanFields(span))));
  return bytes(1, bytes(1, ...attributes), scopeSpans);
}

/** Spans that the receiver refused, and why, from an `ExportTraceServiceResponse`; undefined = none. */
export function readRefusal(response: Buffer): { readonly spans: number; readonly why: string } | undefined {
  let refusal: { spans: number; why: string } | undefined;
  for (const { number, value } of fieldsOf(response)) {
    if (number !== 1 || typeof value === 'number') continue;
    refusal = { spans: 0, why: '' };
    for (const inner of fieldsOf(value)) {
      if (inner.number === 1 && typeof inner.value === 'number') refusal.spans = inner.value;
      else if (inner.number === 2 && typeof inner.value !== 'number') refusal.why = inner.value.toString('utf8');
    }
  }
  return refusal === undefined || (refusal.spans === 0 && refusal.why === '') ? undefined : refusal;
}

function spanFields(span: Span): Buffer[] {
  const fields = [
    bytes(1, Buffer.from(span.traceId, 'hex')),
    bytes(2, Buffer.from(span.spanId, 'hex')),
    text(5, span.name),
    varint(6, span.kind),
    time(7, span.startMs),
    time(8, span.endMs),
    ...span.attributes.map((pair) => bytes(9, keyValue(pair))),
    flags(span),
  ];
  if (span.parentId !== undefined) fields.push(bytes(4, Buffer.from(span.parentId, 'hex')));
  if (span.error !== undefined) fields.push(bytes(15, text(2, span.error), varint(3, STATUS_ERROR)));
  return fields;
}

function flags({ hasRemoteParent }: Span): Buffer {
  const value = Buffer.alloc(4);
  value.writeUInt32LE(FLAG_SAMPLED | FLAG_PARENT_KNOWN | (hasRemoteParent ? FLAG_PARENT_REMOTE : 0));
  return Buffer.concat([Buffer.from(digits(BigInt((16 << 3) | Wire.fixed32))), value]);
}

function keyValue([key, value]: readonly [string, AttributeValue]): Buffer {
  return Buffer.concat([text(1, key), bytes(2, anyValue(value))]);
}

function anyValue(value: AttributeValue): Buffer {
  if (typeof value === 'string') return text(1, value);
  if (typeof value === 'boolean') return varint(2, value ? 1 : 0);
  if (typeof value === 'number') return varint(3, value);
  if ('double' in value) return double(value.double);
  const items = value.map((item) => bytes(1, typeof item === 'number' ? double(item) : text(1, item)));
  return bytes(5, ...items);
}

function double(value: number): Buffer {
  const field = Buffer.alloc(9);
  field[0] = (4 << 3) | Wire.fixed64;
  field.writeDoubleLE(value, 1);
  return field;
}

/** Nanoseconds since 1970. */
function time(number: number, ms: number): Buffer {
  const field = Buffer.alloc(9);
  field[0] = (number << 3) | Wire.fixed64;
  const whole = Math.floor(ms);
  field.writeBigUInt64LE(BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6)), 1);
  return field;
}

/** Zero is written too: in `AnyValue` it is a value. Negative numbers take ten bytes, as in protobuf. */
function varint(number: number, value: number): Buffer {
  return Buffer.from([(number << 3) | Wire.varint, ...digits(BigInt.asUintN(64, BigInt(Math.trunc(value))))]);
}

function text(number: number, value: string): Buffer {
  return bytes(number, Buffer.from(value, 'utf8'));
}

/** A length-delimited field around its parts. */
function bytes(number: number, ...parts: readonly Buffer[]): Buffer {
  let length = 0;
  for (const part of parts) length += part.length;
  return Buffer.concat([Buffer.from([(number << 3) | Wire.bytes, ...digits(BigInt(length))]), ...parts]);
}

function digits(value: bigint): number[] {
  const result: number[] = [];
  let rest = value;
  for (; rest > 127n; rest >>= 7n) result.push(Number(rest & 127n) | 128);
  result.push(Number(rest));
  return result;
}

/** Fields of a message up to the first byte that is none. Fixed-width fields do not occur in the answers of receivers. */
function* fieldsOf(message: Buffer): Generator<{ number: number; value: Buffer | number }> {
  let at = 0;
  const next = () => {
    let value = 0;
    for (let scale = 1; at < message.length; scale *= 128) {
      const byte = message[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    return value;
  };
  while (at < message.length) {
    const tag = next();
    const value = next();
    if ((tag & 7) === Wire.varint) yield { number: tag >>> 3, value };
    else if ((tag & 7) === Wire.bytes) {
      yield { number: tag >>> 3, value: message.subarray(at, at + value) };
      at += value;
    } else return;
  }
}
