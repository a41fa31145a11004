import type { ClientShares } from './client-shares.js';
import { TurnBudget, type TurnBudgetOptions } from './turn-budget.js';

/** Milliseconds of one turn for new requests, after which messages of older ones are read again. */
export const NEW_WORK_SLICE_MS = 5;
/** The same while clients of several addresses are active: none waits long for the work of another. */
const SHARED_SLICE_MS = 1;

/** Bounds on the new requests of a shard, without their slice of a turn. */
export const TURN_BOUNDS: Omit<TurnBudgetOptions, 'now' | 'recent' | 'defer' | 'sliceMs'> = {
  /** Far above a burst that clears in time, far below what would fill the memory. */
  waitingMax: 4_096,
  waitMsMax: 2_000,
  standingWaitMs: 200,
  overloadWaitMs: 60,
  /**
   * A queue that has grown in 0.2 of the last 0.25 s is that of an overload: stalls of a warm thread at 0.7 times its
   * capacity are over by then. After 0.05 s of growth it may be one, and the newest work goes first.
   */
  windows: { windowMs: 25, coldWork: 2_048, suspectWindows: 2, overloadWindows: 8, latestWindows: 10 },
  /**
   * Less than one turn serves, since the sockets hold the next requests. Waiting requests survive garbage collections:
   * with 600 of them a request costs 1.5 times as much as with 150.
   */
  shortQueue: 128,
  shortQueueMs: 3,
  /** 80 a second are no overload, only a thread that was held up. */
  lightMax: 16,
  readMsMax: 10,
};

/**
 * Turn budget of a shard.
 * @param clock of its services
 * @param shares of its clients; undefined = they are not counted
 */
export function createTurnBudget(
  { now, recent }: Pick<TurnBudgetOptions, 'now' | 'recent'>,
  shares: Pick<ClientShares, 'isContended'> | undefined,
): TurnBudget {
  return new TurnBudget({
    now,
    recent,
    defer: (run) => setImmediate(run),
    get sliceMs() {
      return shares?.isContended === true ? SHARED_SLICE_MS : NEW_WORK_SLICE_MS;
    },
    ...TURN_BOUNDS,
  });
}
