import type { Decision } from '../core/decision-data.js';
import type { Rejection } from './decision.js';
import type { ProfileFilter } from './program.js';

/** Rejection when the pool has no endpoint for the request. */
export const NO_ENDPOINTS: Rejection = {
  kind: 'rejected',
  code: 'ServiceUnavailable',
  message: 'failed to find endpoint candidates for serving the request',
  reason: 'rejected-no-endpoints',
  unscheduled: true,
};

/** Rejection when filters that judge load left no endpoint; status, text and reason are llm-d-router's. */
const SATURATED: Rejection = {
  kind: 'rejected',
  code: 'ResourceExhausted',
  message: 'no endpoints available for the given request',
  reason: 'rejected-saturated',
};

/** Rejection when a filter that does not judge load left no endpoint. */
function leftNone(filter: string): Rejection {
  return {
    kind: 'rejected',
    code: 'ServiceUnavailable',
    message: `no endpoints available for the given request: the filter ${JSON.stringify(filter)} leaves none`,
    reason: 'rejected-no-endpoints',
  };
}

/** Rejection when no endpoint has room and no wait slot is free. */
export const NO_ROOM: Rejection = {
  kind: 'rejected',
  code: 'ResourceExhausted',
  message: 'request rejected pre-queue: queue at capacity',
  reason: 'rejected-saturated',
};

/** Result of a stage that waits. No other follows: the request comes back, and then all of them run. */
export const WAITS: Rejection = { ...NO_ROOM, leftWaiting: true };

/** Rejection by an admitter of the program. The text is llm-d-router's; the status is that of all admitters here. */
const DENIED: Rejection = {
  kind: 'rejected',
  code: 'ResourceExhausted',
  message: 'request cannot be admitted: no valid endpoint available to serve the request',
  reason: undefined,
};

/** Rejection while the lock of a dead thread is in the way. */
const BUSY: Rejection = {
  kind: 'rejected',
  code: 'ServiceUnavailable',
  message: 'the picker is repairing its state: try again',
  reason: undefined,
  retryAfterSeconds: 1,
};

/**
 * Name of the filter that left no endpoint, if load had no part in it: an earlier filter by load may have removed
 * endpoints that this one would have kept.
 * @param position of the filter among the filters of the profile, as the decision says
 */
export function steadyFilter(
  filters: readonly ProfileFilter[] | undefined,
  position: number | undefined,
): string | undefined {
  if (filters === undefined || position === undefined) return undefined;
  const reached = filters.slice(0, position + 1);
  return reached.some(({ judgesLoad }) => judgesLoad) ? undefined : reached.at(-1)?.name;
}

/**
 * Result of a request whose decision made no pick.
 * @param filter with `filtered`: result of `steadyFilter`
 */
export function noPick(status: Exclude<Decision['status'], 'decided'>, filter?: string): Rejection {
  if (status === 'filtered') return filter === undefined ? SATURATED : leftNone(filter);
  if (status === 'no-candidates') return NO_ENDPOINTS;
  if (status === 'waiting' || status === 'no-wait-slot') return NO_ROOM;
  return status === 'denied' ? DENIED : BUSY;
}
