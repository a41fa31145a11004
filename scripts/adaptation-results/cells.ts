// The runs of all chapters of docs/adaptation-results.md: which are missing, how long they take, and their execution.

import { resolve } from 'node:path';
import { Piscina } from 'piscina';
import { requestsOf } from '../../dist/tools/simulator/fleet/workload.js';
import type { SavedRuns } from '../../dist/tools/simulator/suite/saved-runs.js';
import type { Suite } from '../../dist/tools/simulator/suite/schema.js';
import {
  type RunResult,
  readTrace,
  runsOf,
  type SuiteFolders,
  type SuiteRun,
} from '../../dist/tools/simulator/suite/suite-run.js';
import { workloadOf } from '../../dist/tools/simulator/suite/workload-of.js';

/** One run of a chapter. */
export interface Cell {
  readonly chapter: string;
  readonly suite: Suite;
  readonly run: SuiteRun;
}

/**
 * Cells of all chapters: first seeds of all before second ones of any, so that work that is cut short has as many seeds
 * everywhere as its time allows; late chapters behind. Policies of one traffic follow each other.
 */
export function cellsOf(chapters: readonly Planned[]): readonly Cell[] {
  const cells = chapters.flatMap(({ name, suite, late }) =>
    runsOf(suite).map((run) => ({ chapter: name, suite, run, late, seedIndex: run.seed - suite.firstSeed })),
  );
  return cells.sort((a, b) => Number(a.late === true) - Number(b.late === true) || a.seedIndex - b.seedIndex);
}

/** Cells of the named chapters that have no result; one that several of them share is there once. */
export function missingCells(
  cells: readonly Cell[],
  chapters: readonly string[],
  results: { readonly keyOf: (cell: Cell) => string; readonly has: (cell: Cell) => boolean },
): readonly Cell[] {
  const missing = new Map<string, Cell>();
  for (const cell of cells) {
    if (!chapters.includes(cell.chapter) || results.has(cell)) continue;
    const key = results.keyOf(cell);
    if (!missing.has(key)) missing.set(key, cell);
  }
  return [...missing.values()];
}

interface Planned {
  readonly name: string;
  readonly suite: Suite;
  readonly late?: boolean;
}

/** Seconds of a thread for 1,000 requests of a run that nothing is known of (measured: 0.2 on a free machine). */
const SECONDS_PER_THOUSAND = 0.25;
/** Seconds of a turn and its pause of a client without end, for a rough count of its requests. */
const CLIENT_TURN_SECONDS = 12;

/**
 * Estimate of the processor time of cells by those of the same workload and policy that ran before, of the same
 * workload, or by the number of requests.
 */
export class ExpectedWork {
  readonly #seconds = new Map<string, number[]>();
  readonly #requests = new Map<string, number>();
  readonly #folders: SuiteFolders;

  constructor(folders: SuiteFolders) {
    this.#folders = folders;
  }

  note({ chapter, run }: Cell, { tookMs }: RunResult): void {
    for (const key of [`${chapter} ${run.workload} ${run.policy}`, `${chapter} ${run.workload}`]) {
      const known = this.#seconds.get(key) ?? [];
      this.#seconds.set(key, [...known, tookMs / 1e3]);
    }
  }

  secondsOf(cell: Cell): number {
    const { chapter, run } = cell;
    const known =
      this.#seconds.get(`${chapter} ${run.workload} ${run.policy}`) ?? this.#seconds.get(`${chapter} ${run.workload}`);
    if (known !== undefined) return known.reduce((sum, value) => sum + value, 0) / known.length;
    const trials = cell.suite.capacity === undefined ? 1 : cell.suite.capacity.steps + 1;
    return (trials * SECONDS_PER_THOUSAND * this.#requestsOf(cell)) / 1e3;
  }

  #requestsOf({ chapter, suite, run }: Cell): number {
    const key = `${chapter} ${run.workload}`;
    let known = this.#requests.get(key);
    if (known === undefined) {
      const read = (path: string) => readTrace(resolve(this.#folders.traces, path));
      const workload = workloadOf(suite, run.workload, suite.firstSeed, read);
      const clients = (workload.clients ?? []).reduce((sum, { count }) => sum + count, 0);
      const ofClients = (clients * (workload.endMs ?? 0)) / 1e3 / CLIENT_TURN_SECONDS;
      known = clients > 0 ? ofClients : requestsOf(workload);
      this.#requests.set(key, known);
    }
    return known;
  }
}

export interface RunOptions {
  readonly folders: SuiteFolders;
  readonly kept: SavedRuns;
  readonly jobs: number;
  /** No run begins after this time of `performance.now()`. */
  readonly untilMs: number;
  readonly done: (cell: Cell, result: RunResult) => void;
}

/** Runs cells on job threads, in their order, until the time is over. @throws the first cell's error */
export async function runCells(cells: readonly Cell[], options: RunOptions): Promise<void> {
  const { folders, kept, jobs, untilMs, done } = options;
  const pool = new Piscina({
    filename: new URL('../../dist/tools/simulator/suite/sweep-job.js', import.meta.url).href,
    minThreads: 1,
    maxThreads: jobs,
    recordTiming: false,
  });
  const left = [...cells];
  const work = async (): Promise<void> => {
    for (let cell = left.shift(); cell !== undefined && performance.now() < untilMs; cell = left.shift()) {
      const { suite, run } = cell;
      const result = (await pool.run({ suite, cell: run, folders }, { name: 'cell' })) as RunResult;
      kept.add(suite, result, folders);
      done(cell, result);
    }
  };
  try {
    await Promise.all(Array.from({ length: jobs }, work));
  } finally {
    await pool.destroy();
  }
}
