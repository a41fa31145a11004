import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PageBuffers } from '../../dist/src/pool/sources/page-buffers.js';
import { HEAD_BYTES_MAX, ResponseParser } from '../../dist/src/pool/sources/response-parser.js';
import { ScrapeFault } from '../../dist/src/pool/sources/scrape-fault.js';

const PAGE_BYTES_MAX = 200_000;
const makeParser = () => new ResponseParser(new PageBuffers(), PAGE_BYTES_MAX);

/** Feeds a response in pieces; `ended` = the server closes afterwards. */
function parse(pieces: readonly string[], ended = false, parser = makeParser()) {
  // As the socket does it: one buffer that holds old bytes behind the new ones.
  const buffer = Buffer.alloc(300_000, '\r\n\r\n');
  for (const piece of pieces) parser.push(buffer, buffer.write(piece, 'latin1'));
  if (ended) parser.end();
  return parser;
}

const pageOf = (parser: ResponseParser) => Buffer.from(parser.page).toString('latin1');

function faultOf(response: string, ended = false): string {
  try {
    parse([response], ended);
  } catch (error) {
    if (error instanceof ScrapeFault) return error.kind;
    throw error;
  }
  return 'none';
}

const ok = (headers: string, body: string) => `HTTP/1.1 200 OK\r\n${headers}\r\n${body}`;

const responses: Record<string, { text: string; page: string; keepAlive: boolean; ended?: boolean }> = {
  'a content-length': { text: ok('Content-Length: 5\r\n', 'hello'), page: 'hello', keepAlive: true },
  'an empty page': { text: ok('content-length: 0\r\n', ''), page: '', keepAlive: true },
  'two equal content-lengths': {
    text: ok('Content-Length: 2\r\nContent-Length:2\r\n', 'hi'),
    page: 'hi',
    keepAlive: true,
  },
  'chunks with extensions and trailers': {
    text: ok(
      'Transfer-Encoding: chunked\r\n',
      '3;name="a;b"\r\nabc\r\n0A \r\n0123456789\r\n000\r\nChecksum: 1\r\nX: y\r\n\r\n',
    ),
    page: 'abc0123456789',
    keepAlive: true,
  },
  'an end by close': {
    text: ok('Content-Type: text/plain\r\n', 'a 1\n'),
    page: 'a 1\n',
    keepAlive: false,
    ended: true,
  },
  'a 1xx before it': {
    text:
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n' +
      `\r\n${ok('Content-Length: 1\r\n', 'x')}`,
    page: 'x',
    keepAlive: true,
  },
  'connection: close': {
    text: ok('Connection: Keep-Alive, Close\r\nContent-Length: 1\r\n', 'x'),
    page: 'x',
    keepAlive: false,
  },
  'HTTP/1.0': { text: 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx', page: 'x', keepAlive: false },
  'HTTP/1.0 kept alive': {
    text: 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx',
    page: 'x',
    keepAlive: true,
  },
  'no reason phrase': { text: 'HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx', page: 'x', keepAlive: true },
  'content-encoding: identity': {
    text: ok('Content-Encoding: identity\r\nContent-Length: 1\r\n', 'x'),
    page: 'x',
    keepAlive: true,
  },
};

describe('ResponseParser reads a response', () => {
  for (const [name, { text, page, keepAlive, ended }] of Object.entries(responses)) {
    it(`ResponseParser reads a response with ${name}, cut at every byte`, () => {
      for (let cut = 0; cut <= text.length; cut += 1) {
        const parser = parse([text.slice(0, cut), text.slice(cut)], ended);
        expect([parser.complete, pageOf(parser), parser.keepAlive]).toEqual([true, page, keepAlive]);
      }
    });

    it(`ResponseParser reads a response with ${name}, byte by byte, again and again on one parser`, () => {
      const parser = makeParser();
      for (let round = 0; round < 3; round += 1) {
        parse([...text], ended, parser);
        expect(pageOf(parser)).toBe(page);
        parser.reset();
        expect([parser.untouched, parser.complete]).toEqual([true, false]);
      }
    });
  }

  it('ResponseParser reads a response in any chunks and any cuts as the page that was sent', () => {
    const pieces = fc.array(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 300 }), { maxLength: 12 });
    const cuts = fc.array(fc.nat(4000), { maxLength: 8 });
    fc.assert(
      fc.property(pieces, cuts, fc.boolean(), (chunks, at, chunked) => {
        const page = chunks.join('');
        const body = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
        const text = chunked
          ? ok('Transfer-Encoding: chunked\r\n', `${body}0\r\n\r\n`)
          : ok(`Content-Length: ${page.length}\r\n`, page);
        const ends = [0, ...at.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length];
        const parser = parse(ends.slice(1).map((end, i) => text.slice(ends[i], end)));
        expect([parser.complete, pageOf(parser)]).toEqual([true, page]);
      }),
      { numRuns: 200 },
    );
  });

  it('ResponseParser reads a response of a page that needs a larger buffer', () => {
    const page = 'p'.repeat(PAGE_BYTES_MAX);
    expect(
      pageOf(parse([ok('Transfer-Encoding: chunked\r\n', `${page.length.toString(16)}\r\n${page}\r\n0\r\n\r\n`)])),
    ).toBe(page);
  });

  it('ResponseParser reads a response but does not keep a connection that says more than was asked', () => {
    const parser = parse([`${ok('Content-Length: 1\r\n', 'x')}HTTP/1.1 200 OK`]);
    expect([parser.complete, parser.keepAlive]).toEqual([true, false]);
  });
});

