/**
 * The proxy's side of ext_proc, written from envoyproxy/data-plane-api and apart from the code under test: encodes
 * `ProcessingRequest`s and decodes `ProcessingResponse`s.
 */

export type MetadataValue = string | number | null | boolean | readonly (string | number)[];
export type Metadata = Readonly<Record<string, Readonly<Record<string, MetadataValue>>>>;

export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt(value);
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest > 0n ? low | 0x80 : low);
  } while (rest > 0n);
  return Buffer.from(bytes);
}

export function bytesField(number: number, ...parts: readonly (Buffer | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
  return Buffer.concat([varint((number << 3) | 2), varint(content.length), content]);
}

export function numberField(number: number, value: number): Buffer {
  return Buffer.concat([varint(number << 3), varint(value)]);
}

export interface HeaderOptions {
  /** Puts values in `value` instead of `raw_value`. */
  readonly inValue?: boolean;
}

export type Headers = Readonly<Record<string, string>> | readonly (readonly [string, string])[];

export function headerMap(headers: Headers, options: HeaderOptions = {}): Buffer {
  const pairs = Array.isArray(headers) ? (headers as readonly (readonly [string, string])[]) : Object.entries(headers);
  return Buffer.concat(
    pairs.map(([key, value]) => bytesField(1, bytesField(1, key), bytesField(options.inValue ? 2 : 3, value))),
  );
}

function value(item: MetadataValue): Buffer {
  if (item === null) return numberField(1, 0);
  if (typeof item === 'boolean') return numberField(4, item ? 1 : 0);
  if (typeof item === 'string') return bytesField(3, item);
  if (typeof item === 'number') {
    const bytes = Buffer.alloc(9);
    bytes[0] = (2 << 3) | 1;
    bytes.writeDoubleLE(item, 1);
    return bytes;
  }
  return bytesField(6, ...item.map((member) => bytesField(1, value(member))));
}

function metadataContext(metadata: Metadata | undefined): Buffer {
  if (metadata === undefined) return Buffer.alloc(0);
  const entries = Object.entries(metadata).map(([namespace, fields]) => {
    const struct = Object.entries(fields).map(([key, item]) =>
      bytesField(1, bytesField(1, key), bytesField(2, value(item))),
    );
    return bytesField(1, bytesField(1, namespace), bytesField(2, ...struct));
  });
  return bytesField(8, ...entries);
}

function httpHeaders(
  number: number,
  headers: Headers,
  endOfStream: boolean,
  metadata?: Metadata,
  options?: HeaderOptions,
): Buffer {
  const parts = [bytesField(1, headerMap(headers, options))];
  if (endOfStream) parts.push(numberField(3, 1));
  return Buffer.concat([bytesField(number, ...parts), metadataContext(metadata)]);
}

function httpBody(number: number, body: Buffer | string, endOfStream: boolean, metadata?: Metadata): Buffer {
  const parts = [bytesField(1, body)];
  if (endOfStream) parts.push(numberField(2, 1));
  return Buffer.concat([bytesField(number, ...parts), metadataContext(metadata)]);
}

export const requestHeaders = (
  headers: Headers,
  endOfStream = false,
  metadata?: Metadata,
  options?: HeaderOptions,
): Buffer => httpHeaders(2, headers, endOfStream, metadata, options);
export const responseHeaders = (headers: Headers, endOfStream = false, metadata?: Metadata): Buffer =>
  httpHeaders(3, headers, endOfStream, metadata);
export const requestBody = (body: Buffer | string, endOfStream = true, metadata?: Metadata): Buffer =>
  httpBody(4, body, endOfStream, metadata);
export const responseBody = (body: Buffer | string, endOfStream = false): Buffer => httpBody(5, body, endOfStream);
export const requestTrailers = (headers: Headers = {}): Buffer => bytesField(6, bytesField(1, headerMap(headers)));
export const responseTrailers = (headers: Headers = {}): Buffer => bytesField(7, bytesField(1, headerMap(headers)));

export const subset = (hint: MetadataValue): Metadata => ({
  'envoy.lb.subset_hint': { 'x-gateway-destination-endpoint-subset': hint },
});

interface RawField {
  readonly number: number;
  readonly bytes: Buffer;
  readonly value: number;
}

function fields(bytes: Buffer): RawField[] {
  const found: RawField[] = [];
  let at = 0;
  const next = (): number => {
    let result = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!;
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(result);
    }
  };
  while (at < bytes.length) {
    const tag = next();
    if ((tag & 7) === 0) found.push({ number: tag >> 3, bytes: Buffer.alloc(0), value: next() });
    else if ((tag & 7) === 1) {
      found.push({ number: tag >> 3, bytes: bytes.subarray(at, at + 8), value: bytes.readDoubleLE(at) });
      at += 8;
    } else {
      const length = next();
      found.push({ number: tag >> 3, bytes: bytes.subarray(at, at + length), value: 0 });
      at += length;
    }
  }
  if (at !== bytes.length) throw new Error('a field runs over the end');
  return found;
}

