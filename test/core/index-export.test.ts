import { describe, expect, it } from 'vitest';
import { type ExportedSegment, IndexExport, parentsFirst } from '../../dist/src/core/index-export.js';
import type { CoreInstance } from '../../dist/src/core/memory.js';
import { chain, insert, openPool, run } from './index-pool.ts';

/** Everything that the index of a pool exports. */
function exported(core: CoreInstance): ExportedSegment[] {
  const reader = new IndexExport(core);
  const segments: ExportedSegment[] = [];
  for (let piece = reader.next(); piece !== undefined; piece = reader.next()) segments.push(...piece);
  return segments;
}

/** Endpoint slots that hold each block of the segments. */
function holders(segments: readonly ExportedSegment[]): Map<bigint, readonly number[]> {
  return new Map(
    segments.flatMap(({ hashes, runs }) =>
      [...hashes].map((hash, at) => [hash, [...(runs.find(({ end }) => at < end)?.slots ?? [])]] as const),
    ),
  );
}

describe('an export of the prefix index', () => {
  it('an export of the prefix index names the holders of each block, and the block before each segment', () => {
    const { core, index } = openPool();
    const prompt = chain(...run(0, 10));
    const branch = chain(...run(0, 4), 100, 101);
    insert(index, 1, prompt);
    insert(index, 33, prompt.slice(0, 6));
    insert(index, 7, branch);
    const segments = exported(core);
    const held = holders(segments);
    expect(prompt.map((hash) => held.get(hash))).toEqual([
      ...Array.from({ length: 4 }, () => [1, 7, 33]),
      ...Array.from({ length: 2 }, () => [1, 33]),
      ...Array.from({ length: 4 }, () => [1]),
    ]);
    expect(branch.slice(4).map((hash) => held.get(hash))).toEqual([[7], [7]]);
    const ofBranch = segments.find(({ hashes }) => hashes[0] === branch[4])!;
    expect([ofBranch.depth, ofBranch.parentHash]).toEqual([4, prompt[3]]);
    expect(segments.find(({ depth }) => depth === 0)!.parentHash).toBeUndefined();
  });
});

function segment(number: number, parent: number, depth: number, age: number): ExportedSegment {
  return { segment: number, parent, parentHash: undefined, age, depth, hashes: new BigUint64Array(1), runs: [] };
}

const order = (segments: readonly ExportedSegment[]) => parentsFirst(segments).map(({ segment: number }) => number);

describe('the order in which segments are entered', () => {
  it('the order in which segments are entered has prompts used longest ago first, each from its first block on', () => {
    const [oldRoot, newRoot] = [segment(1, 0, 0, 50), segment(2, 0, 0, 5)];
    const [ofOld, ofNew] = [segment(3, 1, 1, 1), segment(4, 2, 1, 1)];
    expect(order([ofNew, ofOld, newRoot, oldRoot])).toEqual([1, 3, 2, 4]);
  });

  it('the order in which segments are entered takes a chain as long as depths go', () => {
    const chain = Array.from({ length: 65_536 }, (_, depth) => segment(depth + 1, depth, depth, depth === 0 ? 9 : 0));
    expect(order([...chain].reverse())).toEqual(chain.map(({ segment: number }) => number));
  });

  it('the order in which segments are entered ends where parents name each other', () => {
    expect(order([segment(1, 2, 3, 7), segment(2, 1, 3, 8)])).toEqual([2, 1]);
  });
});
