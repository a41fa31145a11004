import type { Band } from './band.js';
import type { RefusalCause } from './queue-contract.js';
import type { FlowControlSettings } from './settings.js';
import type { WaitingRoom } from './waiting-room.js';

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
): RefusalCause | undefined {
  const { limits } = band;
  if (room.bytes + bytes > pool.bytes) return 'pool-bytes';
  if (room.requests + 1 > pool.requests) return 'pool-requests';
  if (band.bytes + bytes > limits.bytes) return 'band-bytes';
  if (band.waiting + 1 > limits.requests) return 'band-requests';
  if (room.tokens + tokens > pool.tokens) return 'pool-tokens';
  if (band.tokens + tokens > limits.tokens) return 'band-tokens';
  if (waitMs !== undefined && waitMs > maxExpectedWaitMs) return 'expected-wait';
  return undefined;
}

/** Whether a band without a bound on tokens needs more than `ttlMs` for `ahead` tokens. */
export function isBeyondRate(
  room: WaitingRoom,
  ttlMs: number,
  { limits, drain }: Band,
  ahead: number,
  nowMs: number,
): boolean {
  if (limits.tokensByRate !== true || limits.tokens !== Number.POSITIVE_INFINITY || room.poolEmpty) return false;
  const rate = drain.bestPerSecond(nowMs);
  // The rate is unknown until the band has drained once: long answers may fill the pool.
  return rate !== undefined && rate > 0 && ahead > (rate * ttlMs) / 1_000;
}
