import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { ExpositionScanner, type WantedMetric } from '../../dist/src/core/exposition-scanner.js';
import { attachCore, createPoolMemory } from '../../dist/src/core/memory.js';
import { referenceExposition } from './exposition-scanner-reference.js';
import { SCANNER_SIZES } from './scanner-sizes.ts';

const numRuns = Number(process.env.POINTSMAN_FUZZ_RUNS ?? 300);

const wanted: readonly WantedMetric[] = [
  { name: 'vllm:num_requests_waiting', aggregate: 'sum' },
  { name: 'vllm:num_requests_waiting', aggregate: 'max', labels: { engine: '1' } },
  { name: 'vllm:num', aggregate: 'max' },
  { name: 'v', aggregate: 'sum', labels: { a: 'x"\\\n', b: '' } },
  { name: 'vllm:lora_requests_info', aggregate: 'latest-labels', wantLabels: ['engine', 'a', 'missing', 'b'] },
  { name: 'vllm:lora_requests_info', aggregate: 'names', wantLabels: ['a', 'missing', 'b'] },
  { name: 'v', aggregate: 'names', wantLabels: ['engine', 'a'] },
  { name: 'v', aggregate: 'set-names', wantLabels: ['engine', 'a'] },
];
let scanner: ExpositionScanner;
let query: number;

beforeAll(() => {
  scanner = new ExpositionScanner(attachCore(createPoolMemory(SCANNER_SIZES), 0));
  query = scanner.compile(wanted);
});

const blanks = fc.constantFrom('', '', '', ' ', '\t ');
const number = fc.oneof(
  fc.nat(1000).map(String),
  fc.double({ noDefaultInfinity: true, noNaN: true, min: -1e6, max: 1e6 }).map(String),
  fc.constantFrom(
    'NaN',
    '+Inf',
    '-inf',
    '1e3',
    '2.5E-1',
    '+4',
    '.5',
    '5.',
    '',
    'x',
    '1x',
    '--1',
    '1e',
    '.',
    '0x10',
    '1_0',
    '1e999',
  ),
);
const labelValue = fc.oneof(
  fc.constantFrom(
    '0',
    '1',
    '',
    String.raw`x\"\\\n`,
    String.raw`\x`,
    'a,b}c{',
    ' a ,, b\t,',
    'é😀',
    '# "'.replace('"', '\\"'),
  ),
  fc
    .string({ maxLength: 40 })
    .map((text) => text.replace(/["\\\n\r]/g, (c) => (c === '\n' || c === '\r' ? '\\n' : `\\${c}`))),
);
const label = fc
  .tuple(blanks, fc.constantFrom('engine', 'a', 'b', 'engine_', 'm'), blanks, blanks, labelValue, blanks)
  .map(([p, name, q, r, value, s]) => `${p}${name}${q}=${r}"${value}"${s}`);
const labels = fc.oneof(
  fc.constant(''),
  fc
    .tuple(fc.array(label, { maxLength: 4 }), fc.constantFrom('', '', ','))
    .map(([list, comma]) => `{${list.join(',')}${list.length > 0 ? comma : ''}}`),
);
const name = fc.constantFrom(
  'vllm:num_requests_waiting',
  'vllm:num',
  'v',
  'vllm:lora_requests_info',
  'vllm:num_requests_waiting_by_reason',
  'vllm:num_requests',
  'w',
  '#',
  '# TYPE v',
);
const sample = fc
  .tuple(
    blanks,
    name,
    labels,
    fc.constantFrom(' ', ' ', '\t', ''),
    number,
    fc.constantFrom('', '', ' 1700000000000', ' # {a="b"} 3'),
  )
  .map((parts) => parts.join(''));
const page = fc
  .tuple(
    fc.array(fc.tuple(sample, fc.constantFrom('\n', '\n', '\r\n', '\n\n')), { maxLength: 12 }),
    fc.oneof(fc.constant(''), sample),
  )
  .map(([lines, last]) => Buffer.from(lines.flat().join('') + last));
/** A page with a few bytes replaced, left out or put in. */
const damaged = fc
  .tuple(
    page,
    fc.array(fc.tuple(fc.nat(), fc.nat(2), fc.constantFrom(...Buffer.from('"\\{},= \n\r#0\0é'))), { maxLength: 6 }),
  )
  .map(([bytes, damages]) => {
    const list = [...bytes];
    for (const [where, how, byte] of damages)
      list.splice(where % (list.length + 1), how === 0 ? 0 : 1, ...(how === 2 ? [] : [byte]));
    return Buffer.from(list);
  });

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length));
}

