import { beforeEach, describe, expect, test } from 'vitest';
import { ExpositionScanner, type WantedMetric } from '../../dist/src/core/exposition-scanner.js';
import { attachCore, createPoolMemory } from '../../dist/src/core/memory.js';

const sizes = {
  endpoints: 64,
  indexBlocks: 64,
  requests: 16,
  chainBlocks: 16,
  threads: 2,
  scans: 3,
  telemetryBytes: 64,
};
const pool = createPoolMemory(sizes);
let scanner: ExpositionScanner;

beforeEach(() => {
  scanner = new ExpositionScanner(attachCore(pool, 1));
});

const waiting: WantedMetric = { name: 'vllm:num_requests_waiting', aggregate: 'sum' };
const lora: WantedMetric = {
  name: 'vllm:lora_requests_info',
  aggregate: 'latest-labels',
  wantLabels: ['running_lora_adapters', 'waiting_lora_adapters', 'max_lora'],
};

function read(page: string, ...wanted: readonly WantedMetric[]) {
  scanner.begin(scanner.compile(wanted));
  scanner.feed(Buffer.from(page));
  return scanner.end();
}

/** The sum of the waiting requests on the page, undefined when unknown. */
function waitingOn(page: string): number | undefined {
  const { found, values } = read(page, waiting);
  return found[0] ? values[0] : undefined;
}

describe('a wanted metric', () => {
  test.each([
    ['a bare sample', 'vllm:num_requests_waiting 3\n', 3],
    ['labels', 'vllm:num_requests_waiting{engine="0",model_name="m"} 3.0\n', 3],
    ['no line end at the page end', 'vllm:num_requests_waiting 3', 3],
    ['CRLF', 'vllm:num_requests_waiting 3\r\nvllm:num_requests_waiting{a="b"} 4\r\n', 7],
    [
      'comments, blank lines and # EOF',
      '# HELP vllm:num_requests_waiting 9\n\n#\nvllm:num_requests_waiting 3\n# EOF\n',
      3,
    ],
    [
      'quotes, braces and commas inside a label',
      String.raw`vllm:num_requests_waiting{m="a\"b,c}",x="1"} 1.0e+01 1700000000000`,
      10,
    ],
    ['a backslash before the closing quote', String.raw`vllm:num_requests_waiting{m="a\\"} 2`, 2],
    ['a timestamp', 'vllm:num_requests_waiting 3 1700000000000\n', 3],
    ['an exemplar', 'vllm:num_requests_waiting{a="b"} 3 # {trace_id="x"} 9 1.5\n', 3],
    [
      'blanks and tabs wherever they may stand',
      ' \tvllm:num_requests_waiting { a = "b" , c = "d" , } \t 3 \t 17 \n',
      3,
    ],
    ['empty braces', 'vllm:num_requests_waiting{} 3\n', 3],
    ['several series', 'vllm:num_requests_waiting{engine="0"} 1\nvllm:num_requests_waiting{engine="1"} 9\n', 10],
    [
      'a family that comes twice',
      'vllm:num_requests_waiting 1\nother 5\n# TYPE x gauge\nvllm:num_requests_waiting 2\n',
      3,
    ],
    [
      'series that are NaN or infinite',
      'vllm:num_requests_waiting NaN\nvllm:num_requests_waiting +Inf\nvllm:num_requests_waiting{a="1"} 4\n',
      4,
    ],
    ['names that go on', 'vllm:num_requests_waiting_by_reason{r="x"} 77\nvllm:num_requests_waiting 1\n', 1],
    [
      'names that begin earlier',
      'xvllm:num_requests_waiting 77\nvllm:num_requests 5\nvllm:num_requests_waiting 1\n',
      1,
    ],
    ['text after the number that is another token', 'vllm:num_requests_waiting 3 garbage\n', 3],
  ])('a wanted metric is read with %s', (_, page, expected) => {
    expect(waitingOn(page)).toBe(expected);
  });

  test.each([
    ['not on the page', 'other 1\n'],
    [
      'only NaN or infinite',
      'vllm:num_requests_waiting NaN\nvllm:num_requests_waiting -Inf\nvllm:num_requests_waiting 1e999\n',
    ],
    ['on an empty page', ''],
  ])('a wanted metric is unknown when it is %s', (_, page) => {
    const { found, values, unusable } = read(page, waiting);
    expect([found, values[0], unusable]).toEqual([[false], Number.NaN, 0]);
  });

  test.each([
    ['has no value', 'vllm:num_requests_waiting\n'],
    ['has no number', 'vllm:num_requests_waiting x\n'],
    ['has text right behind the number', 'vllm:num_requests_waiting 3x\n'],
    ['has an open label', 'vllm:num_requests_waiting{a="b 3\n'],
    ['has labels without a comma', 'vllm:num_requests_waiting{a="b" c="d"} 3\n'],
    ['has a label without a value', 'vllm:num_requests_waiting{a} 3\n'],
    ['has no closing brace', 'vllm:num_requests_waiting{a="b"'],
  ])('a wanted metric is counted as unusable when a line %s, and the others are read', (_, line) => {
    const { values, unusable } = read(`vllm:num_requests_waiting 5\n${line}`, waiting);
    expect([values[0], unusable]).toEqual([5, 1]);
  });

  test('a wanted metric is the largest of its series when the maximum is wanted', () => {
    const { values } = read('u{e="0"} 0.25\nu{e="1"} 0.75\nu{e="2"} NaN\nu{e="3"} 0.5\n', {
      name: 'u',
      aggregate: 'max',
    });
    expect(values[0]).toBe(0.75);
  });

  test('a wanted metric may be negative in all its series', () => {
    expect(read('u -3\nu -2\n', { name: 'u', aggregate: 'max' }).values[0]).toBe(-2);
  });

  test('a value is the nearest double, however small or large', () => {
    for (let i = 0; i < 300; i++) {
      const text = `${1 + Math.sin(i) ** 2}e${i % 2 === 0 ? 280 - i : i - 290}`;
      expect(read(`u ${text}\n`, { name: 'u', aggregate: 'sum' }).values[0]).toBe(Number(text));
    }
  });

  test('a wanted metric whose sum is beyond every number keeps the part before it', () => {
    const { values, unusable } = read('u 1e308\nu 1e308\n', { name: 'u', aggregate: 'sum' });
    expect([values[0], unusable]).toEqual([1e308, 1]);
  });

  test('a wanted metric is chosen by labels, escapes decoded', () => {
    const page = String.raw`t{type="waiting",m="a\"\\\n"} 2
t{type="scheduled",m="a\"\\\n"} 5
t{m="a\"\\\n"} 11
`;
    const wanted = (labels: Record<string, string>): WantedMetric => ({ name: 't', labels, aggregate: 'sum' });
    const queries = [{ type: 'waiting' }, { type: 'scheduled', m: 'a"\\\n' }, { type: 'wait' }, { type: '' }, {}].map(
      wanted,
    );
    const { found, values } = read(page, ...queries);
    expect(found).toEqual([true, true, false, true, true]);
    expect([...values]).toEqual([2, 5, Number.NaN, 11, 18]);
  });
});

