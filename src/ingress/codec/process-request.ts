import { WireReader, WireType } from '../../runtime/protobuf.js';
import { HeaderMap, NO_HEADERS } from './header-map.js';
import { type ProxyMetadata, readProxyMetadata } from './proxy-metadata.js';

/** Part of the HTTP exchange that a message carries: the field numbers of `ProcessingRequest.request`. */
export const Phase = {
  none: 0,
  requestHeaders: 2,
  responseHeaders: 3,
  requestBody: 4,
  responseBody: 5,
  requestTrailers: 6,
  responseTrailers: 7,
} as const;
export type Phase = (typeof Phase)[keyof typeof Phase];

/** `BodySendMode` of the ext_proc filter, where it matters here; the first message of a stream names both. */
export const BodyMode = {
  /** The message names no mode: it is not the first one, or the proxy is older than the field. */
  unnamed: -1,
  /** No bodies are sent. */
  none: 0,
  /** Pieces, each of which waits for its reply; the headers are forwarded before the first one. */
  streamed: 1,
  /** One message holds the whole body; the proxy holds the headers until it is answered. */
  buffered: 2,
  /** As `buffered`, cut off at the proxy's bound. */
  bufferedPartial: 3,
  fullDuplexStreamed: 4,
} as const;

/** A decoded `ProcessingRequest`. Headers and body are views of the message's bytes. */
export interface ProcessMessage extends ProxyMetadata {
  phase: Phase;
  headers: HeaderMap;
  body: Buffer;
  endOfStream: boolean;
  /** Modes in which bodies of the request and of the answer are sent; a BodyMode, or another number = they are sent. */
  requestBodyMode: number;
  responseBodyMode: number;
}

const METADATA_CONTEXT = 8 * 8 + WireType.bytes;
const PROTOCOL_CONFIG = 11 * 8 + WireType.bytes;
const REQUEST_BODY_MODE = 1 * 8 + WireType.varint;
const RESPONSE_BODY_MODE = 2 * 8 + WireType.varint;
const HTTP_HEADERS_HEADERS = 1 * 8 + WireType.bytes;
const HTTP_HEADERS_END_OF_STREAM = 3 * 8 + WireType.varint;
const HTTP_BODY_BODY = 1 * 8 + WireType.bytes;
const HTTP_BODY_END_OF_STREAM = 2 * 8 + WireType.varint;
const NO_BODY = Buffer.alloc(0);
/** Cursor of the thread: nothing is decoded inside of another message. */
const READER = new WireReader(NO_BODY);

/** A message without fields. */
export function emptyMessage(): ProcessMessage {
  return {
    phase: Phase.none,
    headers: NO_HEADERS,
    body: NO_BODY,
    endOfStream: false,
    requestBodyMode: BodyMode.unnamed,
    responseBodyMode: BodyMode.unnamed,
    subset: undefined,
    served: undefined,
    balanced: false,
    pool: undefined,
  };
}

function clear(message: ProcessMessage): void {
  message.phase = Phase.none;
  message.headers = NO_HEADERS;
  message.body = NO_BODY;
  message.endOfStream = false;
  message.requestBodyMode = BodyMode.unnamed;
  message.responseBodyMode = BodyMode.unnamed;
  message.subset = undefined;
  message.served = undefined;
  message.balanced = false;
  message.pool = undefined;
}

/**
 * Decodes one `envoy.service.ext_proc.v3.ProcessingRequest` in one pass. Unknown fields are skipped; a message
 * without a known phase decodes to `Phase.none`.
 * @param message is written anew
 * @throws MalformedMessage when the bytes are no protobuf
 */
export function decodeProcessRequest(
  bytes: Buffer,
  from = 0,
  to = bytes.length,
  message: ProcessMessage = emptyMessage(),
): ProcessMessage {
  const reader = READER;
  reader.begin(bytes, from, to);
  clear(message);
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === METADATA_CONTEXT) {
      const outer = reader.enter();
      readProxyMetadata(reader, message);
      reader.leave(outer);
    } else if ((tag & 7) === WireType.bytes && tag >> 3 >= Phase.requestHeaders && tag >> 3 <= Phase.responseTrailers) {
      const outer = reader.enter();
      readPhase(reader, (tag >> 3) as Phase, message);
      reader.leave(outer);
    } else if (tag === PROTOCOL_CONFIG) {
      const outer = reader.enter();
      readBodyModes(reader, message);
      reader.leave(outer);
    } else {
      reader.skip(tag);
    }
  }
  return message;
}

/** `ProtocolConfiguration`: a mode that is 0 is not on the wire. */
function readBodyModes(reader: WireReader, message: ProcessMessage): void {
  message.requestBodyMode = BodyMode.none;
  message.responseBodyMode = BodyMode.none;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === REQUEST_BODY_MODE) message.requestBodyMode = reader.varint();
    else if (tag === RESPONSE_BODY_MODE) message.responseBodyMode = reader.varint();
    else reader.skip(tag);
  }
}

/** One member of the oneof; should a message carry several, the last one counts. */
function readPhase(reader: WireReader, phase: Phase, message: ProcessMessage): void {
  message.phase = phase;
  message.endOfStream = false;
  message.body = NO_BODY;
  message.headers = NO_HEADERS;
  if (phase === Phase.requestBody || phase === Phase.responseBody) readBody(reader, message);
  else readHeaders(reader, message);
}

function readBody(reader: WireReader, message: ProcessMessage): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === HTTP_BODY_BODY) {
      const length = reader.length();
      message.body = reader.bytes.subarray(reader.at, reader.at + length);
      reader.at += length;
    } else if (tag === HTTP_BODY_END_OF_STREAM) {
      message.endOfStream = reader.varint() !== 0;
    } else {
      reader.skip(tag);
    }
  }
}

/** `HttpHeaders` and `HttpTrailers` agree in the field that both have. */
function readHeaders(reader: WireReader, message: ProcessMessage): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === HTTP_HEADERS_HEADERS) {
      const outer = reader.enter();
      message.headers = new HeaderMap(reader);
      reader.leave(outer);
    } else if (tag === HTTP_HEADERS_END_OF_STREAM) {
      message.endOfStream = reader.varint() !== 0;
    } else {
      reader.skip(tag);
    }
  }
}
