import { field, putVarint, text, varintField, varintSize } from '../../runtime/protobuf.js';
import type { HeldMemory, ProcessStream } from '../transport.js';

/** Kind of reply: the field numbers of `ProcessingResponse.response`. */
export const Reply = {
  requestHeaders: 1,
  responseHeaders: 2,
  requestBody: 3,
  responseBody: 4,
  requestTrailers: 5,
  responseTrailers: 6,
  immediate: 7,
} as const;

/** Envoy takes at most 64 KiB in one streamed body reply; llm-d-router cuts at this size too. */
export const BODY_CHUNK_BYTES_MAX = 62_000;

/** `HeaderValueOption.append_action` OVERWRITE_IF_EXISTS_OR_ADD: a client's own header of that name never survives. */
const OVERWRITE = varintField(3, 2);
const CLEAR_ROUTE_CACHE = varintField(5, 1);
const EMPTY = Buffer.alloc(0);
const DIGIT_ZERO = 0x30;

/** One `set_headers` entry of a `HeaderMutation`. */
export function setHeader(name: string, value: string): Buffer {
  return field(1, field(1, field(1, text(name)), field(3, text(value))), OVERWRITE);
}

const CONTENT_LENGTH_NAME = Buffer.concat([field(1, text('Content-Length')), Buffer.from([0x1a])]);

/** `setHeader('Content-Length', …)` in one allocation: this one is encoded for every request. */
export function setContentLength(length: number): Buffer {
  const digits = String(length);
  const header = CONTENT_LENGTH_NAME.length + 1 + digits.length;
  const bytes = Buffer.allocUnsafe(4 + header + OVERWRITE.length);
  bytes[0] = 0x0a;
  bytes[1] = 2 + header + OVERWRITE.length;
  bytes[2] = 0x0a;
  bytes[3] = header;
  bytes.set(CONTENT_LENGTH_NAME, 4);
  bytes[4 + CONTENT_LENGTH_NAME.length] = digits.length;
  bytes.write(digits, 5 + CONTENT_LENGTH_NAME.length, 'latin1');
  bytes.set(OVERWRITE, 4 + header);
  return bytes;
}

/**
 * Writes another length of as many digits into a reply of `encodeRequestHeadersReply` whose last mutation is
 * `setContentLength`.
 * @param metadata bytes of the reply's metadata
 */
export function replaceContentLength(reply: Buffer, length: number, metadata: number): void {
  let at = reply.length - metadata - CLEAR_ROUTE_CACHE.length - OVERWRITE.length;
  for (let rest = length; rest > 0; rest = Math.floor(rest / 10)) reply[--at] = DIGIT_ZERO + (rest % 10);
}

/** One `remove_headers` entry of a `HeaderMutation`. */
export function removeHeader(name: string): Buffer {
  return field(2, text(name));
}

function headersReply(reply: number, mutations: readonly Buffer[], tail: Buffer, metadata: Buffer): Buffer {
  let mutation = 0;
  for (const part of mutations) mutation += part.length;
  const common = 1 + varintSize(mutation) + mutation + tail.length;
  const headers = 1 + varintSize(common) + common;
  const bytes = Buffer.allocUnsafe(1 + varintSize(headers) + headers + metadata.length);
  bytes[0] = reply * 8 + 2;
  let at = putVarint(bytes, 1, headers);
  bytes[at++] = 0x0a;
  at = putVarint(bytes, at, common);
  bytes[at++] = 0x12;
  at = putVarint(bytes, at, mutation);
  for (const part of mutations) {
    bytes.set(part, at);
    at += part.length;
  }
  bytes.set(tail, at);
  bytes.set(metadata, at + tail.length);
  return bytes;
}

/**
 * The reply to the request headers.
 * @param mutations entries of `setHeader` and `removeHeader`, the destination among them
 * @param metadata the encoded `dynamic_metadata` field
 */
export function encodeRequestHeadersReply(mutations: readonly Buffer[], metadata: Buffer): Buffer {
  return headersReply(Reply.requestHeaders, mutations, CLEAR_ROUTE_CACHE, metadata);
}

export function encodeResponseHeadersReply(mutations: readonly Buffer[]): Buffer {
  return headersReply(Reply.responseHeaders, mutations, EMPTY, EMPTY);
}

/** An empty reply to trailers: they go on unchanged. @param metadata the encoded `dynamic_metadata` field */
export function encodeTrailersReply(reply: 5 | 6, metadata: Buffer = EMPTY): Buffer {
  return metadata.length === 0 ? field(reply) : Buffer.concat([field(reply), metadata]);
}

/** Receiver of body replies: a message is the bytes of `head` and of the parts behind each other. */
export type BodyReplySink = Pick<ProcessStream, 'sendParts'>;

/**
 * Hand body replies to `sink`: the bytes of `chunks` in messages of at most `BODY_CHUNK_BYTES_MAX` bytes, the last one
 * with `end_of_stream` as given. Without any bytes one empty message is sent.
 * @param metadata the encoded `dynamic_metadata` field, for the last message
 * @param memory that holds the chunks
 */
