import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HpackDecoder } from '../../../dist/src/ingress/transports/http2/hpack/decoder.js';
import { decodeHuffman, huffmanBytesMax } from '../../../dist/src/ingress/transports/http2/hpack/huffman.js';
import { headerBlock } from '../../../dist/src/ingress/transports/http2/reply-headers.js';

function decode(decoder: HpackDecoder, hex: string): string[] {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex');
  const fields: string[] = [];
  decoder.decode(bytes, 0, bytes.length, ({ name, value }) => fields.push(`${name}: ${value}`));
  return fields;
}

const FIRST = [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'];
const THIRD = [':method: GET', ':scheme: https', ':path: /index.html', ':authority: www.example.com'];

describe('the HPACK decoder', () => {
  it('the HPACK decoder reads the requests of RFC 7541, C.3', () => {
    const decoder = new HpackDecoder();
    expect(decode(decoder, '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d')).toEqual(FIRST);
    expect(decoder.tableBytes).toBe(57);
    expect(decode(decoder, '8286 84be 5808 6e6f 2d63 6163 6865')).toEqual([...FIRST, 'cache-control: no-cache']);
    const third = '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65';
    expect(decode(decoder, third)).toEqual([...THIRD, 'custom-key: custom-value']);
    expect(decoder.tableBytes).toBe(164);
  });

  it('the HPACK decoder reads the requests of RFC 7541, C.4, in Huffman code', () => {
    const decoder = new HpackDecoder();
    expect(decode(decoder, '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff')).toEqual(FIRST);
    expect(decode(decoder, '8286 84be 5886 a8eb 1064 9cbf')).toEqual([...FIRST, 'cache-control: no-cache']);
    const third = '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf';
    expect(decode(decoder, third)).toEqual([...THIRD, 'custom-key: custom-value']);
  });

  it('the HPACK decoder lets the oldest fields go when the table is full (RFC 7541, C.6)', () => {
    const decoder = new HpackDecoder();
    decode(decoder, '3fe1 01'); // 256 bytes
    const first =
      '4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 ' +
      '63c7 8f0b 97c8 e9ae 82ae 43d3';
    const date = 'date: Mon, 21 Oct 2013 20:13:21 GMT';
    const location = 'location: https://www.example.com';
    expect(decode(decoder, first)).toEqual([':status: 302', 'cache-control: private', date, location]);
    expect(decoder.tableBytes).toBe(222);
    expect(decode(decoder, '4883 640e ffc1 c0bf')).toEqual([':status: 307', 'cache-control: private', date, location]);
    expect(decoder.tableBytes).toBe(222);
    expect(() => decode(new HpackDecoder(), 'c1')).toThrow('index 65 is beyond the table');
  });

  it('the HPACK decoder reads what its own encoder writes', () => {
    const field = fc.tuple(
      fc.constantFrom(':status', 'content-type', 'grpc-status', 'grpc-message', 'x-anything'),
      fc.string({ unit: fc.constantFrom('a', '0', '%', '~', 'é'), maxLength: 300 }),
    );
    fc.assert(
      fc.property(fc.array(field, { maxLength: 20 }), (fields) => {
        const read = decode(new HpackDecoder(), headerBlock(fields).toString('hex'));
        expect(read).toEqual(fields.map(([name, value]) => `${name}: ${value}`));
      }),
    );
  });

  it.each([
    ['an index of zero', '80', 'index 0'],
    ['an index beyond the table', 'ff 80 01', 'beyond the table'],
    ['a field that is cut off', '40', 'cut off'],
    ['a string that is cut off', '00 05 61', 'cut off'],
    ['a number without end', 'ff ff ff ff ff ff ff ff 7f', 'more than four bytes'],
    ['a table of more than it may have', '3f e2 1f', 'more than was allowed'],
    ['a table size behind a field', '82 20', 'behind a field'],
    ['a string of more bytes than any list may have', '00 7f 82 ff 03 61', 'cut off'],
    ['Huffman code with the end of the string in it', '00 84 ff ff ff ff 00', 'no Huffman code'],
    ['Huffman code with padding that is not ones', '00 81 1e 00', 'no Huffman code'],
    ['Huffman code with a whole byte of padding', '00 82 1f ff 00', 'no Huffman code'],
  ])('the HPACK decoder refuses %s', (_what, hex, message) => {
    expect(() => decode(new HpackDecoder(), hex)).toThrow(message);
  });

  it('the HPACK decoder takes any bytes for a block or for none, and its table never exceeds 4 KB', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }), (blocks) => {
        const decoder = new HpackDecoder();
        for (const bytes of blocks) {
          try {
            decode(decoder, Buffer.from(bytes).toString('hex'));
          } catch (error) {
            expect((error as Error).name).toBe('ConnectionError');
            return;
          }
          expect(decoder.tableBytes).toBeLessThanOrEqual(4_096);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('the HPACK decoder says which fields hold characters that no field may have', () => {
    const validity = (name: string, value: string): boolean => {
      const bytes = headerBlock([[name, value]]);
      let valid = true;
      new HpackDecoder().decode(bytes, 0, bytes.length, (field) => {
        valid = field.valid;
      });
      return valid;
    };
    expect([validity('x-a', 'b'), validity('x-a', ''), validity(':path', '/')]).toEqual([true, true, true]);
    expect([validity('X-a', 'b'), validity('x a', 'b'), validity('', 'b'), validity('x:a', 'b')]).toEqual(
      new Array(4).fill(false),
    );
    expect([validity('a', 'b\n'), validity('a', 'b\0'), validity('a', ' b'), validity('a', 'b\t')]).toEqual(
      new Array(4).fill(false),
    );
  });
});

describe('Huffman code', () => {
  it('Huffman code decodes into at most eight fifths of its bytes', () => {
    const zeros = Buffer.alloc(5); // '0' is 00000
    const into = Buffer.alloc(huffmanBytesMax(5));
    expect(decodeHuffman(zeros, 0, 5, into)).toBe(8);
    expect(into.toString()).toBe('00000000');
  });
});
