import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { writeModel } from '../../dist/src/request/model-edit.js';

const join = (chunks: readonly Uint8Array[]): string => Buffer.concat(chunks).toString();
/** Cuts a text at the given places. */
function cutAt(text: string, cuts: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const places = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

describe('writing a model into a body', () => {
  const body = ' {"a":"é","model":"small","b":1}\n';
  const start = Buffer.from(body).indexOf('"small"');
  const range = { start, end: start + 7 };
  const cuts = fc.array(fc.nat(Buffer.byteLength(body)), { maxLength: 6 });

  it('writing a model into a body replaces the name and nothing else, however the body is cut', () => {
    fc.assert(
      fc.property(cuts, fc.string({ unit: 'grapheme', maxLength: 12 }), (places, name) => {
        const edited = join(writeModel(cutAt(body, places), { kind: 'replace', range }, name));
        expect(edited).toBe(body.replace('"small"', () => JSON.stringify(name)));
      }),
      { numRuns: 200 },
    );
  });

  it('writing a model into a body inserts a model as the first member, however the body is cut', () => {
    fc.assert(
      fc.property(cuts, (places) => {
        const edited = join(writeModel(cutAt(body, places), { kind: 'insert' }, 'm'));
        expect(edited).toBe(body.replace('{', '{"model":"m",'));
      }),
      { numRuns: 100 },
    );
  });

  it('writing a model into a body finds no place in a body without an object', () => {
    expect(() => writeModel([Buffer.from('[]')], { kind: 'insert' }, 'm')).toThrow(RangeError);
  });
});
