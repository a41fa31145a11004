import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, createPoolMemory, type PoolSizes } from '../../dist/src/core/memory.js';
import { PrefixIndex } from '../../dist/src/core/prefix-index.js';
import { wholeHash } from './prefix-oracle.ts';

/** Factor on the number and length of random histories and of killed threads. */
export const stress = Number(process.env.POINTSMAN_STRESS ?? 1);

export const smallPool: PoolSizes = {
  endpoints: 64,
  indexBlocks: 20_000,
  requests: 64,
  chainBlocks: 1024,
  threads: 6,
  scans: 1,
  telemetryBytes: 65_536,
};

/** A fresh pool and the control thread's index over it. */
export function openPool(sizes: Partial<PoolSizes> = {}) {
  const pool = createPoolMemory({ ...smallPool, ...sizes });
  const core = attachCore(pool, 0);
  return { pool, core, index: new PrefixIndex(core) };
}

/** Chain hashes of some block contents. */
export function chain(...contents: number[]): bigint[] {
  const hashes: bigint[] = [];
  let hash = 17n;
  for (const content of contents) {
    hash = (hash * 0x9e3779b97f4a7c15n + BigInt(content) + 0x1234567n) & wholeHash;
    hash ^= hash >> 31n;
    hashes.push(hash);
  }
  return hashes;
}

/** `count` numbers from `from` on. */
export function run(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => from + i);
}

export function put(index: PrefixIndex, hashes: readonly bigint[]): void {
  index.writeHashes(BigUint64Array.from(hashes));
}

export function insert(index: PrefixIndex, slot: number, hashes: readonly bigint[]): number {
  put(index, hashes);
  return index.insert(slot, hashes.length);
}

export function match(index: PrefixIndex, hashes: readonly bigint[]): number[] {
  put(index, hashes);
  return [...index.match(hashes.length)];
}

/** Repairs the index without requests in flight. */
export function repair({ call }: CoreInstance): void {
  const lock = CORE.HEADER + CORE.HEADER_INDEX_LOCK;
  if (call.lockAcquire(lock, 100) === 0) throw new Error('the index lock is taken');
  call.activeRepairBegin();
  call.prefixRepairRest();
  call.lockRelease(lock);
}

/** 0, or the number of the first invariant that does not hold. */
export function check(core: CoreInstance): number {
  return core.call.prefixCheck() || core.call.activeCheck();
}