function check(pieces: readonly Buffer[], expected: ReturnType<typeof referenceExposition>): void {
  scanner.begin(query);
  for (const piece of pieces) scanner.feed(piece);
  const found = scanner.end();
  expect(found.found).toEqual(expected.results.map((result) => result.found));
  expect(found.labels).toEqual(expected.results.map((result) => result.labels));
  expect(found.unusable).toBe(expected.unusable);
  for (const [i, { value }] of expected.results.entries()) {
    if (Number.isNaN(value)) expect(found.values[i]).toBeNaN();
    else expect(Math.abs(found.values[i]! - value)).toBeLessThanOrEqual(1e-9);
  }
}

describe('whatever the page and however it is cut', { timeout: 30_000 + 20 * numRuns }, () => {
  test('the result is that of a reader that sees it whole', () => {
    fc.assert(
      fc.property(fc.oneof(page, damaged), fc.array(fc.nat(), { maxLength: 12 }), (bytes, places) => {
        check(cut(bytes, places), referenceExposition(bytes, wanted));
      }),
      { numRuns: numRuns * 3 },
    );
  });

  test('the same holds when every byte comes alone, and when it is cut once at each byte', () => {
    fc.assert(
      fc.property(fc.oneof(page, damaged), (bytes) => {
        const expected = referenceExposition(bytes, wanted);
        check(
          [...bytes].map((byte) => Buffer.from([byte])),
          expected,
        );
        for (let at = 0; at <= bytes.length; at++) check(cut(bytes, [at]), expected);
      }),
      { numRuns: Math.ceil(numRuns / 10) },
    );
  });

  test('random bytes are no trouble', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        check([Buffer.from(bytes)], referenceExposition(Buffer.from(bytes), wanted));
      }),
      { numRuns },
    );
  });
});

describe('numbers', () => {
  const one: readonly WantedMetric[] = [{ name: 'n', aggregate: 'sum' }];
  function parsed(text: string): number {
    scanner.begin(scanner.compile(one));
    scanner.feed(Buffer.from(`n ${text}\n`));
    const { found, values } = scanner.end();
    return found[0] ? values[0]! : Number.POSITIVE_INFINITY;
  }

  /** The number's bits in order of size, so that neighbours differ by one. */
  function rank(value: number): bigint {
    const bits = new BigInt64Array(new Float64Array([value]).buffer)[0]!;
    return bits < 0n ? -(bits & 0x7fffffffffffffffn) : bits;
  }

  function distance(text: string): bigint {
    const apart = rank(parsed(text)) - rank(Number(text));
    return apart < 0n ? -apart : apart;
  }

  test('numbers are exact for whole numbers up to 2^53', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (n) => parsed(String(n)) === n),
      { numRuns },
    );
    expect(parsed('9007199254740992')).toBe(2 ** 53);
  });

  test('numbers are within one unit in the last place of what JavaScript reads, for every double in its shortest form', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (n) => distance(String(n)) <= 1n),
      { numRuns: numRuns * 3 },
    );
  });

  test('numbers are within one unit in the last place for any digits and exponent', () => {
    const digits = (most: number) =>
      fc.array(fc.nat(9), { minLength: 1, maxLength: most }).map((list) => list.join(''));
    const text = fc
      .tuple(fc.constantFrom('', '-', '+'), digits(25), digits(25), fc.integer({ min: -360, max: 340 }))
      .map(([sign, whole, fraction, exponent]) => `${sign}${whole}.${fraction}e${exponent}`);
    fc.assert(
      fc.property(text, (n) => {
        expect(Number.isFinite(Number(n)) ? distance(n) <= 1n : parsed(n) === Number.POSITIVE_INFINITY).toBe(true);
      }),
      { numRuns: numRuns * 3 },
    );
  });

  test.each([
    '0',
    '-0',
    '5e-324',
    '2.2250738585072014e-308',
    '1.7976931348623157e308',
    '1e23',
    '8.41e21',
    '1e-400',
    '123456789012345678901234567890',
  ])('the scanner reads %s as JavaScript does', (text) => {
    expect(parsed(text)).toBe(Number(text));
  });
});
