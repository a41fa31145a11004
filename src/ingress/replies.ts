import { CONTROL_HEADERS } from '../request/control-headers.js';
import { type BodyEdit, editAll, modelBytes } from '../request/model-edit.js';
import { STATUS_OF_CODE } from '../request/rejections.js';
import type { UnderstoodRequest } from '../request/understand.js';
import type { Placement, Rejection } from '../scheduling/decision.js';
import type { LocalAnswer } from '../scheduling/hooks/hooks.js';
import type { DestinationTemplates } from './codec/destination.js';
import { type HeaderMap, HeaderNames } from './codec/header-map.js';
import {
  encodeBodyReplies,
  encodeImmediateReply,
  encodeRequestHeadersReply,
  encodeResponseHeadersReply,
  encodeTrailersReply,
  encodeWholeBodyReply,
  Reply,
  removeHeader,
  setContentLength,
  setHeader,
} from './codec/process-response.js';
import type { EngineAsks } from './engine-edits.js';
import type { Exchange } from './exchange.js';
import type { RequestReader } from './request-reader.js';

/** Header that marks a response as seen by the picker (llm-d-router's). */
const RESPONSE_MARKER = setHeader('x-went-into-resp-headers', 'true');
const MARKER_ONLY = encodeResponseHeadersReply([RESPONSE_MARKER]);
const MARKER_WITHOUT_LENGTH = encodeResponseHeadersReply([RESPONSE_MARKER, removeHeader('content-length')]);

const CONTROL_NAMES = new HeaderNames(CONTROL_HEADERS);
const DROP_REASON = 'x-llm-d-request-dropped-reason';

/** Comma list of the picked endpoints, in order of preference. */
export function destinationOf(placement: Placement): string {
  const { endpoints } = placement;
  return endpoints.length === 1 ? endpoints[0]!.address : endpoints.map((endpoint) => endpoint.address).join(',');
}

/** Content of the header reply beside the destination. */
export interface HeaderReplyDetails {
  /** Bytes of the outgoing body; 0 = none is announced. */
  readonly contentLength: number;
  /** Set when the request came without one. */
  readonly generatedRequestId: string | undefined;
  /** Mutation with the request's trace context; undefined = the client's context, if any, passes unchanged. */
  readonly traceParent: Buffer | undefined;
  readonly emitScores: boolean;
}

/**
 * Mutations of the reply that is being made, beside destination and length: kept, so that a plain reply makes no
 * object.
 */
const further: Buffer[] = [];

/**
 * The header reply of a placed request: destination, length, and the picker's own headers taken out. A reply with
 * nothing but destination and length is the template of its endpoint.
 * @returns to be sent at once: the next request may overwrite it
 */
function placedReply(
  templates: DestinationTemplates,
  placement: Placement,
  headers: HeaderMap,
  details: HeaderReplyDetails,
): Buffer {
  const { contentLength } = details;
  const scores = details.emitScores ? placement.scores : undefined;
  collectFurther(placement.headers, headers, details);
  if (further.length === 0 && scores === undefined && contentLength > 0) {
    return templates.plainReply(destinationOf(placement), contentLength);
  }
  const destination = templates.encode(destinationOf(placement), scores);
  const length = contentLength > 0 ? [setContentLength(contentLength)] : [];
  return encodeRequestHeadersReply([destination.header, ...length, ...further], destination.metadata);
}

/** The reply of a placed request with a whole body: a header reply's content, and the body if it changes. */
function wholeReply(
  templates: DestinationTemplates,
  placement: Placement,
  headers: HeaderMap,
  details: HeaderReplyDetails,
  changed: readonly Uint8Array[] | undefined,
): Buffer {
  const destination = templates.encode(destinationOf(placement), details.emitScores ? placement.scores : undefined);
  collectFurther(placement.headers, headers, details);
  const length = changed === undefined ? [] : [setContentLength(details.contentLength)];
  const mutations = [destination.header, ...length, ...further];
  return encodeWholeBodyReply(Reply.requestBody, changed, mutations, destination.metadata);
}

/** @param added headers that plugins add, or remove with undefined, by lower-case name */
function collectFurther(added: Placement['headers'], headers: HeaderMap, details: HeaderReplyDetails): void {
  further.length = 0;
  if (details.generatedRequestId !== undefined) further.push(setHeader('x-request-id', details.generatedRequestId));
  if (details.traceParent !== undefined) further.push(details.traceParent);
  if (added.size > 0) {
    for (const [name, value] of added) {
      if (value !== undefined) further.push(setHeader(name, value));
      else if (headers.get(name) !== undefined) further.push(removeHeader(name));
    }
  }
  for (const name of headers.namesOf(CONTROL_NAMES)) further.push(removeHeader(name));
}