describe('the labels of the series with the largest value', () => {
  test('the labels of the series with the largest value are those of the newest adapter line', () => {
    const line = (name: string, at: string) =>
      `vllm:lora_requests_info{running_lora_adapters="${name}",waiting_lora_adapters="w,${name}",max_lora="4"} ${at}\n`;
    const page = line('old', '1.7e9') + line('new', '1.8e9') + line('middle', '1.75e9');
    expect(read(page, lora).labels).toEqual([['new', 'w,new', '4']]);
  });

  test('the labels of the series with the largest value are decoded, and empty where the series has none', () => {
    const page = String.raw`vllm:lora_requests_info{max_lora="1",other="x",running_lora_adapters="a\"b\\c\nd,ü"} 1`;
    expect(read(page, lora).labels).toEqual([['a"b\\c\nd,ü', '', '1']]);
  });

  test('the labels of the series with the largest value are those of the first of several equal ones', () => {
    const page = 'vllm:lora_requests_info{max_lora="1"} 1.0\nvllm:lora_requests_info{max_lora="2"} 1.0\n';
    expect(read(page, lora).labels).toEqual([['', '', '1']]);
  });

  test('the labels of the series with the largest value are undefined when no series was found', () => {
    expect(read('vllm:lora_requests_info{max_lora="1"} NaN\n', lora).labels).toEqual([undefined]);
  });

  test('the labels of the series with the largest value belong each to their own metric', () => {
    const cache: WantedMetric = { name: 'c', aggregate: 'latest-labels', wantLabels: ['block_size', 'num_gpu_blocks'] };
    const page = 'c{block_size="16",num_gpu_blocks="27500"} 1.0\nvllm:lora_requests_info{max_lora="2"} 1\nw 4\n';
    const { labels, values } = read(page, lora, { name: 'w', aggregate: 'sum' }, cache);
    expect(labels).toEqual([['', '', '2'], undefined, ['16', '27500']]);
    expect(values[1]).toBe(4);
  });

  test('the labels of the series with the largest value of more than 64 KiB are counted as unusable, those of 64 KiB are kept', () => {
    const line = (n: number) => `vllm:lora_requests_info{running_lora_adapters="${'a'.repeat(n)}"} 1\n`;
    expect(read(line(65_536), lora).labels[0]?.[0]).toHaveLength(65_536);
    expect(read(line(65_537), lora)).toMatchObject({ found: [false], labels: [undefined], unusable: 1 });
  });
});

