// One thread of threads/chat-4k-N: a shard that answers from memory to memory.
import { workerData } from 'node:worker_threads';
import { memoryBench, type SharedPool } from '../memory.ts';
import { type RoundsData, serveRounds } from './rounds.ts';

const start = workerData as RoundsData & {
  readonly shared: SharedPool;
  readonly batches: number;
  readonly batch: number;
};
const shape = { promptBytes: 4_000, chunks: 1, batch: start.batch };
const { run } = await memoryBench(shape, { ...start.shared, thread: start.thread });
await serveRounds(start, async () => {
  for (let i = 0; i < start.batches; i++) await run();
});
