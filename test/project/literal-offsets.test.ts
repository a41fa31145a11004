import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { literalOffsets } from './literal-offsets.ts';

const root = new URL('../../', import.meta.url);

/** Modules that read or write shared memory; the generated one holds the numbers. */
const files = globSync('src/core/*.ts', { cwd: root }).filter((path) => !/core-names|\.d\.ts$/.test(path));

describe('an address of shared memory in src/core', () => {
  it('an address in src/core holds no number of its own: the core exports its offsets', () => {
    const found = files.flatMap((path) =>
      literalOffsets(readFileSync(new URL(path, root), 'utf8')).map((line) => `${path}:${line}`),
    );
    expect(files.length).toBeGreaterThan(30);
    expect(found).toEqual([]);
  });

  it.each([
    ['in a view', 'view.getUint32(at + 8, true);'],
    ['in the index of a word', 'const x = core.u32[(at >>> 2) + 1];'],
    ['in an atomic access', 'Atomics.load(i32, (ring + 4) >>> 2);'],
    ['as the bytes of an element', 'bytes.set(text, region + slot * 16);'],
    ['in a statement before', 'const op = at + 64; view.setUint32(op, 1, true);'],
    ['in the step of a loop', 'for (let at = list; at < end; at += 12) view.getInt32(at, true);'],
    ['in a field', 'class A { #at = base + 16; read() { return f64[this.#at >>> 3]; } }'],
    ['in the result of a method', 'class A { #at(i) { return base + 16 + i; } read(i) { return u32[this.#at(i)]; } }'],
    ['for a parameter', 'const word = (offset) => view.getUint32(at + offset, true); word(12);'],
    ['in a view of its own', 'const hashes = new BigUint64Array(memory.buffer); hashes[(at >>> 3) + 2] = 0n;'],
  ])('a number %s is found', (_, text) => {
    expect(literalOffsets(text)).toHaveLength(1);
  });

  it.each([
    ['an exported offset', 'view.getUint32(at + CORE.SAMPLE_SLOT, true);'],
    ['a word of a list', 'view.getFloat32(at + CORE.OPERATION_PARAMETERS + k * 4, true);'],
    ['a bit of a mask', 'bytes[words + (slot >> 3)] |= 1 << (slot & 7);'],
    ['an element before another one', 'view.getFloat64(at + (number - 1) * CORE.HEARING_BYTES, true);'],
    ['a position that counts down', 'for (let i = length - 1; i >= 0; i--) bytes[at + i] = 0;'],
    ['a number that is written', 'u32[at >>> 2] = 1; view.setUint32(at, slot + 1, true);'],
    ['an array of the process', 'noted[at + 3] = 0;'],
  ])('%s is no number in an address', (_, text) => {
    expect(literalOffsets(text)).toEqual([]);
  });
});
