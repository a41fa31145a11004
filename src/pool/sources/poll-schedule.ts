/** Longest pause between two polls of an endpoint that fails. */
export const BACKOFF_MS_MAX = 2000;

/**
 * Time of the next poll after a good scrape that started at `startMs`: an interval later, give or take a tenth, so that
 * endpoints which once fell into step drift apart again.
 */
export function nextPollMs(startMs: number, intervalMs: number, random: () => number): number {
  return startMs + intervalMs * (0.9 + 0.2 * random());
}

/**
 * The pause after the `failures`-th failure in a row (1 or more): the interval doubled each time up to 2 s, of which a
 * random half is taken off; never shorter than the interval of an endpoint that answers.
 */
export function backoffMs(failures: number, intervalMs: number, random: () => number): number {
  const doubled = Math.min(BACKOFF_MS_MAX, intervalMs * 2 ** Math.min(failures, 20));
  return Math.max(intervalMs, doubled * (0.5 + 0.5 * random()));
}

/** Interval of the timer that starts due polls: a tenth of the poll interval, 5 to 100 ms. */
export function tickMs(intervalMs: number): number {
  return Math.min(100, Math.max(5, Math.floor(intervalMs / 10)));
}

/**
 * Bound on the polls that one tick starts: twice its share, so that a clump (after the thread was held up, or at the
 * start) is spread over the following ticks.
 */
export function startsPerTick(endpoints: number, intervalMs: number): number {
  return Math.max(1, Math.ceil((2 * endpoints * tickMs(intervalMs)) / intervalMs));
}
