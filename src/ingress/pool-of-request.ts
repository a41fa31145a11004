import { requestPath } from '../request/control-headers.js';
import type { Rejection } from '../scheduling/decision.js';
import { NO_HEADERS } from './codec/header-map.js';
import { BodyMode, Phase, type ProcessMessage } from './codec/process-request.js';
import type { StreamContext } from './exchange.js';
import type { PoolChoice } from './pool-choice.js';
import type { RequestReader } from './request-reader.js';

/**
 * Pool of a request as its head says it, or the reason of its refusal.
 * @param pools undefined = the pool has been chosen, or there is one only
 * @returns undefined = nothing is to be chosen, or the model decides when it has been read
 */
export function poolOfHead(
  pools: PoolChoice<StreamContext> | undefined,
  { phase, headers, pool, endOfStream, requestBodyMode }: ProcessMessage,
  reader: RequestReader,
): StreamContext | Rejection | undefined {
  if (pools === undefined || phase !== Phase.requestHeaders || headers === NO_HEADERS) return undefined;
  const found = pools.ofProxy({ headers, pool });
  const bodyComes = !endOfStream && requestBodyMode !== BodyMode.none;
  if (found === undefined && bodyComes && pools.readsModels && pools.dialectOf(requestPath(headers)) !== undefined)
    return undefined;
  const chosen = found ?? pools.byDefault();
  // A refusal is found in the log by the id of its request.
  if ('kind' in chosen) reader.take(headers);
  return chosen;
}

/** Pool of a complete request by its model, or the reason of its refusal; undefined = the pool has been chosen. */
export function poolOfModel(
  pools: PoolChoice<StreamContext> | undefined,
  reader: RequestReader,
): StreamContext | Rejection | undefined {
  if (pools === undefined) return undefined;
  const model = reader.model();
  return typeof model === 'object' ? model : pools.ofModel(model);
}
