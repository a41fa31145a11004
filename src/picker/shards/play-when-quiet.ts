/** Part of a turn of the event loop in which pieces are played. */
const SLICE_MS = 2;

/** What comes to a shard: `busy` = streams are open; a number that grows with each stream that is opened. */
export type Traffic = number | 'busy' | 'ended';

/** Bounds of a play, and the thread on which it runs; times in milliseconds. */
export interface QuietPlay {
  traffic(): Traffic;
  now(): number;
  /** Resolves in a later turn of the event loop, `ms` later at the earliest. */
  pause(ms: number): Promise<void>;
  /** Bound on the time that pieces take of the thread. */
  readonly timeMs: number;
  /** Time without traffic after which the play begins anew. */
  readonly quietMs: number;
  /** Time after which it is given up. */
  readonly giveUpMs: number;
}

export interface Played {
  readonly pieces: number;
  /** Time that they took of the thread. */
  readonly usedMs: number;
}

/**
 * Plays pieces in slices of 2 ms while there is no traffic, from the next turn of the event loop on. Traffic ends what
 * is under way; after `quietMs` without any the play begins anew.
 * @param make begins the play; its `return()` ends what is under way
 */
export async function playWhenQuiet(make: () => Iterator<void>, play: QuietPlay): Promise<Played> {
  const giveUpAt = play.now() + play.giveUpMs;
  let played: Played = { pieces: 0, usedMs: 0 };
  let waitMs = 0;
  while (played.usedMs < play.timeMs && play.now() < giveUpAt) {
    const before = play.traffic();
    if (before === 'ended') break;
    await play.pause(waitMs);
    waitMs = play.quietMs;
    if (before !== 'busy' && play.traffic() === before) played = await playUntilTraffic(make(), before, play, played);
  }
  return played;
}

async function playUntilTraffic(
  pieces: Iterator<void>,
  before: Traffic,
  { traffic, now, pause, timeMs }: QuietPlay,
  played: Played,
): Promise<Played> {
  let { pieces: count, usedMs } = played;
  try {
    while (usedMs < timeMs && traffic() === before) {
      const begin = now();
      let end = begin;
      while (end - begin < SLICE_MS) {
        pieces.next();
        count++;
        end = now();
      }
      usedMs += end - begin;
      await pause(0);
    }
    return { pieces: count, usedMs };
  } finally {
    pieces.return?.();
  }
}
