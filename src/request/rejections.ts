import type { Rejection, RejectionCode } from '../scheduling/decision.js';

/** HTTP status of every code: llm-d-router's table, and 413 for a body over the bound. */
export const STATUS_OF_CODE: Readonly<Record<RejectionCode, number>> = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  RequestTimeout: 408,
  PreconditionFailed: 412,
  PayloadTooLarge: 413,
  ResourceExhausted: 429,
  Internal: 500,
  ServiceUnavailable: 503,
};

/** Rejects a request that cannot be read. */
export function badRequest(message: string): Rejection {
  return { kind: 'rejected', code: 'BadRequest', message, reason: undefined };
}

/** Rejects a model that no objective and no rewrite rule names (`--require-model-match`). */
export function unknownModel(model: string): Rejection {
  const message = `model ${JSON.stringify(model)} is not served here: no objective and no rewrite rule names it`;
  return { kind: 'rejected', code: 'NotFound', message, reason: undefined };
}

/** Rejects a request whose model cannot be compared with those that are named (`--require-model-match`). */
export function unreadModel(): Rejection {
  const message = 'the model of this request cannot be read, and only named models are served (--require-model-match)';
  return { kind: 'rejected', code: 'NotFound', message, reason: undefined };
}

/** Rejects a request for a pool that this process does not serve. */
export function unknownPool(name: string): Rejection {
  const message = `pool ${JSON.stringify(name)} is not served here`;
  return { kind: 'rejected', code: 'NotFound', message, reason: undefined };
}

/** Rejects a request that names no pool where there is no default pool. */
export function noPool(): Rejection {
  const message = 'the request names no pool, and there is no default pool';
  return { kind: 'rejected', code: 'NotFound', message, reason: undefined };
}

/** Rejects a model that belongs to no pool where there is no default pool. */
export function noPoolOfModel(model: string): Rejection {
  const message = `no pool serves the model ${JSON.stringify(model)}`;
  return { kind: 'rejected', code: 'NotFound', message, reason: undefined };
}

/** Rejects a body over the bound of one request. */
export function bodyTooLarge(bytes: number, limit: number): Rejection {
  return {
    kind: 'rejected',
    code: 'PayloadTooLarge',
    message: `request body of at least ${bytes} bytes is over the bound of ${limit} bytes (--max-request-body-size)`,
    reason: undefined,
  };
}

/** Rejects a request whose body the proxy sends in a mode that no placement by the body can work with. */
export function unusableBodyMode(mode: string): Rejection {
  return {
    kind: 'rejected',
    code: 'Internal',
    message: `bodies of requests come in mode ${mode}: set request_body_mode to FULL_DUPLEX_STREAMED or BUFFERED`,
    reason: undefined,
  };
}

/** Rejects a request of which the proxy sends no more bytes. */
export function requestTimeout(): Rejection {
  return {
    kind: 'rejected',
    code: 'RequestTimeout',
    message: 'the request did not come to its end (--request-idle-timeout)',
    reason: undefined,
  };
}

/** Rejects because the picker is overloaded; the client may retry after a second. */
export function overloaded(why: string): Rejection {
  return {
    kind: 'rejected',
    code: 'ServiceUnavailable',
    message: `picker overloaded: ${why}`,
    reason: undefined,
    retryAfterSeconds: 1,
  };
}