describe('ResponseParser refuses', () => {
  const refused: [name: string, kind: string, response: string, ended?: boolean][] = [
    ['a status other than 200', 'status', 'HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n'],
    ['204', 'status', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['a redirect', 'status', 'HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n'],
    ['a change of protocol', 'malformed', 'HTTP/1.1 101 Switching\r\n\r\n'],
    ['another protocol', 'malformed', 'SSH-2.0-OpenSSH_9\r\n\r\n'],
    ['HTTP/2 preface', 'malformed', 'HTTP/2 200\r\n\r\n'],
    ['lines that end in LF alone', 'malformed', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
    ['a folded header', 'malformed', ok('A: b\r\n c\r\n', '')],
    ['a blank before the colon', 'malformed', ok('Content-Length : 0\r\n', '')],
    ['a header without colon', 'malformed', ok('Nonsense\r\n', '')],
    ['two different lengths', 'malformed', ok('Content-Length: 1\r\nContent-Length: 2\r\n', 'xx')],
    ['a negative length', 'malformed', ok('Content-Length: -1\r\n', '')],
    ['a length beside chunks', 'malformed', ok('Content-Length: 1\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n')],
    ['an unknown transfer coding', 'malformed', ok('Transfer-Encoding: gzip, chunked\r\n', '')],
    ['gzip', 'malformed', ok('Content-Encoding: gzip\r\nContent-Length: 1\r\n', 'x')],
    ['a chunk size that is none', 'malformed', ok('Transfer-Encoding: chunked\r\n', 'xyz\r\n')],
    ['an overlong chunk', 'malformed', ok('Transfer-Encoding: chunked\r\n', '2\r\nabc\r\n')],
    ['an early close in the head', 'closed', 'HTTP/1.1 200 OK\r\n', true],
    ['an early close in the page', 'closed', ok('Content-Length: 9\r\n', 'x'), true],
    ['an early close between chunks', 'closed', ok('Transfer-Encoding: chunked\r\n', '1\r\nx\r\n'), true],
    ['a length above the limit', 'too large', ok(`Content-Length: ${PAGE_BYTES_MAX + 1}\r\n`, '')],
    ['a chunk above the limit', 'too large', ok('Transfer-Encoding: chunked\r\n', '7fffffff\r\n')],
    ['a page without length above the limit', 'too large', ok('', 'x'.repeat(PAGE_BYTES_MAX + 1))],
    ['a head above 64 KiB', 'too large', ok(`A: ${'b'.repeat(HEAD_BYTES_MAX)}\r\n`, '')],
    ['a head above 64 KiB in one endless line', 'too large', `HTTP/1.1 200 ${'b'.repeat(HEAD_BYTES_MAX)}`],
    ['1xx heads without end', 'too large', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(3000)],
    ['trailers above 64 KiB', 'too large', ok('Transfer-Encoding: chunked\r\n', `0\r\n${'A: b\r\n'.repeat(12_000)}`)],
    ['a chunk extension above 1 KiB', 'too large', ok('Transfer-Encoding: chunked\r\n', `1;${'x'.repeat(1100)}`)],
  ];
  for (const [name, kind, response, ended] of refused) {
    it(`${name}: ${kind}`, () => {
      expect(faultOf(response, ended)).toBe(kind);
    });
  }

  it('any bytes without another kind of error', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), fc.boolean(), (text, framed) => {
        faultOf(framed ? ok('Transfer-Encoding: chunked\r\n', text) : text, true);
      }),
      { numRuns: 200 },
    );
  });
});
