import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { attachCore, createPoolMemory } from '../../dist/src/core/memory.js';
import { ResponseScanner } from '../../dist/src/core/response-scanner.js';
import { AnswerForm } from '../../dist/src/core/types.js';
import { referenceAnswer } from './response-scanner-reference.js';
import { SCANNER_SIZES } from './scanner-sizes.ts';

const numRuns = Number(process.env.POINTSMAN_FUZZ_RUNS ?? 300);
let scanner: ResponseScanner;

beforeAll(() => {
  scanner = new ResponseScanner(attachCore(createPoolMemory(SCANNER_SIZES), 0));
});

// Names that share beginnings, need escapes and are not ASCII, so that near misses are common.
const names = ['m', 'mo', 'model-a', 'model-ab', 'a/"b\\c', 'naïve-😀', 'x'.repeat(40)];
const keys = [
  'model',
  'response',
  'usage',
  'prompt_tokens',
  'completion_tokens',
  'input_tokens',
  'output_tokens',
  'total_tokens',
  'prompt_tokens_details',
  'input_tokens_details',
  'cached_tokens',
  'choices',
  'message',
  'meta_info',
  'finish_reason',
  'cache_read_input_tokens',
  'type',
  'usages',
  'm',
  '',
];

const space = fc.constantFrom('', '', '', ' ', '\t', '  ');

