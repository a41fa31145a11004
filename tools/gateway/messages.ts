import { field, MalformedMessage, readFields, text, varintField } from '../../src/runtime/protobuf.js';

/**
 * The part of envoy.service.ext_proc.v3 that a proxy in FULL_DUPLEX_STREAMED mode writes and reads. Field numbers are
 * those of Envoy's external_processor.proto, which each function names beside the message it encodes.
 */

/** A header: lower-case name and value. Pseudo headers begin with a colon. */
export type Header = readonly [name: string, value: string];

/** ProcessingMode.BodySendMode.FULL_DUPLEX_STREAMED */
const FULL_DUPLEX_STREAMED = 4;

/** ProtocolConfiguration: request_body_mode = 1, response_body_mode = 2. Envoy sends it on the first message. */
const PROTOCOL_CONFIG = field(11, varintField(1, FULL_DUPLEX_STREAMED), varintField(2, FULL_DUPLEX_STREAMED));

/** The first message of a stream: ProcessingRequest.request_headers = 2, protocol_config = 11. */
export function encodeRequestHeaders(headers: readonly Header[], endOfStream: boolean): Buffer {
  return Buffer.concat([field(2, ...encodeHttpHeaders(headers, endOfStream)), PROTOCOL_CONFIG]);
}

/** ProcessingRequest.request_body = 4 */
export function encodeRequestBody(body: Uint8Array, endOfStream: boolean): Buffer {
  return field(4, ...encodeHttpBody(body, endOfStream));
}

/** ProcessingRequest.response_headers = 3, metadata_context = 8 with the endpoint that served. */
export function encodeResponseHeaders(headers: readonly Header[], endOfStream: boolean, served: string): Buffer {
  const metadata = encodeMetadata('envoy.lb', {
    'x-gateway-destination-endpoint': served,
    'x-gateway-destination-endpoint-served': served,
  });
  return Buffer.concat([
    field(3, ...encodeHttpHeaders(headers, endOfStream)),
    served === '' ? Buffer.alloc(0) : field(8, metadata),
  ]);
}

/** ProcessingRequest.response_body = 5 */
export function encodeResponseBody(body: Uint8Array, endOfStream: boolean): Buffer {
  return field(5, ...encodeHttpBody(body, endOfStream));
}

/** HttpHeaders: headers = 1 (HeaderMap: headers = 1), end_of_stream = 3. */
function encodeHttpHeaders(headers: readonly Header[], endOfStream: boolean): Buffer[] {
  const map = field(1, ...headers.map(encodeHeader));
  return endOfStream ? [map, varintField(3, 1)] : [map];
}

/**
 * HeaderMap.headers = 1 (HeaderValue: key = 1, raw_value = 3, which is what Envoy fills). Node.js reads header bytes as
 * latin1.
 */
function encodeHeader([name, value]: Header): Buffer {
  return field(1, field(1, text(name)), field(3, Buffer.from(value, 'latin1')));
}

/** HttpBody: body = 1, end_of_stream = 2. */
function encodeHttpBody(body: Uint8Array, endOfStream: boolean): Buffer[] {
  const content = body.length === 0 ? [] : [field(1, body)];
  return endOfStream ? [...content, varintField(2, 1)] : content;
}

/** Metadata: map filter_metadata = 1 of Struct; Struct: map fields = 1 of Value; Value: string_value = 3. */
function encodeMetadata(namespace: string, values: Record<string, string>): Buffer {
  const fields = Object.entries(values).map(([key, value]) =>
    field(1, field(1, text(key)), field(2, field(3, text(value)))),
  );
  return field(1, field(1, text(namespace)), field(2, ...fields));
}

/** HeaderValueOption.HeaderAppendAction, as far as a picker uses it; without one, Envoy's processor overwrites. */
export const ADD_IF_ABSENT = 1;

export interface SetHeader {
  readonly name: string;
  readonly value: string;
  readonly action: number;
}

export interface HeaderMutation {
  readonly set: SetHeader[];
  readonly remove: string[];
}