describe('the names of all series', () => {
  const names: WantedMetric = { name: 'gauge', aggregate: 'names', wantLabels: ['running', 'waiting'] };
  const line = (running: string, waiting: string) => `gauge{running="${running}",waiting="${waiting}"} 1\n`;

  test('the names of all series are those of each comma list, once, without blanks', () => {
    const page = line('b', '') + line('a, b', 'c') + line('', 'a,a') + line('', '');
    expect(read(page, lora, names).labels).toEqual([undefined, ['b,a,c']]);
    expect(read(line('c', ''), lora, names).labels).toEqual([undefined, ['c']]);
  });

  test('the names of all series are an empty text where no list holds one', () => {
    expect(read(line('', ''), names).labels).toEqual([['']]);
    expect(read('other 1\n', names).labels).toEqual([undefined]);
  });

  test('the names of all series are at most 512, and lines with more are counted as unusable', () => {
    const page = Array.from({ length: 600 }, (_, i) => line(`name-${i},name-0`, '')).join('');
    const { labels, unusable } = read(page, names);
    expect(labels[0]![0]!.split(',')).toEqual(Array.from({ length: 512 }, (_, i) => `name-${i}`));
    expect(unusable).toBe(88);
  });

  test('the names of all series are as long as 64 KiB together', () => {
    const { labels, unusable } = read(line('a'.repeat(65_530), '') + line('b', 'too-long') + line('c', ''), names);
    expect(labels[0]![0]!.slice(65_530)).toBe(',b,c');
    expect(unusable).toBe(1);
  });
});

describe('the names of series above 0', () => {
  const loaded = (level: string, pinned?: string): WantedMetric => ({
    name: 'loaded',
    labels: { level, ...(pinned === undefined ? {} : { pinned }) },
    aggregate: 'set-names',
    wantLabels: ['adapter_name'],
  });
  const line = (name: string, level: string, pinned: boolean, value: number) =>
    `loaded{adapter_name="${name}",level="${level}",pinned="${pinned}",rank="8"} ${value}\n`;

  test('the names of series above 0 leave out those at 0', () => {
    const page = line('a', 'gpu', true, 1) + line('b', 'gpu', false, 0) + line('c', 'cpu', false, 1);
    const { found, labels } = read(page, loaded('gpu'), loaded('cpu'), loaded('gpu', 'true'));
    expect(labels).toEqual([['a'], ['c'], ['a']]);
    expect(found).toEqual([true, true, true]);
  });
});

describe('pages and lines', () => {
  test('2,000 other series do not hide the wanted one', () => {
    const noise = Array.from({ length: 2000 }, (_, i) => `# TYPE noise_${i} counter\nnoise_${i}{a="b"} ${i}\n`).join(
      '',
    );
    expect(waitingOn(`${noise}vllm:num_requests_waiting 10\n${noise}`)).toBe(10);
  });

  test('a page of several megabytes is read piece by piece', () => {
    const part = `vllm:num_requests_waiting 1\n# ${'x'.repeat(1000)}\n`;
    expect(waitingOn(part.repeat(5000))).toBe(5000);
  });

  test('a wanted line longer than a piece is read', () => {
    expect(waitingOn(`vllm:num_requests_waiting{a="${'x'.repeat(400_000)}"} 3\n`)).toBe(3);
  });

  test('a wanted line longer than the line buffer is counted as unusable; the next one is read', () => {
    const long = `vllm:num_requests_waiting{a="${'x'.repeat(600_000)}"} 3\nvllm:num_requests_waiting 4\n`;
    const { values, unusable } = read(long, waiting);
    expect([values[0], unusable]).toEqual([4, 1]);
  });

  test('pieces behind a line longer than the line buffer are read', () => {
    scanner.begin(scanner.compile([waiting]));
    for (const piece of [`# ${'x'.repeat(600_000)}`, 'x\n', 'vllm:num_requests_wai', 'ting 4\n'])
      scanner.feed(Buffer.from(piece));
    expect(scanner.end().values[0]).toBe(4);
  });

  test('another line longer than the line buffer is passed over', () => {
    const { values, unusable } = read(`vllm:num ${'x'.repeat(900_000)}\nvllm:num_requests_waiting 4\n`, waiting);
    expect([values[0], unusable]).toEqual([4, 0]);
  });

  test('a page longer than the limit is refused, one of its length is read', () => {
    const query = scanner.compile([waiting]);
    const page = Buffer.from('vllm:num_requests_waiting 4');
    scanner.begin(query, page.length);
    scanner.feed(page);
    expect(scanner.end().values[0]).toBe(4);
    scanner.begin(query, page.length - 1);
    expect(() => scanner.feed(page)).toThrow('longer than allowed');
    expect(() => scanner.end()).toThrow('call begin first');
  });

  test('a page knows nothing of the one before it, finished or not', () => {
    const query = scanner.compile([waiting]);
    scanner.begin(query);
    scanner.feed(Buffer.from('vllm:num_requests_waiting 4\nvllm:num_requests_wai'));
    scanner.begin(query);
    scanner.feed(Buffer.from('ting 5\n'));
    expect(scanner.end().found).toEqual([false]);
  });

  test('response scans of the same thread and pages do not disturb each other', async () => {
    const { ResponseScanner } = await import('../../dist/src/core/response-scanner.js');
    const core = attachCore(pool, 0);
    const [pages, answers] = [new ExpositionScanner(core), new ResponseScanner(core)];
    const ids = Array.from({ length: sizes.scans }, () => answers.open({ streaming: true }));
    pages.begin(pages.compile([waiting]));
    pages.feed(Buffer.from('vllm:num_requests_waiting 4\nvllm:num_requests_'));
    for (const id of ids) answers.feed(id, Buffer.from('data: {"usage":{"prompt_tokens":7}}\n'), false);
    pages.feed(Buffer.from('waiting 5\n'));
    expect(pages.end().values[0]).toBe(9);
    expect(ids.map((id) => answers.usage(id).promptTokens)).toEqual(ids.map(() => 7));
  });
});

