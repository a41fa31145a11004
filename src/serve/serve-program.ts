// The program of `pointsman serve`: the command alone, so that a start loads nothing of the others.
import { runProgram } from './program-run.js';
import { runServe } from './serve.js';

/** @param keep that of the loaded program */
export function main(argv: readonly string[], keep: () => boolean): Promise<void> {
  return runProgram(async () => {
    await runServe(argv, keep);
    return 0;
  });
}
