import type { Bounds } from '../contract/bounds.js';

/** Memory of an idle picker with one shard and of a further shard (docs/performance.md, docs/sizing.md). */
const IDLE_BYTES = 130_000_000;
const SHARD_BYTES = 40_000_000;
const MIB_BYTES = 2 ** 20;

/** Memory of a picker without pools, in bytes. */
export function programBytes(shards: number): number {
  return IDLE_BYTES + (shards - 1) * SHARD_BYTES;
}

/** Memory that this process may take, in bytes: the least limit of its cgroups; undefined = there is none. */
export function memoryLimit(): number | undefined {
  const limit = process.constrainedMemory();
  // 0 and figures beyond any machine say that there is no limit.
  return limit > 0 && limit < Number.MAX_SAFE_INTEGER ? limit : undefined;
}

export interface PoolNeed {
  readonly bounds: Pick<Bounds, 'shards' | 'indexBlocks' | 'maxBufferedBytes'>;
  /** Memory of the pool at its bounds, and the part of the prefix index, which fills up in use; bytes. */
  readonly poolBytes: number;
  readonly indexBytes: number;
}

/**
 * Compares what a pool takes with the limit on the memory of the process, beyond which the system kills it.
 * @param limit bytes; undefined = there is none
 * @returns a warning when the limit is below what the picker takes at its bounds; undefined = it is not
 * @throws with one line that names the sizes and the flag, when the index cannot become full
 */
export function checkMemoryLimit(need: PoolNeed, limit: number | undefined): string | undefined {
  if (limit === undefined) return undefined;
  const { bounds, poolBytes, indexBytes } = need;
  const ownBytes = programBytes(bounds.shards);
  const allowed = `the ${mib(limit)} that its cgroup allows (memory.max; limits.memory of a container)`;
  const program = `${mib(ownBytes)} for the program (--shards=${bounds.shards})`;
  const fullBytes = ownBytes + indexBytes;
  if (fullBytes > limit) {
    const flag = ownBytes < limit ? '--index-blocks' : '--shards';
    // One shard without an index is the least that there is.
    const lowered = flag === '--shards' && bounds.shards === 1 ? '' : `lower ${flag}, or `;
    throw new Error(
      `the picker takes ${mib(fullBytes)} when its index is full: ${program} and ${mib(indexBytes)} for the index ` +
        `(--index-blocks=${bounds.indexBlocks}; indexBlocks of a pool of --pools), more than ${allowed}: ` +
        `${lowered}raise the limit`,
    );
  }
  const bytesMax = ownBytes + poolBytes + bounds.maxBufferedBytes;
  if (bytesMax <= limit) return undefined;
  return (
    `at its bounds the picker takes ${mib(bytesMax)}: ${program}, ${mib(poolBytes)} for the pool and ` +
    `${mib(bounds.maxBufferedBytes)} for request bodies, more than ${allowed}; the system would kill it. Lower ` +
    '--max-buffered-bytes, --max-streams, --index-blocks or --max-endpoints, or raise the limit'
  );
}

function mib(bytes: number): string {
  return `${Math.ceil(bytes / MIB_BYTES)} MiB`;
}
