import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fixedField, int64Field, readFields, varintField } from '../../dist/src/runtime/protobuf.js';

/** Value of a varint field with a number below 16, in two's complement of 64 bits. */
function int64Of(field: Buffer): bigint {
  const digits = [...field.subarray(1)].map((byte, place) => BigInt(byte & 127) << BigInt(7 * place));
  return BigInt.asIntN(
    64,
    digits.reduce((sum, digit) => sum + digit, 0n),
  );
}

describe('fields of protobuf', () => {
  it('an int64 field holds every whole number, also a negative one, which takes ten bytes', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        const field = int64Field(3, value);
        expect(int64Of(field)).toBe(BigInt(value));
        if (value < 0) expect(field.length).toBe(11);
      }),
    );
  });

  it.each([
    [4, [0x25, 1, 2, 3, 4]],
    [8, [0x21, 1, 2, 3, 4, 5, 6, 7, 8]],
  ])('a field of %i bytes has the wire type of its width', (width, bytes) => {
    const value = Uint8Array.from({ length: width }, (_, index) => index + 1);
    expect([...fixedField(4, value)]).toEqual(bytes);
  });

  it('a field of fixed width with a number above 15 has a tag of two bytes', () => {
    expect([...fixedField(16, Uint8Array.of(1, 0, 0, 0))]).toEqual([0x85, 0x01, 1, 0, 0, 0]);
  });

  it('a walk over the fields skips those of fixed width', () => {
    const seen: (readonly [number, number])[] = [];
    const message = Buffer.concat([varintField(1, 300), fixedField(2, new Uint8Array(8)), varintField(3, 7)]);
    readFields(message, (field, _bytes, value) => seen.push([field, value]));
    expect(seen).toEqual([
      [1, 300],
      [3, 7],
    ]);
  });

  it('a walk over a message that is cut off fails', () => {
    expect(() => readFields(varintField(1, 300).subarray(0, 2), () => {})).toThrow('a number is cut off');
  });
});
