import { EndpointTable } from '../core/endpoint-table.js';
import {
  attachCore,
  type CoreInstance,
  createPoolMemory,
  defaultPoolSizes,
  loadCoreModule,
  MemoryRefused,
  MemoryTooLarge,
  type PoolMemory,
  type PoolSizes,
  poolMemoryBytes,
} from '../core/memory.js';
import { checkMemoryLimit, memoryLimit, type PoolNeed } from './memory-limit.js';
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
 * @throws with one line that names the size and the flags that lower it, when the memory cannot be had,
 *   or cannot be used up under the limit on the process
 */
export function openMemory(
  { bounds, decide, replica, log }: Pick<PickerOptions, 'bounds' | 'decide' | 'replica' | 'log'>,
  hashSeed: bigint,
): OpenedMemory {
  const sizes = sizesOf({ bounds, replica });
  const module = loadCoreModule();
  const warning = checkMemoryLimit({ bounds, ...needOf(sizes, module, bounds) }, memoryLimit());
  if (warning !== undefined) log.warn(warning);
  const memory = createMemory(sizes, { module, hashSeed }, bounds);
  const core = attachCore(memory, 0);
  const table = new EndpointTable(core);
  if (!decide.ejection) table.disableEjection();
  return { memory, core, table };
}

function sizesOf({ bounds, replica }: Pick<PickerOptions, 'bounds' | 'replica'>): PoolSizes {
  const { maxEndpoints, maxCharges, indexBlocks, shards, maxStreams, decisions } = bounds;
  return {
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
}

/** Bytes of the pool's memory, and those that depend on the number of blocks. */
function needOf(
  sizes: PoolSizes,
  module: WebAssembly.Module,
  bounds: PickerOptions['bounds'],
): Pick<PoolNeed, 'poolBytes' | 'indexBytes'> {
  try {
    const poolBytes = poolMemoryBytes(sizes, module);
    return { poolBytes, indexBytes: poolBytes - poolMemoryBytes({ ...sizes, indexBlocks: 1 }, module) };
  } catch (error) {
    if (!(error instanceof MemoryTooLarge)) throw error;
    throw new Error(
      `the memory of the pool would need more than the 4 GiB that one can have: ${lowering(bounds, module)}`,
    );
  }
}

/** What pools reserve. */
export interface ReservedByPools {
  readonly poolBytes: number;
  /** What is left of it with each of the flags at its least. */
  readonly leastBytes: number;
  /** Flags that lower the bytes, with their values. */
  readonly lowering: string;
}

/**
 * Bytes that the pool of these bounds reserves, and the flags that lower them.
 * @throws with one line, when it would need more than one memory can have
 */
export function needOfPool(bounds: PickerOptions['bounds']): ReservedByPools {
  const module = loadCoreModule();
  const { poolBytes } = needOf(sizesOf({ bounds, replica: undefined }), module, bounds);
  const leastBytes = bytesOf({ ...bounds, ...LEAST }, module);
  return { poolBytes, leastBytes, lowering: lowering(bounds, module) };
}

function createMemory(
  sizes: PoolSizes,
  options: { readonly module: WebAssembly.Module; readonly hashSeed: bigint },
  bounds: PickerOptions['bounds'],
): PoolMemory {
  try {
    return createPoolMemory(sizes, options);
  } catch (error) {
    throw error instanceof MemoryRefused
      ? new Error(refusedText(error.bytes, lowering(bounds, options.module)))
      : error;
  }
}

const MIB_BYTES = 2 ** 20;

function refusedText(bytes: number, remedy: string): string {
  return (
    `cannot reserve ${Math.ceil(bytes / MIB_BYTES)} MiB (${bytes} bytes) of memory for the pool: ` +
    `${remedy}, or raise the limit on the address space of the process (ulimit -v)`
  );
}

/** The least of each bound that decides the size of a pool. */
const LEAST = { indexBlocks: 1, maxStreams: 1, maxEndpoints: 1, decisions: 0 };

/** The flags that lower the memory of a pool, with their values: first the one without which it would be smallest. */
function lowering(bounds: PickerOptions['bounds'], module: WebAssembly.Module): string {
  const { indexBlocks, maxEndpoints, maxStreams, decisions, shards } = bounds;
  const flags = (
    [
      { text: `--index-blocks (${indexBlocks}; indexBlocks of a pool of --pools)`, bound: 'indexBlocks' },
      { text: `--max-streams (${maxStreams})`, bound: 'maxStreams' },
      { text: `--max-endpoints (${maxEndpoints}; maxEndpoints of a pool of --pools)`, bound: 'maxEndpoints' },
      { text: `--decision-log-size (${decisions})`, bound: 'decisions' },
    ] as const
  ).map(({ text, bound }) => ({ text, bytes: bytesOf({ ...bounds, [bound]: LEAST[bound] }, module) }));
  const named = flags.sort((a, b) => a.bytes - b.bytes).map(({ text }) => text);
  return `lower ${named.join(', ')}${shards > 1 ? ` or --shards (${shards})` : ''}`;
}

/** Bytes of a pool, infinite when they are more than one memory can have. */
function bytesOf(bounds: PickerOptions['bounds'], module: WebAssembly.Module): number {
  try {
    return poolMemoryBytes(sizesOf({ bounds, replica: undefined }), module);
  } catch (error) {
    if (error instanceof MemoryTooLarge) return Number.POSITIVE_INFINITY;
    throw error;
  }
}
