import { attachCore, createPoolMemory } from '../dist/src/core/memory.js';
import { PrefixIndex } from '../dist/src/core/prefix-index.js';
import type { Bench } from './bench.ts';

const PROMPTS_KEPT = 16;
const PROMPTS = 64;
const FULL_ENDPOINTS = 8;
/** Capacity of each in blocks. */
const FULL_BLOCKS = 10_000;
const SYSTEM_PROMPTS = 16;
const CHATS = 4_003;
const CHAT_BLOCKS = 64;
/** More than there are segments for a million blocks: when the first one comes again, it has gone. */
const MANY_CHATS = 32_768;
/** Insertions of one run: some of them pay for the others. */
const INSERTIONS = 512;
const MIX = 0x9e3779b97f4a7c15n;

/** Hashes that no other prompt has. */
function chain(prompt: number, blocks: number): BigUint64Array {
  return BigUint64Array.from({ length: blocks }, (_, i) =>
    BigInt.asUintN(64, (BigInt(prompt * 65_536 + i) + 1n) * MIX),
  );
}

async function openIndex(): Promise<PrefixIndex> {
  const memory = createPoolMemory({
    endpoints: 64,
    indexBlocks: 1e6,
    requests: 64,
    chainBlocks: 2048,
    threads: 1,
    scans: 1,
    telemetryBytes: 64,
  });
  return new PrefixIndex(attachCore(memory, 0));
}

/** Insertion at an endpoint at its capacity: each prompt evicts an older one, whose blocks no other endpoint holds. */
function insertBench(blocks: number): Bench {
  return {
    name: `index/insert-${blocks}-blocks-evicting`,
    async setup() {
      const index = await openIndex();
      index.setCapacity(0, PROMPTS_KEPT * blocks);
      const prompts = Array.from({ length: PROMPTS }, (_, prompt) => chain(prompt, blocks));
      let next = 0;
      return {
        opsPerRun: 1,
        run() {
          index.writeHashes(prompts[next]!);
          index.insert(0, blocks);
          next = next + 1 === PROMPTS ? 0 : next + 1;
        },
      };
    },
  };
}

/**
 * Chats of 64 blocks, the first 32 of them one of 16 system prompts, in turns at eight endpoints that are full: each
 * insertion evicts from among a few hundred segments.
 */
const fullPool: Bench = {
  name: 'index/insert-64-blocks-8ep-full',
  async setup() {
    const index = await openIndex();
    for (let slot = 0; slot < FULL_ENDPOINTS; slot++) index.setCapacity(slot, FULL_BLOCKS);
    const systems = Array.from({ length: SYSTEM_PROMPTS }, (_, system) => chain(100_000 + system, CHAT_BLOCKS / 2));
    const chats = Array.from({ length: CHATS }, (_, chat) =>
      BigUint64Array.from([...systems[chat % SYSTEM_PROMPTS]!, ...chain(chat, CHAT_BLOCKS / 2)]),
    );
    let next = 0;
    const run = () => {
      for (let i = 0; i < INSERTIONS; i++, next++) {
        index.writeHashes(chats[next % CHATS]!);
        index.insert(next % FULL_ENDPOINTS, CHAT_BLOCKS);
      }
    };
    while (next < CHATS) run();
    return { opsPerRun: INSERTIONS, run };
  },
};

/**
 * Chats that own 32 blocks each, half a segment, in an index of a million blocks without a free segment: insertions
 * evict the oldest segments of all.
 */
const fullIndex: Bench = {
  name: 'index/insert-32-blocks-no-segment-free',
  async setup() {
    const index = await openIndex();
    const chats = Array.from({ length: MANY_CHATS }, (_, chat) => chain(chat, CHAT_BLOCKS / 2));
    let next = 0;
    const run = () => {
      for (let i = 0; i < INSERTIONS; i++, next++) {
        index.writeHashes(chats[next % MANY_CHATS]!);
        index.insert(next % FULL_ENDPOINTS, CHAT_BLOCKS / 2);
      }
    };
    while (next < MANY_CHATS) run();
    return { opsPerRun: INSERTIONS, run };
  },
};

export const benches: readonly Bench[] = [insertBench(1560), fullPool, fullIndex];
