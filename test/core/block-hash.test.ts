import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attachCore, createPoolMemory, defaultPoolSizes, loadCoreModule } from '../../dist/src/core/memory.js';
import { chainHashes, contentHash } from './block-hash-reference.ts';

const seed = 0xfedcba9876543210n;
const sizes = {
  ...defaultPoolSizes,
  endpoints: 64,
  indexBlocks: 1024,
  requests: 64,
  chainBlocks: 64,
  threads: 1,
  scans: 8,
};
const module = loadCoreModule();
const attach = (hashSeed: bigint) => attachCore(createPoolMemory(sizes, { module, hashSeed }), 0);
const core = attach(seed);
const input = core.call.inputAddress() >>> 0;
const output = core.call.outputAddress() >>> 0;
const hashes = core.call.hashesAddress() >>> 0;

function hash(bytes: Uint8Array, instance = core): bigint {
  instance.bytes.set(bytes, input);
  instance.call.hashBytesTo(input, bytes.length, output);
  return instance.view.getBigUint64(output, true);
}

/** Hashes of many inputs of the same size, which lie one behind the other, as [low, high] words. */
function hashMany(size: number, inputs: Uint8Array): Uint32Array {
  const count = inputs.length / size;
  core.bytes.set(inputs, input);
  for (let i = 0; i < count; i++) core.call.hashBytesTo(input + i * size, size, output + i * 8);
  return core.u32.slice(output / 4, output / 4 + count * 2);
}

describe('the content hash', () => {
  it('the content hash agrees with its reference on bytes of every length and at every alignment', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(15), (bytes, shift) => {
        core.bytes.set(bytes, input + shift);
        core.call.hashBytesTo(input + shift, bytes.length, output);
        expect(core.view.getBigUint64(output, true)).toBe(contentHash(seed, bytes));
      }),
      { numRuns: 500 },
    );
  });

  it('the content hash tells trailing zeros from an earlier end', () => {
    const found = Array.from({ length: 100 }, (_, length) => hash(new Uint8Array(length)));
    expect(new Set(found).size).toBe(100);
  });

  it('the content hash depends on the seed of the pool', () => {
    const text = Buffer.from('the same bytes');
    expect(hash(text, attach(1n))).not.toBe(hash(text, attach(2n)));
  });

  it.each([16, 64, 256])(
    'the content hash has no collision among inputs of %i bytes that differ in at most three bits',
    (size) => {
      const batch = 1000;
      const inputs = new Uint8Array(batch * size).map((_, i) => ((i % size) * 37) & 255);
      const found = new BigUint64Array(1_000_000);
      const flips = sparse(size * 8);
      let count = 0;
      while (count < found.length) {
        const chosen = Array.from({ length: batch }, (): number[] => flips.next().value ?? []);
        const flip = () => {
          for (const [i, bits] of chosen.entries())
            for (const bit of bits) inputs[i * size + (bit >> 3)]! ^= 1 << (bit & 7);
        };
        flip();
        const made = chosen.filter((bits) => bits.length > 0).length;
        found.set(new BigUint64Array(hashMany(size, inputs).buffer).subarray(0, made), count);
        flip();
        count += made;
        if (made < batch) break;
      }
      const sorted = found.subarray(0, count).sort();
      expect(count).toBeGreaterThan(340_000);
      expect(sorted.findIndex((value, i) => i > 0 && value === sorted[i - 1])).toBe(-1);
    },
  );

  it.each([4, 8, 16, 32, 64, 96])(
    'the content hash has no collision among texts with two numbers that stand %i bytes apart',
    (distance) => {
      const numbers = 512;
      const size = 128;
      const found = new BigUint64Array(numbers * numbers);
      for (let first = 0; first < numbers; first++) {
        const texts = Array.from({ length: numbers }, (_, second) => {
          const text = Buffer.from('Give me the sum of the numbers in this text, please. '.repeat(3)).subarray(0, size);
          text.write(String(first).padStart(4), 16, 'latin1');
          text.write(String(second).padStart(4), 16 + distance, 'latin1');
          return text;
        });
        found.set(new BigUint64Array(hashMany(size, Buffer.concat(texts)).buffer), first * numbers);
      }
      expect(new Set(found).size).toBe(found.length);
    },
  );

  it.each([8, 40, 256])(
    'the content hash flips every output bit in 0.4 to 0.6 of the cases for every input bit of %i bytes',
    (size) => {
      const samples = 1024;
      let state = 12345;
      const random = () => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return state >>> 24;
      };
      const inputs = new Uint8Array(samples * size).map(random);
      const before = hashMany(size, inputs);
      let rarest = samples;
      let commonest = 0;
      for (let bit = 0; bit < size * 8; bit++) {
        const flip = () => {
          for (let at = bit >> 3; at < inputs.length; at += size) inputs[at]! ^= 1 << (bit & 7);
        };
        flip();
        const after = hashMany(size, inputs);
        flip();
        for (const flipped of flippedCounts(before, after)) {
          rarest = Math.min(rarest, flipped);
          commonest = Math.max(commonest, flipped);
        }
      }
      expect(rarest / samples).toBeGreaterThan(0.4);
      expect(commonest / samples).toBeLessThan(0.6);
    },
  );
});

/** Sets of one, two or three bits, all different, spread over the input. */
function* sparse(bits: number): Generator<number[]> {
  const place = (i: number) => (i * 197) % bits;
  for (let a = 0; a < bits; a++) {
    yield [place(a)];
    for (let b = a + 1; b < bits; b++) {
      yield [place(a), place(b)];
      for (let c = b + 1; c < bits; c++) yield [place(a), place(b), place(c)];
    }
  }
}

/** For each of 64 output bits, in how many of the hashes it differs. */
function flippedCounts(before: Uint32Array, after: Uint32Array): Uint32Array {
  const counts = new Uint32Array(64);
  for (let i = 0; i < before.length; i++) {
    const difference = before[i]! ^ after[i]!;
    const half = (i & 1) << 5;
    for (let bit = 0; bit < 32; bit++) counts[half + bit]! += (difference >>> bit) & 1;
  }
  return counts;
}

describe('the block chain', () => {
  it('the block chain agrees with its reference, tail included', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), fc.integer({ min: 1, max: 300 }), (bytes, blockBytes) => {
        core.bytes.set(bytes, input);
        const count = core.call.hashBlocks(bytes.length, blockBytes);
        const found = Array.from({ length: count }, (_, i) => core.view.getBigUint64(hashes + 8 * i, true));
        expect(found).toEqual(chainHashes(seed, contentHash(seed, new Uint8Array(0)), bytes, blockBytes).slice(0, 64));
      }),
    );
  });

  it('the block chain stops at the longest chain without a tail', () => {
    core.bytes.fill(7, input, input + 1000);
    expect(core.call.hashBlocks(1000, 10)).toBe(64);
  });
});