/**
 * The header reply of a response.
 * @param changesLength the announced length may become wrong
 * @param added headers that plugins add, by lower-case name
 */
export function responseHeadReply(changesLength: boolean, added: ReadonlyMap<string, string> | undefined): Buffer {
  if (added === undefined || added.size === 0) return changesLength ? MARKER_WITHOUT_LENGTH : MARKER_ONLY;
  const mutations = [RESPONSE_MARKER, ...[...added].map(([name, value]) => setHeader(name, value))];
  if (changesLength) mutations.push(removeHeader('content-length'));
  return encodeResponseHeadersReply(mutations);
}

/**
 * A rejection as the proxy's answer to its client.
 * @param added further headers of the answer, by lower-case name
 */
export function rejectionReply(rejection: Rejection, added?: ReadonlyMap<string, string> | undefined): Buffer {
  const headers: Buffer[] = [];
  if (rejection.reason !== undefined) headers.push(setHeader(DROP_REASON, rejection.reason));
  if (rejection.retryAfterSeconds !== undefined) {
    headers.push(setHeader('retry-after', String(rejection.retryAfterSeconds)));
  }
  for (const [name, value] of added ?? []) headers.push(setHeader(name, value));
  const body = `inference error: ${rejection.code} - ${rejection.message}`;
  return encodeImmediateReply(STATUS_OF_CODE[rejection.code], headers, body);
}

/** An answer of a plugin as the proxy's answer to its client. */
export function localReply({ status, contentType, body }: LocalAnswer): Buffer {
  return encodeImmediateReply(status, [setHeader('content-type', contentType)], body);
}

/**
 * Reply to a running request that is evicted for one of a higher band; status, text and reason are llm-d-router's. A
 * proxy that has passed on the head of the answer already cannot send another one: it resets the request.
 */
export function evictionReply(): Buffer {
  return encodeImmediateReply(429, [setHeader(DROP_REASON, 'evicted')], 'request evicted by flow control');
}

/**
 * Answers a placed request: header reply, body replies and trailers reply, of those that are due, in this order and in
 * one go.
 * @param added what the picker adds to the request of its own
 * @param asks edits of the body that ask its engine for something
 * @returns bytes of the body that goes on
 */
export function answerPlaced(
  { context: { services, templates }, stream }: Exchange,
  { headers, body, endedBy, isBuffered }: RequestReader,
  request: UnderstoodRequest,
  placement: Placement,
  added: Pick<HeaderReplyDetails, 'generatedRequestId' | 'traceParent'>,
  asks: EngineAsks,
): number {
  const received = body?.chunks ?? [];
  const edits = editsOf(received, request, asks);
  const chunks = edits.length === 0 ? received : editAll(received, edits);
  let contentLength = 0;
  for (const chunk of chunks) contentLength += chunk.length;
  const { generatedRequestId, traceParent } = added;
  const { emitScores } = services.decide;
  const details = { contentLength, generatedRequestId, traceParent, emitScores };
  if (isBuffered) {
    const changed = edits.length === 0 ? undefined : chunks;
    stream.send(wholeReply(templates, placement, headers, details, changed));
    return contentLength;
  }
  stream.send(placedReply(templates, placement, headers, details));
  if (endedBy === 'headers') return contentLength;
  const endsWithBody = endedBy === 'body';
  if (endsWithBody || contentLength > 0) {
    encodeBodyReplies(Reply.requestBody, chunks, endsWithBody, stream, undefined, body?.memory);
  }
  if (!endsWithBody) stream.send(encodeTrailersReply(Reply.requestTrailers));
  return contentLength;
}

/** Most bodies go on as they came. */
const NO_EDITS: readonly BodyEdit[] = [];

function editsOf(
  received: readonly Uint8Array[],
  { edit, targetModel }: UnderstoodRequest,
  { usage, kept }: EngineAsks,
): readonly BodyEdit[] {
  if (edit === undefined && usage === undefined && kept === undefined) return NO_EDITS;
  const model = edit === undefined ? undefined : modelBytes(received, edit, targetModel);
  return [model, usage, kept].filter((each) => each !== undefined);
}
