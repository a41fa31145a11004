import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { usageEdit } from '../../dist/src/request/engine-asks.js';
import { editAll, modelBytes } from '../../dist/src/request/model-edit.js';

/** Cuts a text at the given places. */
function cutAt(text: string, cuts: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const places = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

function asked(text: string, cuts: readonly number[] = []): string {
  const chunks = cutAt(text, cuts);
  const edit = usageEdit(chunks);
  return Buffer.concat(edit === undefined ? chunks : editAll(chunks, [edit])).toString();
}

const ASKED = '"stream_options":{"include_usage":true}';

describe('a body that asks for the usage of its stream', () => {
  it.each([
    ['without options', ' {"model":"m","stream":true}\n', ` {${ASKED},"model":"m","stream":true}\n`],
    ['with no options', '{"stream_options": null ,"a":1}', '{"stream_options": {"include_usage":true} ,"a":1}'],
    ['with empty options', '{"a":[1],"stream_options":{}}', `{"a":[1],${ASKED}}`],
    [
      'that wants none',
      '{"stream_options":{"include_usage":false,"x":1},"a":1.50}',
      '{"stream_options":{"include_usage":true,"x":1},"a":1.50}',
    ],
    [
      'with other options',
      '{ "stream_options" : { "continuous_usage_stats": false } }',
      '{ "stream_options" : {"continuous_usage_stats":false,"include_usage":true} }',
    ],
    [
      'with the word in a text and in another object',
      '{"tools":[{"stream_options":{}}],"a":"\\"stream_options\\":{}"}',
      `{${ASKED},"tools":[{"stream_options":{}}],"a":"\\"stream_options\\":{}"}`,
    ],
    [
      'with options twice',
      '{"stream_options":null,"stream_options":{}}',
      '{"stream_options":null,"stream_options":{"include_usage":true}}',
    ],
  ])('a body %s asks, and is unchanged elsewhere', (_what, body, expected) => {
    expect(asked(body)).toBe(expected);
  });

  it.each([
    '{"stream_options":{"include_usage":true}}',
    '{"a":{"b":[]},"stream_options" : {"include_usage" : true}}',
    '{"stream_options":[]}',
    '{"stream_options":"yes"}',
  ])('the body %s stays as it is', (body) => {
    expect(asked(body)).toBe(body);
  });

  it('a body asks in the same place however it is cut', () => {
    const body = '{"p":"é \\\\","stream_options":{"include_usage":false},"m":{"stream_options":1}}';
    const expected = body.replace('false', 'true');
    const cuts = fc.array(fc.nat(Buffer.byteLength(body)), { maxLength: 6 });
    fc.assert(
      fc.property(cuts, (places) => {
        expect(asked(body, places)).toBe(expected);
      }),
    );
  });

  it('a body with any members keeps all of them, and its options', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (members, options) => {
        const given = { ...members, stream_options: options };
        const written = JSON.parse(asked(JSON.stringify(given))) as Record<string, unknown>;
        const { stream_options: after, ...rest } = written;
        const { stream_options: _before, ...others } = JSON.parse(JSON.stringify(given)) as Record<string, unknown>;
        expect(rest).toEqual(others);
        const isObject = typeof options === 'object' && options !== null && !Array.isArray(options);
        if (options === null || isObject) expect(after).toEqual({ ...(options as object), include_usage: true });
        else expect(after).toEqual(JSON.parse(JSON.stringify(options)));
      }),
    );
  });

  it('a body gets the name of its model and asks, in one go', () => {
    const body = '{"stream_options":null,"model":"small","a":1}';
    const chunks = cutAt(body, [20, 30]);
    const start = body.indexOf('"small"');
    const model = modelBytes(chunks, { kind: 'replace', range: { start, end: start + 7 } }, 'large');
    expect(Buffer.concat(editAll(chunks, [model, usageEdit(chunks)!])).toString()).toBe(
      '{"stream_options":{"include_usage":true},"model":"large","a":1}',
    );
  });
});
