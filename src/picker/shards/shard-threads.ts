import type { ResourceLimits } from 'node:worker_threads';
import { Piscina } from 'piscina';

/**
 * Threads of the shards. They load a shard's program at once, so the process can read its configuration meanwhile.
 * @param resourceLimits of each thread; absent = those of Node.js
 */
export function startShardThreads(count: number, resourceLimits?: ResourceLimits): Piscina {
  const threads = new Piscina({
    filename: new URL('./shard.js', import.meta.url).href,
    name: 'shard',
    minThreads: count,
    maxThreads: count,
    idleTimeout: Number.POSITIVE_INFINITY,
    atomics: 'disabled',
    recordTiming: false,
    ...(resourceLimits === undefined ? {} : { resourceLimits }),
  });
  // A dying worker rejects its task; this handler only keeps the event from being unhandled.
  threads.on('error', () => {});
  return threads;
}
