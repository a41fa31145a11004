import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { IndexWorkerData, IndexWorkerReport } from './index-worker.ts';

// Threads are started by the hundred: the compiled worker is kept, which halves the time of a start.
const env = { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'pointsman-test-compile-cache') };

/** Starts a thread of the concurrency tests. */
export function startThread(data: IndexWorkerData): Worker {
  return new Worker(new URL('./index-worker.ts', import.meta.url), { workerData: data, env });
}

/** What a thread says at its end. @throws what the thread threw */
export async function reportOf(worker: Worker): Promise<IndexWorkerReport> {
  const [report] = (await once(worker, 'message')) as [IndexWorkerReport];
  await worker.terminate();
  return report;
}

/** Until a thread has gone on by `steps`, or has died. */
export async function progressed(words: Int32Array, thread: number, steps: number): Promise<void> {
  const from = Atomics.load(words, thread);
  const deadline = performance.now() + 20_000;
  while (((Atomics.load(words, thread) - from) | 0) < steps) {
    if (performance.now() > deadline) throw new Error(`thread ${thread} stands still`);
    await new Promise(setImmediate);
  }
}
