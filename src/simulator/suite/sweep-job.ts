// What the threads of a sweep run. Piscina calls it by its name.
import { type Cell, type CellResult, runCell, type SuiteFolders } from './cell.js';
import type { Suite } from './schema.js';

export function cell(task: { readonly suite: Suite; readonly cell: Cell; readonly folders: SuiteFolders }): CellResult {
  return runCell(task.suite, task.cell, task.folders);
}
