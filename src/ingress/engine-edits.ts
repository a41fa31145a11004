import { PromptKind } from '../core/types.js';
import { RETAINABLE, retentionEdit, usageEdit } from '../request/engine-asks.js';
import type { BodyEdit } from '../request/model-edit.js';
import type { UnderstoodRequest } from '../request/understand.js';
import type { Placement } from '../scheduling/decision.js';
import { BodyMode } from './codec/process-request.js';
import type { Exchange, StreamServices } from './exchange.js';
import type { RequestReader } from './request-reader.js';

/** Edits of a body that ask its engine for something; undefined = nothing is asked. */
export interface EngineAsks {
  /** The usage of a stream. */
  readonly usage: BodyEdit | undefined;
  /** To keep the blocks of a session. */
  readonly kept: BodyEdit | undefined;
}

/** What the body of a placed request asks its engine for. Hints that the client leaves no place for are counted. */
export function engineAsks(
  exchange: Pick<Exchange, 'context' | 'responseBodyMode'>,
  reader: Pick<RequestReader, 'dialect' | 'body'>,
  request: UnderstoodRequest,
  placement: Placement,
): EngineAsks {
  return { usage: usageAsk(exchange, reader, request), kept: keepingAsk(exchange.context.services, reader, placement) };
}

/** Asks for the usage of a stream, where it can be taken out of the answer again. */
function usageAsk(
  { context, responseBodyMode }: Pick<Exchange, 'context' | 'responseBodyMode'>,
  { dialect, body }: Pick<RequestReader, 'dialect' | 'body'>,
  { stream }: UnderstoodRequest,
): BodyEdit | undefined {
  if (!context.services.observe.asksUsage || !stream || responseBodyMode === BodyMode.none) return undefined;
  const isTold = dialect?.prompt === PromptKind.chat || dialect?.prompt === PromptKind.completions;
  return body === undefined || !isTold ? undefined : usageEdit(body.chunks);
}

/** Asks the engine to keep the blocks of a session. */
function keepingAsk(
  { recorder, leftOutHints }: StreamServices,
  { dialect, body }: Pick<RequestReader, 'dialect' | 'body'>,
  { retention }: Placement,
): BodyEdit | undefined {
  if (retention === undefined || body === undefined || !RETAINABLE.has(dialect?.prompt)) return undefined;
  const edit = retentionEdit(body.chunks, retention);
  if (edit === undefined) {
    recorder.retentionLeftOut();
    leftOutHints.note(retention.engine);
  }
  return edit;
}
