import { attachCore, createPoolMemory } from '../dist/core/memory.js';
import { PrefixIndex } from '../dist/core/prefix-index.js';
import type { Bench } from './bench.ts';

const PROMPTS_KEPT = 16;
const PROMPTS = 64;
const MIX = 0x9e3779b97f4a7c15n;

/** Hashes that no other prompt has. */
function chain(prompt: number, blocks: number): BigUint64Array {
  return BigUint64Array.from({ length: blocks }, (_, i) =>
    BigInt.asUintN(64, (BigInt(prompt * 65_536 + i) + 1n) * MIX),
  );
}

/** Insertion at an endpoint at its capacity: each prompt evicts an older one, whose blocks no other endpoint holds. */
function insertBench(blocks: number): Bench {
  return {
    name: `index/insert-${blocks}-blocks-evicting`,
    async setup() {
      const core = attachCore(
        createPoolMemory({
          endpoints: 64,
          indexBlocks: 1e6,
          requests: 64,
          chainBlocks: 2048,
          threads: 1,
          scans: 1,
          telemetryBytes: 64,
        }),
        0,
      );
      const index = new PrefixIndex(core);
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

export const benches: readonly Bench[] = [insertBench(1560)];
