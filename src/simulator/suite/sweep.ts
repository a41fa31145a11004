import { availableParallelism } from 'node:os';
import { Piscina } from 'piscina';
import { type CellResult, cellsOf, type SuiteFolders } from './cell.js';
import type { Suite } from './schema.js';

export interface SweepProgress {
  readonly done: number;
  readonly of: number;
  /** Estimate of the seconds that are left; undefined before the first cell is done. */
  readonly leftSeconds: number | undefined;
}

/**
 * Run all cells of a suite on job threads, one per core unless `jobs` says otherwise. Results are in the order of the
 * cells, whichever ended first.
 * @throws the first cell's error; the others are given up then
 */
export async function sweep(
  suite: Suite,
  folders: SuiteFolders,
  jobs: number | undefined,
  progress: (now: SweepProgress) => void,
): Promise<CellResult[]> {
  const cells = cellsOf(suite);
  const pool = new Piscina({
    filename: new URL('./sweep-job.js', import.meta.url).href,
    minThreads: 1,
    maxThreads: Math.max(1, Math.min(jobs ?? availableParallelism(), cells.length)),
    recordTiming: false,
  });
  const begin = performance.now();
  let done = 0;
  try {
    return await Promise.all(
      cells.map(async (cell) => {
        const result = (await pool.run({ suite, cell, folders }, { name: 'cell' })) as CellResult;
        done++;
        const leftSeconds = ((performance.now() - begin) / done / 1e3) * (cells.length - done);
        progress({ done, of: cells.length, leftSeconds });
        return result;
      }),
    );
  } finally {
    await pool.destroy();
  }
}
