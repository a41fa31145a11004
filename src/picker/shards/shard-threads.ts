import { Piscina } from 'piscina';

/**
 * The threads that shards run on. They load a shard's program at once and by themselves, so a process that makes them
 * first can read its configuration meanwhile.
 */
export function startShardThreads(count: number): Piscina {
  const threads = new Piscina({
    filename: new URL('./shard.js', import.meta.url).href,
    name: 'shard',
    minThreads: count,
    maxThreads: count,
    idleTimeout: Number.POSITIVE_INFINITY,
    atomics: 'disabled',
    recordTiming: false,
  });
  // A dying worker is reported by its task's rejection; this only keeps the event from being unhandled.
  threads.on('error', () => {});
  return threads;
}
