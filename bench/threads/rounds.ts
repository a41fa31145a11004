// Work that several threads do at the same time, in rounds: a round ends with the slowest of them.
import { parentPort, Worker } from 'node:worker_threads';
import type { Prepared } from '../bench.ts';

/** Words of the state that the threads share: number of the round, threads that have ended it. */
const ROUND = 0;
const DONE = 1;
/** Threads stop waiting for a round now and then, so that a bench that fails ends. */
const WAIT_MS = 10_000;

export interface RoundsData {
  /** Number of the thread in the pool, from 1. */
  readonly thread: number;
  readonly state: Int32Array;
}

/**
 * Starts threads that run a file which calls `serveRounds`.
 * @param operations of one thread in a round
 */
export async function rounds(
  file: URL,
  threads: number,
  operations: number,
  dataOf: (thread: number) => object,
): Promise<Prepared> {
  const state = new Int32Array(new SharedArrayBuffer(64));
  const workers = Array.from({ length: threads }, (_, i) => {
    const rest: RoundsData = { thread: i + 1, state };
    return new Worker(file, { workerData: { ...dataOf(i + 1), ...rest } });
  });
  await Promise.all(
    workers.map(
      (worker) =>
        new Promise((resolve, reject) => {
          worker.once('message', resolve);
          worker.once('error', reject);
        }),
    ),
  );
  return {
    opsPerRun: operations * threads,
    run: async () => {
      Atomics.store(state, DONE, 0);
      Atomics.add(state, ROUND, 1);
      Atomics.notify(state, ROUND);
      for (let done = 0; done < threads; done = Atomics.load(state, DONE)) {
        const waiting = Atomics.waitAsync(state, DONE, done, WAIT_MS);
        if (waiting.async) await waiting.value;
      }
    },
    teardown: async () => {
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
}

/** Runs `work` once to be warm, then each time the round number rises. */
export async function serveRounds({ state }: RoundsData, work: () => void | Promise<void>): Promise<never> {
  await work();
  parentPort!.postMessage('warm');
  for (let round = 0; ; ) {
    Atomics.wait(state, ROUND, round);
    round = Atomics.load(state, ROUND);
    await work();
    Atomics.add(state, DONE, 1);
    Atomics.notify(state, DONE);
  }
}
