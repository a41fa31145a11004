import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { bufferSize, keepLent, lendBuffer, takeBackBuffer } from '../../dist/src/request/kept-buffers.js';
import { giveToSlab, slabBytes, sweepSlabs, takeFromSlab } from '../../dist/src/request/slabs.js';

const SIZES = [4_096, 8_192, 16_384, 32_768, 65_536, 131_072].map(bufferSize);
const MINUTE_MS = 60_000;

function takeAll(bytes: number, count: number): Buffer[] {
  return Array.from({ length: count }, () => takeFromSlab(bytes));
}

/** As if all slabs had been empty for long. */
function sweepAll(): void {
  sweepSlabs(performance.now() + 2 * MINUTE_MS);
}

describe('the slabs of a thread', () => {
  afterEach(sweepAll);

  it('the slabs of a thread give each holder a buffer of its own', () => {
    const step = fc.record({ size: fc.constantFrom(...SIZES), gives: fc.boolean(), which: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const held: { buffer: Buffer; mark: number }[] = [];
        for (const [index, { size, gives, which }] of steps.entries()) {
          if (gives && held.length > 0) giveToSlab(held.splice(which % held.length, 1)[0]!.buffer);
          else held.push({ buffer: takeFromSlab(size).fill(index % 251), mark: index % 251 });
          expect(held.every(({ buffer, mark }) => buffer[0] === mark && buffer[buffer.length - 1] === mark)).toBe(true);
        }
        for (const { buffer, mark } of held) expect(buffer.every((byte) => byte === mark)).toBe(true);
        for (const { buffer } of held) giveToSlab(buffer);
        sweepAll();
        expect(slabBytes()).toBe(0);
      }),
      { numRuns: 50 },
    );
  });

  it('the slabs of a thread serve buffers of one size after those of another one', () => {
    const small = takeAll(bufferSize(4_096), 5_000);
    const bytes = slabBytes();
    for (const buffer of small) giveToSlab(buffer);
    const large = takeAll(bufferSize(65_536), 300);
    expect(slabBytes()).toBe(bytes);
    for (const buffer of large) giveToSlab(buffer);
  });

  it('the slabs of a thread do not grow with waves of the same height', () => {
    const heights = Array.from({ length: 5 }, () => {
      const held = SIZES.flatMap((size) => takeAll(size, 100));
      for (const buffer of held) giveToSlab(buffer);
      return slabBytes();
    });
    expect(new Set(heights).size).toBe(1);
  });

  it('a slab goes back to the system when it has been empty for a minute', () => {
    const [kept, ...others] = takeAll(bufferSize(65_536), 1_000);
    const full = slabBytes();
    for (const buffer of others) giveToSlab(buffer);
    const emptyAt = performance.now();
    sweepSlabs(emptyAt + MINUTE_MS / 2);
    const early = slabBytes();
    sweepSlabs(emptyAt + MINUTE_MS);
    expect([early, slabBytes() < full]).toEqual([full, true]);
    expect(kept!.fill('k').toString()).toBe('k'.repeat(kept!.length));
    giveToSlab(kept!);
    sweepAll();
    expect([slabBytes(), kept!.length]).toEqual([0, 0]);
  });

  it('a slab has no buffers that are longer than those of messages', () => {
    expect(() => takeFromSlab(bufferSize(131_072) + 4_096)).toThrow('a buffer of 135424 bytes is none of a slab');
  });

  it('the bytes of a buffer beside a lent one are not taken for its own', () => {
    const [lent, beside] = takeAll(bufferSize(4_096), 2) as [Buffer, Buffer];
    lendBuffer(lent);
    const keptOf = [beside, Buffer.from(lent.buffer, lent.byteOffset, 2 * lent.length)].map(keepLent);
    expect([keptOf, keepLent(lent.subarray(20))]).toEqual([[undefined, undefined], lent]);
    expect(takeBackBuffer()).toBe(false);
    giveToSlab(lent);
    giveToSlab(beside);
  });
});
