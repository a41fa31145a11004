import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pathOfBody } from '../../dist/src/request/path-of-body.js';

const pathOf = (body: unknown) => pathOfBody([Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))]);

describe('the path that a body belongs to', () => {
  it.each([
    ['/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'input' }] }],
    ['/v1/completions', { prompt: 'messages' }],
    ['/v1/embeddings', { input: ['one', 'two'] }],
    ['/v1/embeddings', { input: [1, 2, 3] }],
    ['/v1/embeddings', { input: 'one', encoding_format: 'float' }],
    ['/v1/responses', { input: 'one', instructions: 'be brief' }],
    ['/v1/responses', { input: [{ role: 'user', content: 'one' }] }],
    [undefined, { model: 'm' }],
    [undefined, { model: 'm', extra: { messages: [] } }],
    [undefined, '["messages"]'],
    [undefined, ''],
  ])('the path that a body belongs to is %s by its fields', (path, body) => {
    expect(pathOf(body)).toBe(path);
  });

  it('the path that a body belongs to is the same for names in strings, escapes and spaces', () => {
    expect(pathOf('{ "a\\"messages" : "\\"messages\\":" ,\n "input" : [ {} ] }')).toBe('/v1/responses');
  });

  it('the path that a body belongs to does not depend on where its pieces end', () => {
    const body = Buffer.from('{"model":"m","nested":{"messages":1},"input":["text"]}');
    fc.assert(
      fc.property(fc.nat(body.length), (cut) => {
        expect(pathOfBody([body.subarray(0, cut), body.subarray(cut)])).toBe('/v1/embeddings');
      }),
    );
  });

  it('the path that a body belongs to follows from the fields of its top level, whatever else it holds', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.json()), (fields) => {
        const body = { ...fields, messages: [] };
        expect(pathOf(body)).toBe('/v1/chat/completions');
      }),
    );
  });

  it('the path that a body belongs to is looked for in bytes that are no JSON, too', () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void pathOfBody([bytes])));
  });
});
