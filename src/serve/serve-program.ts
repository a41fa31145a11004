// The program of `pointsman serve`: the command alone, so that a start loads nothing of the others.
import { runProgram } from './program-run.js';
import { runServe } from './serve.js';

/** @param served called when the picker has served for a while, before the memory of its start is freed */
export function main(argv: readonly string[], served: () => void): Promise<void> {
  return runProgram(async () => {
    await runServe(argv, served);
    return 0;
  });
}
