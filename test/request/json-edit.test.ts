import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editBody, jsonString } from '../../dist/src/request/model-edit.js';

describe('an edit of a body', () => {
  it('an edit of a body equals splicing the concatenated chunks', () => {
    const chunks = fc.array(fc.uint8Array({ maxLength: 12 }), { maxLength: 8 });
    fc.assert(
      fc.property(chunks, fc.nat(), fc.nat(), fc.uint8Array({ maxLength: 12 }), (pieces, a, b, replacement) => {
        const body = Buffer.concat(pieces);
        const [start, end] = [a % (body.length + 1), b % (body.length + 1)].sort((x, y) => x - y) as [number, number];
        const spliced = Buffer.concat([body.subarray(0, start), replacement, body.subarray(end)]);
        const edited = editBody(pieces, { start, end }, replacement);
        expect(Buffer.concat(edited).equals(spliced)).toBe(true);
        expect(edited.every((piece) => piece.length > 0)).toBe(true);
      }),
    );
  });

  it('an edit of a body shares the memory of what stays', () => {
    const chunks = [Buffer.from('{"model":'), Buffer.from('"a","stream":true'), Buffer.from('}')];
    const edited = editBody(chunks, { start: 9, end: 12 }, jsonString('longer'));
    expect(edited.map(String)).toEqual(['{"model":', '"longer"', ',"stream":true', '}']);
    expect(edited[0]).toBe(chunks[0]);
    expect(edited[2]!.buffer).toBe(chunks[1]!.buffer);
    expect(edited[3]).toBe(chunks[2]);
  });

  it('an edit of a body refuses a range outside the body', () => {
    const chunks = [Buffer.from('{}')];
    expect(() => editBody(chunks, { start: 1, end: 3 }, jsonString('x'))).toThrow(
      'range 1..3 does not lie within a body of 2 bytes',
    );
    expect(() => editBody(chunks, { start: -1, end: 1 }, jsonString('x'))).toThrow(RangeError);
    expect(() => editBody(chunks, { start: 2, end: 1 }, jsonString('x'))).toThrow(RangeError);
  });
});

describe('a JSON string', () => {
  it('a JSON string reads back as the value it was made from', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        expect(JSON.parse(Buffer.from(jsonString(value)).toString())).toBe(value);
      }),
    );
  });
});
