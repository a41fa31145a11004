import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DestinationTemplates } from '../../dist/src/ingress/codec/destination.js';
import { HeaderNames } from '../../dist/src/ingress/codec/header-map.js';
import { decodeProcessRequest, Phase } from '../../dist/src/ingress/codec/process-request.js';
import {
  BODY_CHUNK_BYTES_MAX,
  encodeBodyReplies,
  encodeImmediateReply,
  encodeRequestHeadersReply,
  encodeTrailersReply,
  setContentLength,
  setHeader,
} from '../../dist/src/ingress/codec/process-response.js';
import { MalformedMessage } from '../../dist/src/runtime/protobuf.js';
import {
  bytesField,
  decodeReply,
  numberField,
  requestBody,
  requestHeaders,
  requestTrailers,
  responseBody,
  responseHeaders,
  responseTrailers,
  subset,
} from './envoy-messages.js';

const FUZZ_RUNS = Number(process.env.FUZZ_RUNS ?? 300);

describe('decoding a ProcessingRequest', () => {
  it('decoding a ProcessingRequest finds phase and end of stream of every message', () => {
    const decoded = [
      requestHeaders({}, true),
      responseHeaders({}),
      requestBody('x', true),
      responseBody('y'),
      requestTrailers(),
      responseTrailers(),
    ].map((bytes) => decodeProcessRequest(bytes));
    expect(decoded.map((message) => [message.phase, message.endOfStream])).toEqual([
      [Phase.requestHeaders, true],
      [Phase.responseHeaders, false],
      [Phase.requestBody, true],
      [Phase.responseBody, false],
      [Phase.requestTrailers, false],
      [Phase.responseTrailers, false],
    ]);
  });

  it('decoding a ProcessingRequest hands the body out as a view of the message', () => {
    const bytes = requestBody('hello');
    const { body } = decodeProcessRequest(bytes);
    expect(body.toString()).toBe('hello');
    expect(body.buffer).toBe(bytes.buffer);
  });

  it('headers that are kept can be asked when their message is gone', () => {
    const bytes = requestHeaders({ ':path': '/v1/x', 'x-a': 'b' });
    const { headers } = decodeProcessRequest(bytes);
    headers.keep();
    bytes.fill(0xdd);
    expect([headers.get(':path'), headers.get('x-a')]).toEqual(['/v1/x', 'b']);
  });

  it.each([
    ['0', 0],
    ['0042', 42],
    ['999999999999999', 999_999_999_999_999],
    ['1000000000000000', undefined],
    ['', undefined],
    ['-1', undefined],
    ['1e3', undefined],
    [' 1', undefined],
  ])('a header with the value "%s" has the number %s', (value, number) => {
    expect(decodeProcessRequest(requestHeaders({ n: value })).headers.number('n')).toBe(number);
  });

  it('headers are named by a set of names without case, duplicates included', () => {
    const names = new HeaderNames(new Set(['x-one', 'x-two', 'authorizatiom']));
    const { headers } = decodeProcessRequest(
      requestHeaders({ 'X-Two': '', authorization: '', 'x-one': '', 'x-twO': '' }),
    );
    expect(headers.namesOf(names)).toEqual(['x-two', 'x-one', 'x-two']);
  });

  it('decoding a ProcessingRequest reads header values from raw_value and from value', () => {
    for (const inValue of [false, true]) {
      const { headers } = decodeProcessRequest(requestHeaders({ ':path': '/v1/x' }, false, undefined, { inValue }));
      expect(headers.get(':path')).toBe('/v1/x');
    }
  });

  it('decoding a ProcessingRequest prefers raw_value over value', () => {
    const header = bytesField(1, bytesField(1, 'a'), bytesField(2, 'plain'), bytesField(3, 'raw'));
    const { headers } = decodeProcessRequest(bytesField(2, bytesField(1, header)));
    expect(headers.get('a')).toBe('raw');
  });

  it('decoding a ProcessingRequest compares header names without case and lets the last duplicate win', () => {
    const { headers } = decodeProcessRequest(
      requestHeaders([
        ['X-Thing', '1'],
        ['x-thing', '2'],
        ['x-thinh', '3'],
      ]),
    );
    expect(headers.get('x-thing')).toBe('2');
    expect(headers.get('x-absent')).toBeUndefined();
  });

  it('decoding a ProcessingRequest keeps UTF-8 in header values', () => {
    expect(decodeProcessRequest(requestHeaders({ m: 'modèle-模型' })).headers.get('m')).toBe('modèle-模型');
  });

  it('decoding a ProcessingRequest indexes at most 1,024 headers', () => {
    const many = Array.from({ length: 3_000 }, (_, i) => [`h${i}`, 'v'] as const);
    expect(decodeProcessRequest(requestHeaders(many)).headers.count).toBe(1_024);
  });

  it.each([
    ['a list', ['10.0.0.1:80', '10.0.0.2'], ['10.0.0.1:80', '10.0.0.2']],
    ['an empty list', [], []],
    ['a comma string with spaces and gaps', ' 10.0.0.1:80 ,, 10.0.0.2 ', ['10.0.0.1:80', '10.0.0.2']],
    ['a comma string inside a list', ['a:1, b:2', 'c:3'], ['a:1', 'b:2', 'c:3']],
    ['a list with numbers between', ['a:1', 7], ['a:1']],
    ['a list of one number', [7], []],
    ['an empty string', '', []],
    ['a number', 7, []],
    ['a null', null, undefined],
  ] as const)('decoding a ProcessingRequest reads a subset hint given as %s', (_name, hint, expected) => {
    expect(decodeProcessRequest(requestHeaders({}, false, subset(hint))).subset).toEqual(expected);
  });

  it.each([
    ['no metadata', undefined],
    ['empty metadata', {}],
    ['another namespace', { other: { 'x-gateway-destination-endpoint-subset': ['a'] } }],
    ['another key', { 'envoy.lb.subset_hint': { other: ['a'] } }],
  ] as const)('decoding a ProcessingRequest takes %s for no hint', (_name, metadata) => {
    expect(decodeProcessRequest(requestBody('', true, metadata)).subset).toBeUndefined();
  });

  it('decoding a ProcessingRequest reads the endpoint that served', () => {
    const metadata = { 'envoy.lb': { 'x-gateway-destination-endpoint-served': '10.0.0.9:8000' } };
    expect(decodeProcessRequest(responseHeaders({}, false, metadata)).served).toBe('10.0.0.9:8000');
  });

  it('decoding a ProcessingRequest skips unknown fields of every wire type', () => {
    const unknown = Buffer.concat([
      numberField(10, 1),
      bytesField(900, 'x'),
      Buffer.from([0x99, 0x01, 1, 2, 3, 4, 5, 6, 7, 8]),
      Buffer.from([0x9d, 0x01, 1, 2, 3, 4]),
    ]);
    const decoded = decodeProcessRequest(Buffer.concat([unknown, requestBody('x'), unknown]));
    expect([decoded.phase, decoded.body.toString()]).toEqual([Phase.requestBody, 'x']);
  });

  it('decoding a ProcessingRequest reads a message without a phase as none', () => {
    expect(decodeProcessRequest(numberField(10, 1)).phase).toBe(Phase.none);
  });

  it('decoding a ProcessingRequest refuses every cut of a message or reads it, and never fails otherwise', () => {
    const whole = requestHeaders({ ':path': '/v1/chat/completions', a: 'b' }, true, subset(['a:1', 'b:2', 3]));
    for (let cut = 0; cut < whole.length; cut++) {
      try {
        decodeProcessRequest(whole.subarray(0, cut));
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedMessage);
      }
    }
  });

  it('decoding a ProcessingRequest refuses or reads mutated and random bytes, and never fails otherwise', () => {
    const seed = requestHeaders({ ':path': '/v1/completions' }, false, subset(['10.0.0.1:80']));
    const mutated = fc.array(fc.tuple(fc.nat(seed.length - 1), fc.nat(255)), { maxLength: 8 }).map((changes) => {
      const bytes = Buffer.from(seed);
      for (const [at, byte] of changes) bytes[at] = byte;
      return bytes;
    });
    const random = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(fc.oneof(mutated, random), (bytes) => {
        try {
          decodeProcessRequest(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedMessage);
        }
      }),
      { numRuns: FUZZ_RUNS },
    );
  });

  it('decoding a ProcessingRequest refuses a number of more than ten bytes', () => {
    expect(() => decodeProcessRequest(Buffer.alloc(12, 0xff))).toThrow(MalformedMessage);
  });
});

