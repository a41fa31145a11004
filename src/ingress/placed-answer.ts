import { randomUUID } from 'node:crypto';
import { writeModel } from '../request/model-edit.js';
import type { UnderstoodRequest } from '../request/understand.js';
import type { Placement } from '../scheduling/decision.js';
import { encodeBodyReplies, encodeTrailersReply, Reply } from './codec/process-response.js';
import type { Exchange } from './exchange.js';
import { placedReply } from './replies.js';
import type { RequestReader } from './request-reader.js';

/** Answer a placed request: header reply, body replies, trailers reply, whatever is owed, in this order and in one go. */
export function answerPlaced(
  { context: { services, templates }, stream }: Exchange,
  { headers, body, endedBy }: RequestReader,
  request: UnderstoodRequest,
  placement: Placement,
): void {
  const received = body?.chunks ?? [];
  const chunks = request.edit === undefined ? received : writeModel(received, request.edit, request.targetModel);
  let contentLength = 0;
  for (const chunk of chunks) contentLength += chunk.length;
  const generatedRequestId = headers.get('x-request-id') === undefined ? randomUUID() : undefined;
  const details = { contentLength, generatedRequestId, emitScores: services.emitScores };
  stream.send(placedReply(templates, placement, headers, details));
  if (endedBy === 'headers') return;
  const endsWithBody = endedBy === 'body';
  if (endsWithBody || contentLength > 0) {
    encodeBodyReplies(Reply.requestBody, chunks, endsWithBody, stream, undefined, body?.memory);
  }
  if (!endsWithBody) stream.send(encodeTrailersReply(Reply.requestTrailers));
}
