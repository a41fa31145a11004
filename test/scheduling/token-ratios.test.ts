import { describe, expect, it } from 'vitest';
import { TokenRatios } from '../../dist/src/scheduling/token-ratios.js';

const BLOCK = 64;
const TEXT_BYTES = 8_000;
const ESTIMATED = TEXT_BYTES / 4;

/** Ratios that have seen prompts of a model whose tokens are so many times the estimate. */
function learned(ratio: number, prompts = 100, model = 'm'): TokenRatios {
  const ratios = new TokenRatios(BLOCK);
  for (let i = 0; i < prompts; i++) ratios.note(model, TEXT_BYTES, ESTIMATED * ratio);
  return ratios;
}

describe('the ratio of a model', () => {
  it.each([0.5, 0.845, 1, 1.25, 2.6])('the ratio of a model scales blocks and prompts alike: %s', (ratio) => {
    const ratios = learned(ratio);
    expect(ratios.blockTokens('m')).toBe(Math.round(ratio * BLOCK));
    const blocks = TEXT_BYTES / (4 * BLOCK);
    expect(ratios.promptTokens('m', TEXT_BYTES)).toBe(Math.ceil(blocks * ratios.blockTokens('m')));
  });

  it('the ratio of a model is 1 before the first answer, and of a model that has told nothing', () => {
    const ratios = learned(0.5);
    expect([ratios.blockTokens('other'), ratios.promptTokens('other', 401)]).toEqual([BLOCK, 101]);
  });

  it('the ratio of a model is not learned from one prompt alone', () => {
    expect(learned(2, 1).blockTokens('m')).toBeLessThan(2 * BLOCK);
  });

  it('the ratio of a model follows a model that is replaced under its name', () => {
    const ratios = learned(0.8, 1_000);
    for (let i = 0; i < 3_000; i++) ratios.note('m', TEXT_BYTES, ESTIMATED * 1.2);
    expect(ratios.blockTokens('m')).toBe(Math.round(1.2 * BLOCK));
  });

  it('the ratio of a model is moved little by a prompt that is no text, or is much longer than others', () => {
    const ratios = learned(1, 500);
    ratios.note('m', TEXT_BYTES, ESTIMATED * 1_000);
    ratios.note('m', 4_000_000, 100_000);
    expect(Math.abs(ratios.blockTokens('m') - BLOCK)).toBeLessThanOrEqual(1);
  });

  it('the ratio of a model is not learned from prompts of mostly template, or without usage', () => {
    const ratios = new TokenRatios(BLOCK);
    for (let i = 0; i < 100; i++) {
      ratios.note('m', 40, 30);
      ratios.note('m', TEXT_BYTES, 0);
    }
    expect(ratios.blockTokens('m')).toBe(BLOCK);
  });

  it('the ratio of a model does not swing between two sizes of blocks', () => {
    const ratios = learned(1 + 0.4 / BLOCK, 2_000);
    const sizes = new Set<number>();
    for (let i = 0; i < 400; i++) {
      ratios.note('m', TEXT_BYTES, ESTIMATED * (1 + (i % 2 === 0 ? 0.9 : 0.1) / BLOCK));
      sizes.add(ratios.blockTokens('m'));
    }
    expect(sizes.size).toBe(1);
  });

  it('the ratio of a model is kept of 256 models; the one that was longest without an answer is forgotten', () => {
    const ratios = learned(2, 100, 'first');
    for (let i = 0; i < 255; i++) ratios.note(`m${i}`, TEXT_BYTES, ESTIMATED);
    ratios.note('first', TEXT_BYTES, ESTIMATED * 2);
    ratios.note('one more', TEXT_BYTES, ESTIMATED);
    expect(ratios.blockTokens('first')).toBe(2 * BLOCK);
    const later = learned(2, 100, 'first');
    for (let i = 0; i < 256; i++) later.note(`m${i}`, TEXT_BYTES, ESTIMATED);
    expect(later.blockTokens('first')).toBe(BLOCK);
  });
});
