import type { FlowControlSettings } from '../contract/queue-settings.js';
import type { RefusalCause } from '../contract/refusing-bound.js';
import type { Band } from './band.js';
import type { QueuedRequest } from './queue-contract.js';
import type { WaitingRoom } from './waiting-room.js';

/** A bound that a request would break, in the unit of the bound. */
export interface BrokenBound {
  readonly cause: RefusalCause;
  /** Use of the bound with the request. */
  readonly used: number;
  readonly limit: number;
}

/**
 * The first bound that one more request would break: llm-d-router's in its order, then Pointsman's own.
 * @param waitMs expected wait of the request; undefined = unknown
 */
export function brokenBound(
  room: WaitingRoom,
  { limits: pool, maxExpectedWaitMs }: FlowControlSettings,
  band: Band,
  bytes: number,
  tokens: number,
  waitMs: number | undefined,
): BrokenBound | undefined {
  const { limits } = band;
  return (
    broken('pool-bytes', room.bytes + bytes, pool.bytes) ??
    broken('pool-requests', room.requests + 1, pool.requests) ??
    broken('band-bytes', band.bytes + bytes, limits.bytes) ??
    broken('band-requests', band.waiting + 1, limits.requests) ??
    broken('pool-tokens', room.tokens + tokens, pool.tokens) ??
    broken('band-tokens', band.tokens + tokens, limits.tokens) ??
    broken('expected-wait', waitMs ?? 0, maxExpectedWaitMs)
  );
}

/** The end of the client's own wait, for a turn that is held and will probably find room later only. */
export function brokenDeadline(
  { held, deadlineMs }: QueuedRequest,
  waitMs: number | undefined,
  nowMs: number,
): BrokenBound | undefined {
  return held === true ? broken('expected-wait', waitMs ?? 0, deadlineMs - nowMs) : undefined;
}

/** A table of `limit` places that has none left. */
export function beyond(cause: RefusalCause, limit: number): BrokenBound {
  return { cause, used: limit + 1, limit };
}

function broken(cause: RefusalCause, used: number, limit: number): BrokenBound | undefined {
  return used > limit ? { cause, used, limit } : undefined;
}

/** Bound of a band without one on tokens: the `ahead` tokens before a request must drain within its longest wait. */
export function brokenRate(
  room: WaitingRoom,
  { limits, ttlMs, drain }: Band,
  ahead: number,
  nowMs: number,
): BrokenBound | undefined {
  if (limits.tokensByRate !== true || limits.tokens !== Number.POSITIVE_INFINITY || room.poolEmpty) return undefined;
  const rate = drain.bestPerSecond(nowMs);
  // The rate is unknown until the band has drained once: long answers may fill the pool.
  return rate === undefined || rate <= 0 ? undefined : broken('band-rate', ahead, (rate * ttlMs) / 1_000);
}
