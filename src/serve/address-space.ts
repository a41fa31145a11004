import { readFileSync } from 'node:fs';

/**
 * Address space that Node.js reserves for a thread, bytes: 613 MB more of VmPeak with each further shard (Node.js 24).
 */
const THREAD_BYTES = 640 * 2 ** 20;
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
 * Refuses a start whose threads have no room in the address space: V8 would abort the process without a word of it.
 * @throws with one line that names the sizes and the flag that lowers them
 */
export function checkAddressSpace(shards: number, space: AddressSpace | undefined = ownAddressSpace()): void {
  if (space === undefined) return;
  const wanted = shards * THREAD_BYTES;
  const left = space.limit - space.used;
  if (wanted <= left) return;
  const mib = (bytes: number) => `${Math.ceil(bytes / MIB_BYTES)} MiB`;
  const fewer = shards > 1 ? 'lower --shards, or raise' : 'raise';
  throw new Error(
    `--shards=${shards} reserves ${mib(wanted)} of address space, and of the limit of ${mib(space.limit)} ` +
      `(ulimit -v) ${mib(Math.max(0, left))} are left: ${fewer} the limit to ${mib(space.used + wanted)} and more`,
  );
}
