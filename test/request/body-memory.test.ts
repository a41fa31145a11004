import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BodyMemory, slotsInUse } from '../../dist/request/body-memory.js';

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

  it('the memory of bodies takes the room of a short body for one in tiny pieces', () => {
    const memory = new BodyMemory();
    for (let i = 0; i < 4_096; i++) memory.append(Buffer.alloc(1, i));
    expect(memory.heldBytes).toBe(4_096);
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
