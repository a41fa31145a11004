import { availableParallelism } from 'node:os';
import { Piscina } from 'piscina';
import { tuningSuite, withOracle } from './grid-oracle.js';
import type { SavedRuns } from './saved-runs.js';
import type { Suite } from './schema.js';
import { type RunResult, runsOf, type SuiteFolders } from './suite-run.js';

export interface SweepProgress {
  readonly done: number;
  readonly of: number;
  /** Estimate of the seconds that are left; undefined before the first cell is done. */
  readonly leftSeconds: number | undefined;
}

export interface SweepOptions {
  /** Runs at the same time; undefined = one per core. */
  readonly jobs: number | undefined;
  /** Results of before, and where new ones go. */
  readonly kept: SavedRuns | undefined;
  readonly progress: (now: SweepProgress) => void;
}

/**
 * Runs a suite; one with an oracle first chooses it. @returns the suite as it ran, with the oracle, and its results
 * @throws the first cell's error
 */
export async function evaluate(
  suite: Suite,
  folders: SuiteFolders,
  options: SweepOptions,
): Promise<{ readonly suite: Suite; readonly results: RunResult[] }> {
  if (suite.oracle === undefined) return { suite, results: await sweep(suite, folders, options) };
  const tuned = await sweep(tuningSuite(suite, suite.oracle), folders, options);
  const whole = withOracle(suite, suite.oracle, tuned);
  return { suite: whole, results: await sweep(whole, folders, options) };
}

/**
 * Runs all cells of a suite on job threads, one per core unless `jobs` says otherwise. Results are in the order of the
 * cells, whichever ended first.
 * @throws the first cell's error; the others are given up then
 */
export async function sweep(
  suite: Suite,
  folders: SuiteFolders,
  { jobs, kept, progress }: SweepOptions,
): Promise<RunResult[]> {
  const cells = runsOf(suite).map((cell) => ({ cell, known: kept?.find(suite, cell, folders) }));
  const before = cells.filter(({ known }) => known !== undefined).length;
  const missing = cells.length - before;
  if (missing === 0) return cells.flatMap(({ known }) => known ?? []);
  const pool = new Piscina({
    filename: new URL('./sweep-job.js', import.meta.url).href,
    minThreads: 1,
    maxThreads: Math.max(1, Math.min(jobs ?? availableParallelism(), missing)),
    recordTiming: false,
  });
  const begin = performance.now();
  let done = before;
  try {
    return await Promise.all(
      cells.map(async ({ cell, known }) => {
        if (known !== undefined) return known;
        const result = (await pool.run({ suite, cell, folders }, { name: 'cell' })) as RunResult;
        kept?.add(suite, result, folders);
        done++;
        const leftSeconds = ((performance.now() - begin) / (done - before) / 1e3) * (cells.length - done);
        progress({ done, of: cells.length, leftSeconds });
        return result;
      }),
    );
  } finally {
    await pool.destroy();
  }
}
