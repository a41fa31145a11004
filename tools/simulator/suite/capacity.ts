import type { Suite } from './schema.js';

/** Highest load that a policy was found to carry. */
export interface Capacity {
  /** Factor on the rate of the workload; 0 = not even the lowest that was tried. */
  readonly load: number;
  /** Requests per second that came at that load. */
  readonly requestsPerSecond: number;
}

/** Result of a run at one load. */
interface LoadedRun {
  readonly summary: { readonly goodput: number; readonly requestsPerSecond: number };
}

/**
 * Bisection over the logarithm of the load. Goodput falls with the load but for noise, of which equal seeds have the
 * same.
 * @returns the run at the highest load that was carried, or at the lowest when none was
 */
export function highestLoad<Run extends LoadedRun>(
  { goodput, from, to, steps }: NonNullable<Suite['capacity']>,
  runAt: (load: number) => Run,
): { readonly run: Run; readonly capacity: Capacity } {
  let [low, high] = [from, to];
  let run = runAt(low);
  if (run.summary.goodput < goodput) return { run, capacity: { load: 0, requestsPerSecond: 0 } };
  for (let step = 0; step < steps; step++) {
    const middle = Math.sqrt(low * high);
    const tried = runAt(middle);
    if (tried.summary.goodput >= goodput) {
      low = middle;
      run = tried;
    } else high = middle;
  }
  return { run, capacity: { load: low, requestsPerSecond: run.summary.requestsPerSecond } };
}
