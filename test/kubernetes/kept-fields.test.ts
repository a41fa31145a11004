import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { podObject } from '../../bench/kubernetes/stand-in.ts';
import { type KeptFields, KeptFieldsReader, unionOfFields } from '../../dist/src/kubernetes/kept-fields.js';
import { POD_FIELDS, readPod } from '../../dist/src/pool/discovery/kubernetes/objects.js';

const parse = (json: string, kept: KeptFields) => new KeptFieldsReader(kept).parse(Buffer.from(json));

/** The same by way of the whole value. */
function keep(value: unknown, kept: KeptFields | true): unknown {
  if (kept === true || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((element) => keep(element, kept));
  const own = Object.entries(value).filter(([field]) => Object.hasOwn(kept, field));
  // Not an assignment: a field may be named __proto__.
  return Object.fromEntries(own.map(([field, inner]) => [field, keep(inner, kept[field]!)]));
}

/** Few names, so that fields and what is kept of them meet; some need escapes. */
const NAMES = ['a', 'b', 'labels', 'é', '"', 'a\\b', '__proto__', 'constructor', ''];
const { value: jsonValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(fc.string({ unit: 'grapheme' }), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean()),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { maxKeys: 5 }),
  ),
}));
const { fields: keptFields } = fc.letrec<{ fields: KeptFields; kept: KeptFields | true }>((tie) => ({
  fields: fc.dictionary(fc.constantFrom(...NAMES), tie('kept'), { maxKeys: 4 }),
  kept: fc.oneof({ maxDepth: 3 }, fc.constant(true as const), tie('fields')),
}));
const spaces = fc.constantFrom(undefined, 1, '\t', ' \n\r');

describe('a reader of kept fields', () => {
  it('a reader of kept fields gives the kept part of any value, however it is written', () => {
    fc.assert(
      fc.property(jsonValue, keptFields, spaces, (value, kept, space) => {
        const json = JSON.stringify(value, undefined, space);
        expect(parse(json, kept)).toEqual(keep(JSON.parse(json), kept));
      }),
    );
  });

  it('a reader of kept fields reads one text after the other, longer and shorter ones', () => {
    const reader = new KeptFieldsReader({ a: true });
    for (const length of [10, 300_000, 1, 20_000]) {
      const a = 'ü'.repeat(length);
      expect(reader.parse(Buffer.from(JSON.stringify({ b: a, a })))).toEqual({ a });
    }
  });

  it('a reader of kept fields knows a field whose name is written with escapes', () => {
    expect(parse('{"\\u0061": 1, "\\u0062": 2}', { a: true })).toEqual({ a: 1 });
  });

  it.each([
    '',
    '{',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,}',
    '{"b":[1,2}',
    '{"b":"',
    '{"b":{"c":1}',
    '{"a":1} x',
    '[1',
    '{1:2}',
  ])('a reader of kept fields refuses %j as JSON.parse does', (json) => {
    expect(() => parse(json, { a: true })).toThrow(SyntaxError);
  });

  it('a reader of kept fields never reads what a cut text has lost', () => {
    const whole = JSON.stringify(podObject(1, 1));
    fc.assert(
      fc.property(fc.integer({ min: 0, max: whole.length - 1 }), (length) => {
        expect(() => parse(whole.slice(0, length), POD_FIELDS)).toThrow(SyntaxError);
      }),
    );
  });

  it('a reader of kept fields keeps of a pod what its record is made of', () => {
    const pod = podObject(7, 8, { ready: false, labels: { 'llm-d.ai/role': 'decode' } });
    const annotations = { 'pointsman/drain': 'true', 'llm-d.ai/active-ports': '8000, x', other: 'annotation' };
    const whole = { ...pod, metadata: { ...pod.metadata, annotations, deletionTimestamp: '2026-08-01T00:00:00Z' } };
    const kept = parse(JSON.stringify(whole), POD_FIELDS);
    expect(readPod(kept)).toEqual(readPod(whole));
    expect(JSON.stringify(kept).length).toBeLessThan(JSON.stringify(whole).length / 8);
  });

  it('a union of fields keeps what one of the two keeps', () => {
    fc.assert(
      fc.property(jsonValue, keptFields, keptFields, (value, a, b) => {
        const union = keep(value, unionOfFields(a, b));
        expect(keep(union, a)).toEqual(keep(value, a));
        expect(keep(union, b)).toEqual(keep(value, b));
      }),
    );
  });
});