/** Answer of a picker, reduced to the parts that a proxy acts upon. */
export type PickerReply =
  | { readonly kind: 'request_headers' | 'response_headers'; readonly mutation: HeaderMutation }
  | { readonly kind: 'request_body' | 'response_body'; readonly body: Buffer; readonly endOfStream: boolean }
  | { readonly kind: 'trailers' }
  | { readonly kind: 'immediate'; readonly status: number; readonly mutation: HeaderMutation; readonly body: Buffer };

const KINDS: Record<number, 'request_headers' | 'response_headers' | 'request_body' | 'response_body'> = {
  1: 'request_headers',
  2: 'response_headers',
  3: 'request_body',
  4: 'response_body',
};

/**
 * Decodes a ProcessingResponse: request_headers = 1, response_headers = 2, request_body = 3, response_body = 4,
 * request_trailers = 5, response_trailers = 6, immediate_response = 7.
 * @throws {Error} when it is not one.
 */
export function decodeReply(message: Buffer): PickerReply {
  try {
    return readReply(message);
  } catch (error) {
    if (!(error instanceof MalformedMessage)) throw error;
    throw new Error('the picker sent a message that is not protobuf');
  }
}

function readReply(message: Buffer): PickerReply {
  let reply: PickerReply | undefined;
  readFields(message, (number, bytes) => {
    if (number === 7) reply = decodeImmediate(bytes);
    else if (number === 5 || number === 6) reply = { kind: 'trailers' };
    else if (KINDS[number] !== undefined) reply = decodeCommon(KINDS[number], bytes);
  });
  if (reply === undefined) throw new Error('the picker sent a reply of an unknown kind');
  return reply;
}

/** HeadersResponse and BodyResponse: response = 1. CommonResponse: header_mutation = 2, body_mutation = 3. */
function decodeCommon(kind: (typeof KINDS)[number], message: Buffer): PickerReply {
  const mutation: HeaderMutation = { set: [], remove: [] };
  const streamed = { body: Buffer.alloc(0) as Buffer, endOfStream: false };
  readFields(message, (outer, response) => {
    if (outer !== 1) return;
    readFields(response, (number, bytes) => {
      if (number === 2) readMutation(bytes, mutation);
      else if (number === 3) readStreamedBody(bytes, streamed);
    });
  });
  return kind === 'request_headers' || kind === 'response_headers' ? { kind, mutation } : { kind, ...streamed };
}

/** BodyMutation: streamed_response = 3. StreamedBodyResponse: body = 1, end_of_stream = 2. */
function readStreamedBody(message: Buffer, into: { body: Buffer; endOfStream: boolean }): void {
  readFields(message, (outer, streamed) => {
    if (outer !== 3) return;
    readFields(streamed, (number, bytes, value) => {
      if (number === 1) into.body = bytes;
      else if (number === 2) into.endOfStream = value === 1;
    });
  });
}

/** ImmediateResponse: status = 1 (HttpStatus: code = 1), headers = 2, body = 3. */
function decodeImmediate(message: Buffer): PickerReply {
  const mutation: HeaderMutation = { set: [], remove: [] };
  let status = 200;
  let body = Buffer.alloc(0) as Buffer;
  readFields(message, (number, bytes) => {
    if (number === 1) {
      readFields(bytes, (inner, _bytes, value) => {
        if (inner === 1) status = value;
      });
    } else if (number === 2) readMutation(bytes, mutation);
    else if (number === 3) body = bytes;
  });
  return { kind: 'immediate', status, mutation, body };
}

/** Reads a HeaderMutation: set_headers = 1, remove_headers = 2. */
function readMutation(message: Buffer, into: HeaderMutation): void {
  readFields(message, (number, bytes) => {
    if (number === 1) into.set.push(decodeSetHeader(bytes));
    else if (number === 2) into.remove.push(bytes.toString().toLowerCase());
  });
}

/** HeaderValueOption: header = 1 (HeaderValue: key = 1, value = 2, raw_value = 3), append_action = 3. */
function decodeSetHeader(message: Buffer): SetHeader {
  let name = '';
  let value = '';
  let action = 0;
  readFields(message, (number, bytes, enumeration) => {
    if (number === 3) action = enumeration;
    if (number !== 1) return;
    readFields(bytes, (inner, content) => {
      if (inner === 1) name = content.toString().toLowerCase();
      else if (inner === 2 || (inner === 3 && content.length > 0)) value = content.toString('latin1');
    });
  });
  return { name, value, action };
}
