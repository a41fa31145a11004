import type { ResourceLimits } from 'node:worker_threads';
import { Piscina } from 'piscina';

/**
 * Bound on the young generation of a shard's heap, in MB. Node.js lets a thread have 192; a shard fills what it has
 * before the next collection, and collects as quickly with an eighth of it: 100 MB less memory, the same CPU time per
 * request (`npm run bench -- memory`, 8 MB semi-spaces against the default).
 */
const YOUNG_GENERATION_MB = 24;

/**
 * Threads of the shards. They load a shard's program at once, so the process can read its configuration meanwhile.
 * @param resourceLimits of each thread, beside the bound on its young generation; absent = those of Node.js
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
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB, ...resourceLimits },
  });
  // A dying worker rejects its task; this handler only keeps the event from being unhandled.
  threads.on('error', () => {});
  return threads;
}