const one = (bytes: Buffer, number: number): Buffer | undefined =>
  fields(bytes).findLast((f) => f.number === number)?.bytes;
const flag = (bytes: Buffer, number: number): number => fields(bytes).findLast((f) => f.number === number)?.value ?? 0;

/** A decoded `ProcessingResponse`. */
export interface ProxyReply {
  readonly kind:
    | 'requestHeaders'
    | 'responseHeaders'
    | 'requestBody'
    | 'responseBody'
    | 'requestTrailers'
    | 'responseTrailers'
    | 'immediate';
  /** set_headers, names as sent. */
  readonly headers: Readonly<Record<string, string>>;
  readonly appendActions: readonly number[];
  readonly removed: readonly string[];
  readonly clearRouteCache: boolean;
  readonly body: Buffer;
  readonly endOfStream: boolean;
  /** The body that goes on in the place of a whole one; undefined = it goes on as it came. */
  readonly wholeBody: Buffer | undefined;
  readonly metadata: unknown;
  readonly status: number;
}

const KINDS = [
  '',
  'requestHeaders',
  'responseHeaders',
  'requestBody',
  'responseBody',
  'requestTrailers',
  'responseTrailers',
  'immediate',
] as const;

function struct(bytes: Buffer): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const entry of fields(bytes)) {
    const item = fields(one(entry.bytes, 2)!)[0]!;
    result[one(entry.bytes, 1)!.toString()] =
      item.number === 5 ? struct(item.bytes) : item.number === 2 ? item.value : item.bytes.toString();
  }
  return result;
}

/** `BodyMutation.body`, or nothing by `clear_body`. */
function wholeBody(mutation: Buffer): Buffer | undefined {
  return flag(mutation, 2) === 1 ? Buffer.alloc(0) : one(mutation, 1);
}

export function decodeReply(bytes: Buffer): ProxyReply {
  const member = fields(bytes).find((f) => f.number >= 1 && f.number <= 7)!;
  const kind = KINDS[member.number] as ProxyReply['kind'];
  const metadata = one(bytes, 8);
  const empty = Buffer.alloc(0);
  const common = kind === 'immediate' ? member.bytes : (one(member.bytes, 1) ?? empty);
  const mutation = kind === 'requestTrailers' || kind === 'responseTrailers' ? empty : (one(common, 2) ?? empty);
  const headers: Record<string, string> = {};
  const appendActions: number[] = [];
  const removed: string[] = [];
  for (const entry of fields(mutation)) {
    if (entry.number === 2) removed.push(entry.bytes.toString());
    else {
      const header = one(entry.bytes, 1)!;
      headers[one(header, 1)!.toString()] = one(header, 3)!.toString();
      appendActions.push(flag(entry.bytes, 3));
    }
  }
  const bodyMutation = kind.endsWith('Body') ? one(common, 3) : undefined;
  const streamed = bodyMutation === undefined ? empty : (one(bodyMutation, 3) ?? empty);
  return {
    kind,
    headers,
    appendActions,
    removed,
    clearRouteCache: kind !== 'immediate' && flag(common, 5) === 1,
    body: kind === 'immediate' ? (one(common, 3) ?? empty) : (one(streamed, 1) ?? empty),
    endOfStream: flag(streamed, 2) === 1,
    wholeBody: bodyMutation === undefined ? undefined : wholeBody(bodyMutation),
    metadata: metadata === undefined ? undefined : struct(metadata),
    status: kind === 'immediate' ? flag(one(common, 1)!, 1) : 0,
  };
}

/** How bodies are sent, as the first message of a stream names it; 0 = NONE, 4 = FULL_DUPLEX_STREAMED. */
export function bodyModes(request: number, response: number): Buffer {
  const modes = [
    ...(request === 0 ? [] : [numberField(1, request)]),
    ...(response === 0 ? [] : [numberField(2, response)]),
  ];
  return bytesField(11, ...modes);
}
