import { CORE } from '../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, createPoolMemory, type PoolMemory } from '../dist/src/core/memory.js';
import { PrefixIndex } from '../dist/src/core/prefix-index.js';

const GROUPS = 32;
const MIX = 0x9e3779b97f4a7c15n;

/** Numbers with a seed, so that every run measures the same. */
function generator(seed: bigint): () => bigint {
  let state = seed;
  return () => {
    state = BigInt.asUintN(64, state + MIX);
    let z = state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return z ^ (z >> 31n);
  };
}

export interface Workload {
  readonly pool: PoolMemory;
  readonly core: CoreInstance;
  readonly index: PrefixIndex;
  /** Addresses of queries in shared memory, `blocks` hashes each. */
  readonly queries: readonly number[];
  /** Sessions in the order in which they were stored: who holds how much of what. */
  readonly sessions: readonly { readonly hashes: BigUint64Array; readonly first: number; readonly second: number }[];
}

/**
 * Prompts of `blocks` blocks: 32 groups share a system prompt of a quarter of it; each session is held in full by one
 * endpoint and to 60 % by a second. A query repeats 7/8 of a session and then misses.
 */
export function makeWorkload(blocks: number, endpoints: number, memberships: number): Workload {
  const threads = 64;
  const pool = createPoolMemory({
    endpoints,
    indexBlocks: Math.ceil(memberships * 0.75),
    requests: 4096,
    chainBlocks: 2048,
    threads,
    scans: 1,
    telemetryBytes: 64,
  });
  const core = attachCore(pool, 0);
  const index = new PrefixIndex(core);
  const next = generator(BigInt(blocks * 7 + endpoints));
  const below = (bound: number) => Number(next() % BigInt(bound));
  const groups = Array.from({ length: GROUPS }, () => Array.from({ length: blocks / 4 }, next));
  const sessions: { hashes: BigUint64Array; first: number; second: number }[] = [];
  while (index.counters().memberships < memberships) {
    const group = groups[sessions.length % GROUPS]!;
    const own = Array.from({ length: blocks - group.length }, next);
    const session = {
      hashes: BigUint64Array.from([...group, ...own]),
      first: below(endpoints),
      second: below(endpoints),
    };
    index.writeHashes(session.hashes);
    index.insert(session.first, blocks);
    index.insert(session.second, Math.floor(blocks * 0.6));
    sessions.push(session);
  }
  return { pool, core, index, sessions, queries: writeQueries(core, sessions, blocks, next, threads) };
}

/** Writes queries into the areas of threads that nobody attached as. */
function writeQueries(
  core: CoreInstance,
  sessions: Workload['sessions'],
  blocks: number,
  next: () => bigint,
  threads: number,
): number[] {
  const room = CORE.THREAD_INPUT_BYTES + CORE.THREAD_OUTPUT_BYTES;
  const kept = Math.floor((blocks * 7) / 8);
  const addresses: number[] = [];
  for (let thread = 1; thread < threads; thread++) {
    const area = core.call.threadAddress(thread) >>> 0;
    for (let at = area; at + blocks * 8 <= area + room && addresses.length < 4096; at += blocks * 8) {
      const session = sessions[Number(next() % BigInt(sessions.length))]!;
      const query = new BigUint64Array(core.memory.buffer, at, blocks);
      query.set(session.hashes);
      for (let i = kept; i < blocks; i++) query[i] = next();
      addresses.push(at);
    }
  }
  return addresses;
}