describe('queries', () => {
  test('queries get the same number when they are the same, and their own results when they differ', () => {
    const first = scanner.compile([waiting]);
    const second = scanner.compile([{ name: 'other', aggregate: 'max' }]);
    expect(scanner.compile([{ ...waiting }])).toBe(first);
    for (const [query, value] of [
      [first, 3],
      [second, 8],
    ] as const) {
      scanner.begin(query);
      scanner.feed(Buffer.from('vllm:num_requests_waiting 3\nother 8\n'));
      expect(scanner.end().values[0]).toBe(value);
    }
  });

  test('queries are refused beyond 32 different ones', () => {
    for (let i = 0; i < 32; i++) scanner.compile([{ name: `n${i}`, aggregate: 'sum' }]);
    expect(() => scanner.compile([{ name: 'n32', aggregate: 'sum' }])).toThrow(/more than 32 different metric queries/);
    scanner.begin(31);
    scanner.feed(Buffer.from('n31 1\nn32 1\n'));
    expect(scanner.end().values[0]).toBe(1);
  });

  const many = (n: number) => Array.from({ length: n }, (_, i) => `l${i}`);
  test.each([
    [
      'more than 32 metrics',
      many(33).map((name) => ({ name, aggregate: 'sum' as const })),
      /at most 32 metrics, not 33/,
    ],
    [
      'more than 8 metrics with wanted labels',
      many(9).map((name) => ({ name, aggregate: 'latest-labels' as const })),
      /at most 8 metrics whose labels/,
    ],
    [
      'more than 8 wanted labels',
      [{ ...lora, wantLabels: many(9) }],
      /at most 8 wanted labels of vllm:lora_requests_info, not 9/,
    ],
    [
      'more than 8 labels to match',
      [{ ...waiting, labels: Object.fromEntries(many(9).map((l) => [l, 'x'])) }],
      /at most 8 labels of .* to match/,
    ],
    ['an empty name', [{ name: '', aggregate: 'sum' as const }], /must have 1 to 1024 bytes/],
    ['a name of 1,025 bytes', [{ name: 'x'.repeat(1025), aggregate: 'sum' as const }], /must have 1 to 1024 bytes/],
    ['more than 8,192 bytes of text', [{ ...waiting, labels: { a: 'x'.repeat(8192) } }], /at most 8192 bytes/],
  ])('queries are refused with %s', (_, wanted, message) => {
    expect(() => scanner.compile(wanted)).toThrow(message);
  });

  test('queries may be as large as all bounds allow', () => {
    const wanted: WantedMetric[] = many(32).map((name, i) => ({
      name,
      labels: Object.fromEntries(many(8).map((label) => [label, 'x'])),
      aggregate: i < 8 ? 'latest-labels' : 'sum',
      wantLabels: many(8),
    }));
    const series = `{${many(8)
      .map((label) => `${label}="x"`)
      .join(',')}} 2\n`;
    const { values, labels } = read(
      many(32)
        .map((name) => name + series)
        .join(''),
      ...wanted,
    );
    expect([...values]).toEqual(Array(32).fill(2));
    expect(labels.map((list) => list?.join(''))).toEqual([...Array(8).fill('xxxxxxxx'), ...Array(24).fill(undefined)]);
  });

  test('queries that do not exist cannot begin a page, and a page must begin before it is fed', () => {
    expect(() => scanner.begin(0)).toThrow('there is no metric query 0');
    expect(() => scanner.feed(Buffer.from('x'))).toThrow('call begin first');
  });
});
