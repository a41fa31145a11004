// Job of a sweep's threads. Named as Piscina calls it.

import type { Suite } from './schema.js';
import { type RunResult, runOne, type SuiteFolders, type SuiteRun } from './suite-run.js';

export function cell(task: {
  readonly suite: Suite;
  readonly cell: SuiteRun;
  readonly folders: SuiteFolders;
}): RunResult {
  return runOne(task.suite, task.cell, task.folders);
}
