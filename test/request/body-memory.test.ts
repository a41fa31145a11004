import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BodyMemory, slotsInUse } from '../../dist/src/request/body-memory.js';
import { bufferSize, giveBuffer, lendBuffer, takeBackBuffer, takeBuffer } from '../../dist/src/request/kept-buffers.js';

/** Appends a piece from a buffer with a head before it, as a transport does. @returns whether the buffer came back */
function lendTo(memory: BodyMemory, piece: Buffer): boolean {
  const buffer = takeBuffer(bufferSize(piece.length + 20));
  piece.copy(buffer, 20);
  lendBuffer(buffer);
  memory.append(buffer.subarray(20, 20 + piece.length));
  const isBack = takeBackBuffer();
  if (isBack) giveBuffer(buffer);
  return isBack;
}

describe('the memory of bodies', () => {
  it('the memory of bodies holds any body, however it was cut', () => {
    const sizes = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 3_900, max: 70_000 }));
    fc.assert(
      fc.property(fc.array(sizes, { maxLength: 12 }), fc.nat(255), (lengths, seed) => {
        const memory = new BodyMemory();
        const chunks = lengths.map((length, i) => Buffer.alloc(length, seed + i));
        for (const chunk of chunks) memory.append(chunk);
        const body = Buffer.concat(chunks);
        const held = Buffer.concat(memory.chunks());
        const bytes = memory.heldBytes;
        memory.release();
        expect(held.equals(body)).toBe(true);
        expect(bytes).toBeGreaterThanOrEqual(body.length);
        expect(bytes).toBeLessThan(2 * body.length + 70_000);
        expect(slotsInUse()).toBe(0);
      }),
    );
  });

  it('the memory of bodies keeps most pieces of a lent buffer and copies the others', () => {
    const pieces = fc.record({ length: fc.integer({ min: 1, max: 40_000 }), isLent: fc.boolean() });
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), fc.nat(255), (cuts, seed) => {
        const memory = new BodyMemory();
        const body: Buffer[] = [];
        for (const [i, { length, isLent }] of cuts.entries()) {
          const piece = Buffer.alloc(length, seed + i);
          body.push(piece);
          if (!isLent) memory.append(piece);
          else lendTo(memory, piece);
        }
        const held = Buffer.concat(memory.chunks());
        const bytes = memory.heldBytes;
        memory.release();
        expect(held.equals(Buffer.concat(body))).toBe(true);
        expect(bytes).toBeLessThan(2 * held.length + 70_000);
        expect(slotsInUse()).toBe(0);
      }),
    );
  });

  it('a buffer that a body keeps is not used again before its release', () => {
    const memory = new BodyMemory();
    const isBack = lendTo(memory, Buffer.alloc(4_000, 'a'));
    const other = takeBuffer(bufferSize(4_000)).fill('b');
    expect(isBack).toBe(false);
    expect(memory.chunks().map((chunk) => Buffer.from(chunk).toString())).toEqual(['a'.repeat(4_000)]);
    memory.release();
    expect(takeBuffer(bufferSize(4_000)).equals(other)).toBe(false);
  });

  it('a buffer that is hardly filled is copied, so that it does not make the body large', () => {
    const memory = new BodyMemory();
    expect(lendTo(memory, Buffer.alloc(3_000, 'a'))).toBe(true);
    expect(memory.heldBytes).toBe(4_352);
    memory.release();
  });

  it('the memory of bodies takes the room of a short body for one in tiny pieces', () => {
    const memory = new BodyMemory();
    for (let i = 0; i < 4_352; i++) memory.append(Buffer.alloc(1, i));
    expect(memory.heldBytes).toBe(4_352);
    memory.release();
  });

  it('the memory of bodies stays as it is until everybody has released it', () => {
    const memory = new BodyMemory();
    memory.append(Buffer.from('first'));
    const [chunk] = memory.chunks();
    memory.retain();
    memory.release();
    const other = new BodyMemory();
    other.append(Buffer.from('OTHER'));
    expect(chunk!.toString()).toBe('first');
    memory.release();
    other.release();
    expect(slotsInUse()).toBe(0);
  });

  it('the memory of bodies gives its slots to the next body', () => {
    const first = new BodyMemory();
    first.append(Buffer.from('first'));
    const [before] = first.chunks();
    first.release();
    const second = new BodyMemory();
    second.append(Buffer.from('again'));
    expect(before!.toString()).toBe('again');
    second.release();
  });

  it('the memory of bodies cannot be released twice', () => {
    const memory = new BodyMemory();
    memory.release();
    expect(() => memory.release()).toThrow('released twice');
    expect(() => memory.retain()).toThrow('after its release');
  });
});
