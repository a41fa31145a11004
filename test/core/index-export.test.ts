import { describe, expect, it } from 'vitest';
import { type ExportedSegment, parentsFirst } from '../../dist/src/core/index-export.js';

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
