import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ListElements } from '../../dist/src/kubernetes/list-elements.js';

/** Elements and rest of a list whose bytes come in pieces of this size. */
function cut(json: string, pieceBytes: number) {
  const items: unknown[] = [];
  const elements = new ListElements((element) => items.push(JSON.parse(element.toString('utf8'))));
  const bytes = Buffer.from(json);
  for (let at = 0; at < bytes.length; at += pieceBytes) elements.add(bytes.subarray(at, at + pieceBytes));
  return { items, rest: elements.rest() };
}

const spaces = fc.constantFrom(undefined, 1, '\t', ' \n\r');
const object = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });

describe('the elements of a list', () => {
  it('the elements of a list are those of its JSON, however it is written and cut into pieces', () => {
    const list = fc.record({
      before: fc.dictionary(fc.constantFrom('kind', 'metadata', 'x"items'), fc.jsonValue({ maxDepth: 2 })),
      items: fc.array(object, { maxLength: 5 }),
      after: fc.dictionary(fc.constantFrom('metadata', 'more'), fc.jsonValue({ maxDepth: 2 })),
    });
    fc.assert(
      fc.property(list, spaces, fc.integer({ min: 1, max: 60 }), ({ before, items, after }, space, pieceBytes) => {
        const whole = { ...before, items, ...after };
        expect(cut(JSON.stringify(whole, undefined, space), pieceBytes)).toEqual({
          items: JSON.parse(JSON.stringify(items)),
          rest: { ...JSON.parse(JSON.stringify(whole)), items: [] },
        });
      }),
    );
  });

  it.each([
    ['{"items":null,"metadata":{}}', 'items is null'],
    ['{"metadata":{}}', 'items is missing'],
    ['null', 'items is missing'],
    ['{"items":{"a":1}}', 'no list'],
  ])('an answer without a list of elements is an error: %s', (json, why) => {
    expect(() => cut(json, 7)).toThrow(why);
  });

  it('the elements of a list are not those of an array of the same name further inside', () => {
    const json = '{"metadata":{"items":[{"a":1}]},"items":[{"items":[{"b":2}]}]}';
    expect(cut(json, 7)).toEqual({
      items: [{ items: [{ b: 2 }] }],
      rest: { metadata: { items: [{ a: 1 }] }, items: [] },
    });
  });

  it('the elements of a list without any are none', () => {
    expect(cut('{"items":[]}', 3)).toEqual({ items: [], rest: { items: [] } });
  });

  it('the elements of a list that ends inside one are an error', () => {
    expect(() => cut('{"items":[{"a":1},{"b"', 5)).toThrow(SyntaxError);
  });
});
