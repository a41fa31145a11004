import { describe, expect, it } from 'vitest';
import { PrefixIndex } from '../../dist/src/core/prefix-index.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';

const BLOCK_BYTES = 256;
const prefix = scorer('OP_SCORE_PREFIX', 1, 0, 0, 64);

/** Two endpoints whose engines say how large their blocks are; prompts are of zero bytes, four to a token. */
function pool(engineTokens: number | undefined, wholeBlocks = true) {
  const signals = [0, 1].map(() => (engineTokens === undefined ? {} : { blockTokens: engineTokens, blockCount: 100 }));
  const made = makePool([prefix, pickMax], signals);
  made.programs.publish(0, [prefix, pickMax], { inserts: true, wholeBlocks });
  const decide = (promptTokens: number, more: { subset?: readonly number[]; charged?: boolean } = {}) => {
    const bytes = promptTokens * 4;
    made.core.bytes.fill(0, made.core.call.inputAddress() >>> 0, (made.core.call.inputAddress() >>> 0) + bytes);
    made.core.call.hashBlocks(bytes, BLOCK_BYTES);
    const blocks = Math.floor(bytes / BLOCK_BYTES);
    const tail = bytes % BLOCK_BYTES !== 0;
    return made.decider.decide({ ...plainRequest, blocks, tail, promptTokens, ...more });
  };
  /** What is credited to an endpoint for a prompt that it was sent before. */
  const credited = (promptTokens: number) => {
    decide(promptTokens, { subset: [1] });
    const { matchedBlocks, uncachedTokens } = decide(promptTokens, { subset: [1] });
    return { matchedBlocks, uncachedTokens };
  };
  return { ...made, decide, credited };
}

describe('a match of blocks that engines tell', () => {
  /** Blocks of the index (64 tokens) that count, of `held` ones in a prompt of 40. */
  function counted(engineTokens: number, held: number, untold = false): number {
    const { core, programs, decider, table } = pool(engineTokens);
    programs.publish(0, [prefix, pickMax], { inserts: false, wholeBlocks: true, told: true });
    table.setUntold(1, untold);
    const hash = () => core.call.hashBlocks(40 * BLOCK_BYTES, BLOCK_BYTES);
    hash();
    new PrefixIndex(core).store(1, undefined, held);
    hash();
    const asked = { ...plainRequest, blocks: 40, tail: false, promptTokens: 40 * 64, subset: [1] };
    return decider.decide({ ...asked, charged: false }).matchedBlocks;
  }

  it('a match of blocks that engines tell ends with a whole block of the engine', () => {
    expect([3, 4, 7, 8].map((held) => counted(256, held))).toEqual([0, 4, 4, 8]);
  });

  it('a match of blocks that engines tell counts every block that larger ones of the engine hold to their ends', () => {
    // The first block of 528 tokens ends behind 8.25 blocks of the index, the second behind 16.5.
    expect([7, 8, 9, 15, 16].map((held) => counted(528, held))).toEqual([0, 8, 8, 8, 16]);
  });

  it('a match of blocks that engines tell is not cut by blocks that are smaller than those of the index', () => {
    expect([1, 5].map((held) => counted(16, held))).toEqual([1, 5]);
  });

  it('a match of blocks that engines tell is that of the prompts sent where an engine sends no events', () => {
    expect(counted(528, 8, true)).toBe(0);
  });
});

describe('a match where the engine says how large its blocks are', () => {
  it('a match in blocks of the engine counts as far as blocks of the engine are whole', () => {
    expect(pool(256).credited(7 * 64)).toEqual({ matchedBlocks: 4, uncachedTokens: 3 * 64 });
  });

  it('a match in blocks of the engine counts nothing of a prompt that is shorter than one of them', () => {
    const { credited, decider } = pool(256);
    expect(credited(3 * 64)).toEqual({ matchedBlocks: 0, uncachedTokens: 3 * 64 });
    expect([decider.scoreOf(0), decider.scoreOf(1)]).toEqual([0, 0]);
  });

  it('a match in blocks of the engine counts the blocks of the engine that fit into the last one, and charges the rest', () => {
    expect(pool(16).credited(64 + 40)).toEqual({ matchedBlocks: 2, uncachedTokens: 8 });
  });

  it('a match in blocks of the engine counts no part of the last block that is shorter than a block of the engine', () => {
    expect(pool(16).credited(64 + 10)).toEqual({ matchedBlocks: 1, uncachedTokens: 10 });
  });

  it('a match in blocks of the engine counts blocks whose size does not divide ours by the tokens that both have whole', () => {
    expect(pool(96).credited(5 * 64)).toEqual({ matchedBlocks: 4, uncachedTokens: 64 });
  });

  it('a match in blocks of the engine is not cut while the engine has not told', () => {
    expect(pool(undefined).credited(64 + 10)).toEqual({ matchedBlocks: 2, uncachedTokens: 0 });
  });

  it('a match in blocks of the engine is not cut without autoTune', () => {
    expect(pool(256, false).credited(7 * 64)).toEqual({ matchedBlocks: 7, uncachedTokens: 0 });
  });
});
