import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** A collection that gives the memory of free pages back, also that of code that has not run since. */
type Collector = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/**
 * Returns the memory that the start of this thread has left behind: modules that were parsed, the configuration's text
 * and checks. V8 keeps it until its heap grows again, which on an idle control thread does not happen. Measured: 12 MB,
 * in 15 to 30 ms in which the thread does nothing else. Not for shards: their optimised code would be dropped as well.
 */
export function collectStartGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collector;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