export function encodeBodyReplies(
  reply: 3 | 4,
  chunks: readonly Uint8Array[],
  endOfStream: boolean,
  sink: BodyReplySink,
  metadata: Buffer = EMPTY,
  memory?: HeldMemory,
): void {
  let rest = 0;
  for (const chunk of chunks) rest += chunk.length;
  // A chat of the usual size, or a piece of an answer.
  if (rest <= BODY_CHUNK_BYTES_MAX && metadata.length === 0) {
    sink.sendParts(bodyReplyHead(reply, rest, endOfStream), chunks, memory);
    return;
  }
  let index = 0;
  let offset = 0;
  do {
    const length = Math.min(rest, BODY_CHUNK_BYTES_MAX);
    rest -= length;
    const parts: Uint8Array[] = [];
    for (let left = length; left > 0; ) {
      const chunk = chunks[index]!;
      const take = Math.min(chunk.length - offset, left);
      parts.push(take === chunk.length ? chunk : chunk.subarray(offset, offset + take));
      left -= take;
      offset += take;
      if (offset === chunk.length) {
        index++;
        offset = 0;
      }
    }
    if (rest === 0 && metadata.length > 0) parts.push(metadata);
    sink.sendParts(bodyReplyHead(reply, length, endOfStream && rest === 0), parts, memory);
  } while (rest > 0);
}

/** Views of one piece of memory by their length, so that the head of a body reply needs no memory of its own. */
const HEADS: readonly Buffer[] = (() => {
  // Four tags and a flag with its tag, and five lengths of three bytes at most.
  const memory = Buffer.alloc(32);
  return Array.from({ length: memory.length + 1 }, (_, length) => memory.subarray(0, length));
})();

/**
 * Bytes of a body reply in front of the body, which is its last `length` bytes.
 * @returns overwritten by the next call
 */
function bodyReplyHead(reply: number, length: number, endOfStream: boolean): Buffer {
  // StreamedBodyResponse puts end_of_stream before the body so that the body comes last; the order is free.
  const streamed = (endOfStream ? 2 : 0) + (length > 0 ? 1 + varintSize(length) + length : 0);
  const mutation = 1 + varintSize(streamed) + streamed;
  const common = 1 + varintSize(mutation) + mutation;
  const body = 1 + varintSize(common) + common;
  const bytes = HEADS[1 + varintSize(body) + body - length]!;
  bytes[0] = reply * 8 + 2;
  let at = putVarint(bytes, 1, body);
  bytes[at++] = 0x0a; // BodyResponse.response
  at = putVarint(bytes, at, common);
  bytes[at++] = 0x1a; // CommonResponse.body_mutation
  at = putVarint(bytes, at, mutation);
  bytes[at++] = 0x1a; // BodyMutation.streamed_response
  at = putVarint(bytes, at, streamed);
  if (endOfStream) {
    bytes[at++] = 0x10;
    bytes[at++] = 1;
  }
  if (length > 0) {
    bytes[at++] = 0x0a;
    putVarint(bytes, at, length);
  }
  return bytes;
}

/** An empty reply to request headers: the proxy sends the body that waits for it. */
export const REQUEST_HEADERS_CONTINUE = field(Reply.requestHeaders);

/**
 * The reply to a whole body, or to one in pieces of which each waits for its reply.
 * @param body bytes that replace it; undefined = it passes unchanged
 * @param mutations entries of `setHeader` and `removeHeader` for the head, which has waited for the body
 * @param metadata the encoded `dynamic_metadata` field
 */
export function encodeWholeBodyReply(
  reply: 3 | 4,
  body: readonly Uint8Array[] | undefined,
  mutations: readonly Buffer[] = [],
  metadata: Buffer = EMPTY,
): Buffer {
  const head = mutations.length > 0 ? [field(2, ...mutations)] : [];
  const route = reply === Reply.requestBody ? [CLEAR_ROUTE_CACHE] : [];
  const bytes = body === undefined ? [] : [field(3, wholeBody(body))];
  const common = head.length + route.length + bytes.length === 0 ? [] : [field(1, ...head, ...bytes, ...route)];
  return Buffer.concat([field(reply, ...common), metadata]);
}

/** `BodyMutation.body`, or `clear_body` for no bytes: an empty `body` leaves the body as it is. */
function wholeBody(body: readonly Uint8Array[]): Buffer {
  return body.every((chunk) => chunk.length === 0) ? varintField(2, 1) : field(1, ...body);
}

/** An `ImmediateResponse`: the proxy answers its client with this and drops the request. */
export function encodeImmediateReply(status: number, headers: readonly Buffer[], body: string): Buffer {
  const mutation = headers.length > 0 ? field(2, ...headers) : EMPTY;
  return field(Reply.immediate, field(1, varintField(1, status)), mutation, field(3, text(body)));
}
