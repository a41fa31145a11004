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
 * Compares what a start with these flags reserves with the limit on the address space; pools of --pools come later.
 * @throws as `checkAddressSpace`
 */
export async function checkStart(flags: ServeFlags): Promise<void> {
  const space = ownAddressSpace();
  if (space === undefined) return;
  const { needOfPool } = await import('../picker/pool-memory.js');
  checkAddressSpace({ shards: flags.shards, ...needOfPool(boundsOf(flags)) }, space);
}

/** What a start reserves: its threads and the pool that the flags describe. */
export interface SpaceNeed {
  readonly shards: number;
  readonly poolBytes: number;
  /** Flags that lower the pool's bytes, with their values. */
  readonly lowering: string;
}

/**
 * Refuses a start that has no room in the address space: V8 would abort the process without a word of it.
 * @throws with one line that names the sizes, the flags that lower them where one can, and the limit that is needed
 */
export function checkAddressSpace({ shards, poolBytes, lowering }: SpaceNeed, { limit, used }: AddressSpace): void {
  const threadBytes = shards * THREAD_BYTES;
  const left = limit - used;
  const wanted = threadBytes + poolBytes + REST_BYTES;
  if (wanted <= left) return;
  const mib = (bytes: number) => `${Math.ceil(bytes / MIB_BYTES)} MiB`;
  throw new Error(
    `--shards=${shards} reserves ${mib(threadBytes)} of address space, the pool ${mib(poolBytes)} and the rest ` +
      `${mib(REST_BYTES)}, and of the limit of ${mib(limit)} (ulimit -v) ${mib(Math.max(0, left))} are left: ` +
      `${remedy(left - REST_BYTES, shards, lowering)} the limit to ${mib(used + wanted)} and more`,
  );
}

/** Flags are named where one can be enough: those of the pool beside the threads, --shards where one thread fits. */
function remedy(bytesLeft: number, shards: number, lowering: string): string {
  if (bytesLeft > shards * THREAD_BYTES) return `${lowering}, or raise`;
  return shards > 1 && bytesLeft > THREAD_BYTES ? 'lower --shards, or raise' : 'raise';
}
