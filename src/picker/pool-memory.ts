import { EndpointTable } from '../core/endpoint-table.js';
import {
  attachCore,
  type CoreInstance,
  createPoolMemory,
  defaultPoolSizes,
  MemoryRefused,
  type PoolMemory,
} from '../core/memory.js';
import type { PickerOptions } from './picker-options.js';

/** Thread numbers after those of the control thread and the shards, for job threads that attach to the memory. */
const JOB_THREADS = 4;

/** Bound on scans and wait slots over all threads. Each takes about 8 KB once it is touched. */
const SCANS_MAX = 131_072;

/**
 * Bytes for the columns of decisions, over all shards. Decisions about 8 endpoints take 1.2 KB, about 256 some 33 KB.
 */
const DECISION_COLUMN_BYTES = 16 << 20;

/** Ring of placed prompts of each shard: 10 ms of a million blocks per second, ten times over. */
const CHANGE_BYTES = 1 << 20;

/** One scan and one wait slot for each stream of a shard, so that the bound on streams is reached first. */
function scansOf(maxStreams: number, shards: number): number {
  return Math.min(Math.ceil(maxStreams / shards), Math.floor(SCANS_MAX / (1 + shards + JOB_THREADS)));
}

/** Shared memory of a pool, and the control thread's access to it. */
interface OpenedMemory {
  readonly memory: PoolMemory;
  readonly core: CoreInstance;
  readonly table: EndpointTable;
}

/**
 * Makes the memory of a pool, of the size that the bounds of the picker ask for.
 * @throws with one line that names the size and the flags that lower it, when the memory cannot be had
 */
export function openMemory(
  { bounds, decide, replica }: Pick<PickerOptions, 'bounds' | 'decide' | 'replica'>,
  hashSeed: bigint,
): OpenedMemory {
  const memory = createMemory({ bounds, replica }, hashSeed);
  const core = attachCore(memory, 0);
  const table = new EndpointTable(core);
  if (!decide.ejection) table.disableEjection();
  return { memory, core, table };
}

function createMemory({ bounds, replica }: Pick<PickerOptions, 'bounds' | 'replica'>, hashSeed: bigint): PoolMemory {
  const { maxEndpoints, maxCharges, indexBlocks, shards, maxStreams, decisions } = bounds;
  const sizes = {
    ...defaultPoolSizes,
    endpoints: maxEndpoints,
    indexBlocks,
    requests: maxCharges,
    threads: 1 + shards + JOB_THREADS,
    scans: scansOf(maxStreams, shards),
    decisions: Math.ceil(decisions / shards),
    decisionThreads: 1 + shards,
    changeBytes: replica === undefined ? 0 : CHANGE_BYTES,
    decisionColumnBytes: decisions === 0 ? 0 : Math.ceil(DECISION_COLUMN_BYTES / shards),
  };
  try {
    return createPoolMemory(sizes, { hashSeed });
  } catch (error) {
    throw error instanceof MemoryRefused ? new Error(refusedText(error.bytes, bounds)) : error;
  }
}

const MIB_BYTES = 2 ** 20;

function refusedText(bytes: number, { indexBlocks, maxEndpoints, shards }: PickerOptions['bounds']): string {
  return (
    `cannot reserve ${Math.ceil(bytes / MIB_BYTES)} MiB (${bytes} bytes) of memory for the pool: lower ` +
    `--index-blocks (${indexBlocks}; indexBlocks of a pool of --pools), --max-endpoints (${maxEndpoints}) or ` +
    `--shards (${shards}), or raise the limit on the address space of the process (ulimit -v)`
  );
}
