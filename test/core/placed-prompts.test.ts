import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, createPoolMemory, Decider, EndpointTable, ProgramTable } from '../../dist/src/core/index.js';
import { type PlacedPrompt, PlacedPrompts } from '../../dist/src/core/placed-prompts.js';
import { pickMax, plainRequest, scorer, smallSizes } from './pool.ts';

const OPERATIONS = [scorer('OP_SCORE_PREFIX', 1), pickMax];

function pool(changeBytes: number, capacity = 0, { slot = 5, endpoints = smallSizes.endpoints } = {}) {
  const memory = createPoolMemory({ ...smallSizes, changeBytes, endpoints }, { hashSeed: 7n });
  const control = attachCore(memory, 0);
  const table = new EndpointTable(control);
  new ProgramTable(control).publish(0, OPERATIONS, { inserts: true });
  table.open(slot, 9);
  table.setState(slot, 'live');
  if (capacity > 0) table.setCapacity(slot, capacity);
  const core = attachCore(memory, 1);
  const decider = new Decider(core, 42n);
  const hashes = new BigUint64Array(memory.memory.buffer, core.call.hashesAddress() >>> 0, smallSizes.chainBlocks);
  const place = (chain: readonly bigint[]) => {
    hashes.set(chain);
    decider.decide({ ...plainRequest, blocks: chain.length, promptTokens: 64 * chain.length });
  };
  return { control, place };
}

function read(prompts: PlacedPrompts): { placed: PlacedPrompt[]; lost: number } {
  const placed: PlacedPrompt[] = [];
  const lost = prompts.drain((prompt) => placed.push({ ...prompt, hashes: prompt.hashes.slice() }));
  return { placed, lost };
}

describe('the ring of placed prompts', () => {
  it('the first placement is told whole, the next one from the last block that was held', () => {
    const { control, place } = pool(65_536);
    const prompts = new PlacedPrompts(control);
    place([1n, 2n, 3n]);
    place([1n, 2n, 3n, 4n, 5n]);
    const { placed } = read(prompts);
    expect(placed).toEqual([
      { slot: 5, generation: 9, parent: undefined, hashes: BigUint64Array.of(1n, 2n, 3n), tail: undefined },
      { slot: 5, generation: 9, parent: 3n, hashes: BigUint64Array.of(4n, 5n), tail: undefined },
    ]);
  });

  it('a placement on the last endpoint of the largest pool is told with its slot and generation', () => {
    const slot = CORE.ENDPOINTS_MAX - 1;
    const { control, place } = pool(65_536, 0, { slot, endpoints: CORE.ENDPOINTS_MAX });
    const prompts = new PlacedPrompts(control);
    place([1n]);
    expect(read(prompts).placed).toEqual([
      { slot, generation: 9, parent: undefined, hashes: BigUint64Array.of(1n), tail: undefined },
    ]);
  });

  it('the last block of a prompt that is held already is told, so that peers see the use', () => {
    const { control, place } = pool(65_536);
    const prompts = new PlacedPrompts(control);
    place([1n, 2n, 3n]);
    place([1n, 2n, 3n]);
    expect(read(prompts).placed[1]).toMatchObject({ parent: 2n, hashes: BigUint64Array.of(3n) });
  });

  it('a request without a prompt is told as one without blocks', () => {
    const { control, place } = pool(65_536);
    const prompts = new PlacedPrompts(control);
    place([]);
    expect(read(prompts).placed).toEqual([
      { slot: 5, generation: 9, parent: undefined, hashes: new BigUint64Array(0), tail: undefined },
    ]);
  });

  it('records come out whole and in order, however they meet the end of the ring', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 60 }), (lengths) => {
        const { control, place } = pool(1_024);
        const prompts = new PlacedPrompts(control);
        let next = 1n;
        for (const length of lengths) {
          const chain = Array.from({ length }, () => next++);
          place(chain);
          const { placed, lost } = read(prompts);
          expect(lost).toBe(0);
          expect(placed.map(({ hashes }) => [...hashes])).toEqual([chain]);
        }
      }),
    );
  });

  it('records that find no room are counted, and what was written before comes out', () => {
    const { control, place } = pool(256);
    const prompts = new PlacedPrompts(control);
    for (let i = 0n; i < 20n; i++) place([100n + i]);
    const { placed, lost } = read(prompts);
    expect(placed.length + lost).toBe(20);
    expect(placed.length).toBe(10);
    place([7n]);
    expect(read(prompts)).toMatchObject({ lost: 0, placed: [{ hashes: BigUint64Array.of(7n) }] });
  });

  it('a memory without rings has no reader, and its decisions go on', () => {
    const { control, place } = pool(0);
    place([1n]);
    expect(() => new PlacedPrompts(control)).toThrow('changeBytes');
  });
});