/** A character of a string as JSON may write it. */
function written(c: string, how: number): string {
  const escaped = [...Array(c.length).keys()]
    .map((i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, '0')}`)
    .join('');
  if (how === 0) return escaped;
  if (how === 1) return escaped.replace(/[a-f](?=[^u])/g, (d) => d.toUpperCase());
  const short = JSON.stringify(c).slice(1, -1);
  return how === 2 && c === '/' ? '\\/' : short;
}

function quoted(content: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(content, fc.array(fc.nat(11), { minLength: 1, maxLength: 8 }))
    .map(([text, how]) => `"${[...text].map((c, i) => written(c, how[i % how.length]!)).join('')}"`);
}

const { value, object } = fc.letrec<{ value: string; object: string; array: string; member: string }>((tie) => ({
  member: fc
    .tuple(space, quoted(fc.constantFrom(...keys)), space, space, tie('value'))
    .map(([a, key, b, c, v]) => `${a}${key}${b}:${c}${v}`),
  object: fc.tuple(fc.array(tie('member'), { maxLength: 6 }), space).map(([list, end]) => `{${list.join(',')}${end}}`),
  array: fc.tuple(fc.array(tie('value'), { maxLength: 3 }), space).map(([list, end]) => `[${list.join(',')}${end}]`),
  value: fc
    .tuple(
      fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        { weight: 4, arbitrary: quoted(fc.constantFrom(...names)) },
        { weight: 4, arbitrary: fc.nat(50).map(String) },
        {
          weight: 1,
          arbitrary: fc.constantFrom('"response.completed"', '"response.\\u0063ompleted"', '"response.created"'),
        },
        {
          weight: 1,
          arbitrary: fc.constantFrom(
            'true',
            'false',
            'null',
            '-1',
            '1.50',
            '-0',
            '0',
            '"17"',
            '"1x"',
            '""',
            '9007199254740992',
          ),
        },
        { weight: 1, arbitrary: quoted(fc.string({ unit: 'binary', maxLength: 40 })) },
        { weight: 5, arbitrary: tie('object') },
        { weight: 1, arbitrary: tie('array') },
      ),
      space,
    )
    .map(([text, after]) => text + after),
}));

const lineEnd = fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\n\r\n');
const line = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(fc.constantFrom('data:', 'data: ', 'data:  '), object).map((parts) => parts.join('')),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constant('data: '), value).map((parts) => parts.join('')) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'data: [DONE]',
      'data:[DONE]',
      'event: x',
      ': ping',
      'data',
      'data:',
      'dat',
      'data: [DONE',
      'data: [1]',
      '',
    ),
  },
);
const stream = fc
  .tuple(fc.array(fc.tuple(line, lineEnd), { maxLength: 6 }), line)
  .map(([lines, last]) => Buffer.from(lines.flat().join('') + last));
const body = fc.tuple(space, object, fc.constantFrom('', '\n', ' \r\n')).map((parts) => Buffer.from(parts.join('')));
const answer = fc.oneof(
  { weight: 3, arbitrary: stream.map((bytes) => ({ bytes, streaming: true })) },
  { weight: 1, arbitrary: body.map((bytes) => ({ bytes, streaming: false })) },
);
/** An answer with a few bytes replaced, left out or put in, so that it is hardly ever JSON. */
const damaged = fc
  .tuple(
    answer,
    fc.array(
      fc.tuple(fc.nat(), fc.nat(2), fc.oneof(fc.nat(255), fc.constantFrom(...Buffer.from('"\\{}[],:u0-.e\n\r\0')))),
      { minLength: 1, maxLength: 4 },
    ),
  )
  .map(([{ bytes, streaming }, damages]) => {
    const list = [...bytes];
    for (const [where, how, byte] of damages)
      list.splice(where % (list.length + 1), how === 0 ? 0 : 1, ...(how === 2 ? [] : [byte]));
    return { bytes: Buffer.from(list), streaming };
  });

const rename = fc.option(fc.tuple(fc.constantFrom(...names), fc.constantFrom('other', 'q"\\\u0001é', 'm')), {
  nil: undefined,
});

/** Forms of answers that are JSON or events from their first byte on. */
const form = fc.constantFrom(...Object.values(AnswerForm).filter((which) => which < AnswerForm.engine));

/** A chunk that begins with "data:" inside a line may be taken as a new line: its own test says when. */
function beginsDataInLine(bytes: Buffer, place: number): boolean {
  const before = bytes[place - 1];
  return bytes.toString('latin1', place, place + 5) === 'data:' && before !== 0x0a && before !== 0x0d;
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((place) => place % (bytes.length + 1)))]
    .filter((place) => !beginsDataInLine(bytes, place))
    .sort((a, b) => a - b);
  return [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length));
}

function check(
  bytes: Buffer,
  streaming: boolean,
  names: readonly [string, string] | undefined,
  pieces: readonly Buffer[],
  form: AnswerForm = AnswerForm.usage,
): void {
  const [renameFrom, renameTo] = names ?? [];
  const expected = referenceAnswer(bytes, streaming, form, renameFrom === renameTo ? undefined : renameFrom, renameTo);
  const id = scanner.open({ streaming, form, renameFrom, renameTo });
  // The escapes of the name, its quotes, and the escape of one more character that is not yet whole (a surrogate pair).
  const heldMost = 6 * Buffer.byteLength(renameFrom ?? '') + 12;
  const out: Uint8Array[] = [];
  const found = { output: '', usage: expected.usage, events: expected.events };
  try {
    for (const piece of pieces) {
      out.push(Uint8Array.from(scanner.feed(id, piece, false)));
      expect(scanner.held(id)).toBeLessThanOrEqual(renameFrom ? heldMost : 0);
    }
    out.push(scanner.feed(id, Buffer.alloc(0), true));
    found.output = Buffer.concat(out).toString('latin1');
    found.usage = scanner.usage(id);
    found.events = scanner.events(id);
  } finally {
    // A scan left open by one failing case would make every smaller case fail for want of a scan, and hide the reason.
    scanner.close(id);
  }
  expect(found).toEqual({ ...expected, output: expected.output.toString('latin1') });
}

describe('whatever the answer and however it is cut', { timeout: 30_000 + 20 * numRuns }, () => {
  test('output, usage and events are those of a reader that sees it whole', () => {
    fc.assert(
      fc.property(
        answer,
        rename,
        fc.array(fc.nat(), { maxLength: 12 }),
        form,
        ({ bytes, streaming }, names, places, form) => {
          check(bytes, streaming, names, cut(bytes, places), form);
        },
      ),
      { numRuns },
    );
  });

  test('the same holds for a damaged answer', () => {
    fc.assert(
      fc.property(
        damaged,
        rename,
        fc.array(fc.nat(), { maxLength: 12 }),
        form,
        ({ bytes, streaming }, names, places, form) => {
          check(bytes, streaming, names, cut(bytes, places), form);
        },
      ),
      { numRuns: numRuns * 2 },
    );
  });

  test('the same holds when every byte comes alone, and when it is cut once at each byte', () => {
    fc.assert(
      fc.property(fc.oneof(answer, damaged), rename, form, ({ bytes, streaming }, names, form) => {
        check(
          bytes,
          streaming,
          names,
          [...bytes].map((byte) => Buffer.from([byte])),
          form,
        );
        for (let at = 0; at <= bytes.length; at++) check(bytes, streaming, names, cut(bytes, [at]), form);
      }),
      { numRuns: Math.ceil(numRuns / 10) },
    );
  });

  test('random bytes come out as they went in when no name is to be changed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.boolean(), (bytes, streaming) => {
        check(Buffer.from(bytes), streaming, undefined, cut(Buffer.from(bytes), [100, 200]));
      }),
      { numRuns },
    );
  });
});
