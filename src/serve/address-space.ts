import { readFileSync } from 'node:fs';
import { boundsOf } from './bounds-flags.js';
import type { ServeFlags } from './flags.js';

/**
 * Address space that Node.js reserves for a thread, bytes: 613 MB more of VmPeak with each further shard (Node.js 24).
 */
const THREAD_BYTES = 640 * 2 ** 20;
/**
 * What a start takes beside its threads and its pool, bytes: with one shard a start needs 105 MB more of address space
 * than these, and V8 aborts without it.
 */
const REST_BYTES = 128 * 2 ** 20;
const MIB_BYTES = 2 ** 20;
const KIB_BYTES = 1024;

/** Address space of a process, bytes. */
export interface AddressSpace {
  /** Soft limit (`ulimit -v`). */
  readonly limit: number;
  readonly used: number;
}

/** Undefined where it has no limit, or is not Linux. */
function ownAddressSpace(): AddressSpace | undefined {
  try {
    const limit = /^Max address space\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    if (limit === undefined) return undefined;
    const used = /^VmSize:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
    return used === undefined ? undefined : { limit: Number(limit), used: Number(used) * KIB_BYTES };
  } catch {
    // Without these files the limit is found when something cannot be had.
    return undefined;
  }
}

/**
 * Compares what a start with these flags reserves, with the pools of --pools, with the limit on the address space.
 * @throws as `checkAddressSpace`
 */
export async function checkStart(flags: ServeFlags): Promise<void> {
  const space = ownAddressSpace();
  if (space === undefined) return;
  const { needOfPool } = await import('../picker/pool-memory.js');
  const further = flags.pools === undefined ? [] : await needsOfEntries(flags, flags.pools);
  checkAddressSpace({ shards: flags.shards, ...needOfPool(boundsOf(flags)), further }, space);
}

/** What each pool of the file of --pools reserves; none when the file cannot be read: the start itself says why. */
async function needsOfEntries(flags: ServeFlags, file: string): Promise<readonly EntryNeed[]> {
  const { needOfPool } = await import('../picker/pool-memory.js');
  const { entryBounds } = await import('./pool-entry.js');
  const { poolsFileFindings } = await import('../config/pools-file.js');
  const { readBoundedFile } = await import('../pool/discovery/file-watch.js');
  const text = await readBoundedFile(file).catch(() => '');
  const { read } = poolsFileFindings(text, file, { own: undefined, max: flags.maxPools });
  const bounds = boundsOf(flags);
  return (read?.pools ?? []).map((entry) => ({ ...entry, ...needOfPool(entryBounds(bounds, entry)) }));
}

/** What one pool of --pools reserves. */
export interface EntryNeed {
  readonly name: string;
  readonly maxEndpoints: number;
  readonly indexBlocks: number;
  readonly poolBytes: number;
  readonly leastBytes: number;
}

/** What a start reserves: its threads, the pool that the flags describe, and the pools of --pools. */
export interface SpaceNeed {
  readonly shards: number;
  readonly poolBytes: number;
  /** Bytes of the pool with each of the flags at its least. */
  readonly leastBytes: number;
  /** Flags that lower the pool's bytes, with their values. */
  readonly lowering: string;
  readonly further: readonly EntryNeed[];
}

/**
 * Refuses a start that has no room in the address space: V8 would abort the process without a word of it.
 * @throws with one line that names the sizes, the flags that lower them where one can, and the limit that is needed
 */
export function checkAddressSpace(need: SpaceNeed, { limit, used }: AddressSpace): void {
  const { shards, poolBytes, further } = need;
  const threadBytes = shards * THREAD_BYTES;
  const left = limit - used;
  const wanted = threadBytes + poolBytes + sumOf(further, 'poolBytes') + REST_BYTES;
  if (wanted <= left) return;
  throw new Error(
    `--shards=${shards} reserves ${mib(threadBytes)} of address space, the pool ${mib(poolBytes)}` +
      `${entriesText(further)} and the rest ` +
      `${mib(REST_BYTES)}, and of the limit of ${mib(limit)} (ulimit -v) ${mib(Math.max(0, left))} are left: ` +
      `${remedy(left - REST_BYTES, need)} the limit to ${mib(used + wanted)} and more`,
  );
}

function mib(bytes: number): string {
  return `${Math.ceil(bytes / MIB_BYTES)} MiB`;
}

function sumOf(further: readonly EntryNeed[], bytes: 'poolBytes' | 'leastBytes'): number {
  return further.reduce((sum, entry) => sum + entry[bytes], 0);
}

/** The pools of --pools: their sum, and the entry that takes the most of it. */
function entriesText(further: readonly EntryNeed[]): string {
  const [largest] = [...further].sort((a, b) => b.poolBytes - a.poolBytes);
  if (largest === undefined) return '';
  const { name, poolBytes, maxEndpoints, indexBlocks } = largest;
  return (
    `, the pools of --pools (${further.length}) ${mib(sumOf(further, 'poolBytes'))} (the largest, ${name}, ` +
    `${mib(poolBytes)} with maxEndpoints ${maxEndpoints} and indexBlocks ${indexBlocks})`
  );
}

/** Flags are named where they can be enough: those of the pools beside the threads, --shards where one thread fits. */
function remedy(bytesLeft: number, { shards, leastBytes, lowering, further }: SpaceNeed): string {
  const least = leastBytes + sumOf(further, 'leastBytes');
  if (bytesLeft > shards * THREAD_BYTES + least) {
    return `${lowering}${further.length === 0 ? '' : ', serve fewer pools'}, or raise`;
  }
  if (shards > 1 && bytesLeft > THREAD_BYTES + least) return 'lower --shards, or raise';
  return further.length === 0 ? 'raise' : 'serve fewer pools, or raise';
}
