import { EndpointTable } from '../../dist/src/core/endpoint-table.js';
import { attachCore, createPoolMemory, defaultPoolSizes } from '../../dist/src/core/memory.js';
import { PrefixIndex } from '../../dist/src/core/prefix-index.js';
import { TokenChain } from '../../dist/src/core/token-chain.js';
import { EngineBlocks } from '../../dist/src/kvevents/engine-blocks.js';
import { EventCounts } from '../../dist/src/kvevents/event-counts.js';

/** A pool of two endpoints whose engines tell of their blocks. */
export function eventPool(blockTokens = 4, blocksMost = 10_000) {
  const sizes = {
    ...defaultPoolSizes,
    endpoints: 64,
    indexBlocks: 20_000,
    requests: 64,
    chainBlocks: 512,
    threads: 2,
    scans: 4,
  };
  const memory = createPoolMemory(sizes, { hashSeed: 5n });
  const core = attachCore(memory, 0);
  const table = new EndpointTable(core);
  for (const slot of [0, 1]) table.open(slot, 1);
  const index = new PrefixIndex(core);
  const chain = new TokenChain(core);
  const counts = new EventCounts();
  const services = { index, chain, blockTokens, blocksMost, counts };
  /** Blocks of a prompt that each of the two endpoints holds. */
  const matched = (
    tokens: readonly number[],
    model = 'm',
    salt?: string,
    features: { identifier: string; offset: number; length: number }[] = [],
  ) => {
    const { blocks } = chain.chain({ ids: Uint32Array.from(tokens), features }, model, salt, blockTokens);
    const found = index.match(blocks);
    return [found[0]!, found[1]!];
  };
  return {
    core,
    memory,
    index,
    chain,
    counts,
    services,
    matched,
    /** What the first endpoint holds of a prompt is worth, in blocks on the GPU. */
    worth: (tokens: readonly number[]): number => {
      const { blocks } = chain.chain({ ids: Uint32Array.from(tokens), features: [] }, 'm', undefined, blockTokens);
      return index.worth(blocks)[0]!;
    },
    blocks: (slot = 0) => new EngineBlocks(slot, services),
    dropped: () => Object.fromEntries(counts.dropped),
  };
}