describe('encoding a ProcessingResponse', () => {
  it('encoding a ProcessingResponse names the destination in header and metadata alike', () => {
    const { header, metadata } = new DestinationTemplates(4).encode('[fd00::1]:8000,10.0.0.2:8000', undefined);
    const reply = decodeReply(encodeRequestHeadersReply([header], metadata));
    expect(reply).toMatchObject({
      kind: 'requestHeaders',
      clearRouteCache: true,
      headers: { 'x-gateway-destination-endpoint': '[fd00::1]:8000,10.0.0.2:8000' },
      metadata: { 'envoy.lb': { 'x-gateway-destination-endpoint': '[fd00::1]:8000,10.0.0.2:8000' } },
      appendActions: [2],
    });
  });

  it('encoding a ProcessingResponse adds the scores of all candidates when they are given', () => {
    const scores = new Map([
      ['10.0.0.1:80', 2.5],
      ['10.0.0.2:80', 0],
    ]);
    const { header, metadata } = new DestinationTemplates(4).encode('10.0.0.1:80', scores);
    expect(decodeReply(encodeRequestHeadersReply([header], metadata)).metadata).toEqual({
      'envoy.lb': {
        'x-gateway-destination-endpoint': '10.0.0.1:80',
        'x-gateway-destination-endpoint-scores': { '10.0.0.1:80': 2.5, '10.0.0.2:80': 0 },
      },
    });
  });

  it('encoding a ProcessingResponse keeps a bounded number of encoded destinations', () => {
    const templates = new DestinationTemplates(3);
    for (let i = 0; i < 10; i++) templates.encode(`10.0.0.${i}:80`, undefined);
    expect(templates.size).toBe(3);
  });

  it('encoding a ProcessingResponse tells a destination with a length alone as with any other header', () => {
    const templates = new DestinationTemplates(2);
    const { header, metadata } = templates.encode('10.0.0.1:80', undefined);
    for (const length of [7, 4_096, 10, 99, 5_000, 100, 9_007_199_254_740_991]) {
      const reply = templates.plainReply('10.0.0.1:80', length);
      expect(reply).toEqual(encodeRequestHeadersReply([header, setContentLength(length)], metadata));
    }
  });

  it('encoding a ProcessingResponse encodes Content-Length as any other header', () => {
    for (const length of [1, 9_007_199_254_740_991]) {
      expect(setContentLength(length)).toEqual(setHeader('Content-Length', String(length)));
    }
  });

  it.each([
    0,
    1,
    100,
    BODY_CHUNK_BYTES_MAX - 1,
    BODY_CHUNK_BYTES_MAX,
    BODY_CHUNK_BYTES_MAX + 1,
    3 * BODY_CHUNK_BYTES_MAX + 5,
  ])(
    'encoding a ProcessingResponse cuts a body of %i bytes into replies of at most 62,000, the last of which ends ' +
      'the stream',
    (length) => {
      const body = Buffer.alloc(length, 'abcdefg');
      const third = Math.floor(length / 3);
      const chunks = [body.subarray(0, third), Buffer.alloc(0), body.subarray(third)];
      const replies: ReturnType<typeof decodeReply>[] = [];
      encodeBodyReplies(3, chunks, true, {
        sendParts: (head, parts) => replies.push(decodeReply(Buffer.concat([head, ...parts]))),
      });
      expect(Buffer.concat(replies.map((reply) => reply.body)).equals(body)).toBe(true);
      expect(replies.every((reply) => reply.kind === 'requestBody' && reply.body.length <= BODY_CHUNK_BYTES_MAX)).toBe(
        true,
      );
      expect(replies.map((reply) => reply.endOfStream)).toEqual(replies.map((_, i) => i === replies.length - 1));
      expect(replies.length).toBe(Math.max(1, Math.ceil(length / BODY_CHUNK_BYTES_MAX)));
    },
  );

  it('encoding a ProcessingResponse encodes an immediate response with status, headers and body', () => {
    const reply = decodeReply(encodeImmediateReply(503, [setHeader('retry-after', '1')], 'no'));
    expect(reply).toMatchObject({ kind: 'immediate', status: 503, headers: { 'retry-after': '1' } });
    expect(reply.body.toString()).toBe('no');
  });

  it('encoding a ProcessingResponse encodes an empty reply to trailers', () => {
    expect(decodeReply(encodeTrailersReply(6)).kind).toBe('responseTrailers');
  });
});
