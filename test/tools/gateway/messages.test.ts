import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { headerValue, mutate, parseDestination } from '../../../dist/tools/gateway/headers.js';
import { decodeReply } from '../../../dist/tools/gateway/messages.js';
import { bodyReply, headersReply, immediateReply } from './picker-double.ts';

describe('replies of the picker', () => {
  test('header mutations keep names in lower case, values and order', () => {
    const reply = decodeReply(headersReply('request', { 'Content-Length': '12', 'x-a': 'b' }));
    expect(reply).toEqual({
      kind: 'request_headers',
      mutation: {
        set: [
          { name: 'content-length', value: '12', action: 0 },
          { name: 'x-a', value: 'b', action: 0 },
        ],
        remove: [],
      },
    });
  });

  test('any body comes back as it was', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (body, endOfStream) => {
        const reply = decodeReply(bodyReply('response', body, endOfStream));
        expect(reply).toEqual({ kind: 'response_body', body: Buffer.from(body), endOfStream });
      }),
    );
  });

  test('an immediate response has status, headers and body', () => {
    expect(decodeReply(immediateReply(503, 'no', { 'retry-after': '1' }))).toEqual({
      kind: 'immediate',
      status: 503,
      mutation: { set: [{ name: 'retry-after', value: '1', action: 0 }], remove: [] },
      body: Buffer.from('no'),
    });
  });

  test('bytes that are no reply are an error, never a hang or a crash', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          expect(decodeReply(Buffer.from(bytes))).toHaveProperty('kind');
        } catch (error) {
          expect((error as Error).message).toMatch(/^the picker sent a /);
        }
      }),
    );
  });

  test('a reply that is cut off is an error', () => {
    const whole = headersReply('request', { 'x-gateway-destination-endpoint': '127.0.0.1:8000' });
    for (let end = 1; end < whole.length; end++)
      expect(() => decodeReply(whole.subarray(0, end))).toThrow('not protobuf');
  });
});

describe('header mutations', () => {
  const mutation = (set: [string, string, number][], remove: string[] = []) => ({
    set: set.map(([name, value, action]) => ({ name, value, action })),
    remove,
  });

  test('header mutations overwrite every value of the name', () => {
    const headers = mutate(
      [
        ['a', '1'],
        ['a', '2'],
        ['b', '3'],
      ],
      mutation([['a', 'x', 0]]),
    );
    expect(headers).toEqual([
      ['b', '3'],
      ['a', 'x'],
    ]);
  });

  test('header mutations add only what is absent when told so', () => {
    const headers = mutate(
      [['a', '1']],
      mutation([
        ['a', 'x', 1],
        ['b', 'y', 1],
      ]),
    );
    expect(headers).toEqual([
      ['a', '1'],
      ['b', 'y'],
    ]);
  });

  test('header mutations remove headers, but not pseudo headers', () => {
    const headers = mutate(
      [
        [':path', '/'],
        ['a', '1'],
      ],
      mutation([], ['a', ':path']),
    );
    expect(headers).toEqual([[':path', '/']]);
  });

  test('header mutations change the path, but neither method nor authority', () => {
    const before = [
      [':method', 'POST'],
      [':path', '/a'],
      [':authority', 'x'],
    ] as const;
    const after = mutate(
      before,
      mutation([
        [':method', 'GET', 0],
        [':path', '/b', 0],
        [':authority', 'y', 0],
      ]),
    );
    expect([':method', ':path', ':authority'].map((name) => headerValue(after, name))).toEqual(['POST', '/b', 'x']);
  });
});

test.each([
  ['10.0.0.1:8000', { host: '10.0.0.1', port: 8000 }],
  [' 10.0.0.1:8000 ', { host: '10.0.0.1', port: 8000 }],
  ['[2001:db8::1]:8000', { host: '2001:db8::1', port: 8000 }],
  ['model-0.models:80', { host: 'model-0.models', port: 80 }],
  ['10.0.0.1', undefined],
  ['10.0.0.1:0', undefined],
  ['10.0.0.1:65536', undefined],
  ['2001:db8::1:8000', undefined],
  ['', undefined],
])('the destination "%s" is %j', (destination, place) => {
  expect(parseDestination(destination)).toEqual(place);
});
