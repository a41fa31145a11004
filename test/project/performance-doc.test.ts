import { expect, test } from 'vitest';
import { timeText } from '../../bench/bench.ts';
import { processTable, readResults, renew, tables } from '../../scripts/performance-doc.ts';

const result = (name: string, median: number) =>
  JSON.stringify({ name, median, p99: median * 2, unit: 'ns', runs: 1234, node: 'v24.0.0', commit: 'abc' });

test('the last of several results with one name is shown, in a table per area', () => {
  const text = [result('scan/chat-4k', 1900), result('match/64', 240), result('scan/chat-4k', 1800), ''].join('\n');
  expect(tables(readResults(text))).toBe(`## scan

| bench | median | p99 | runs |
| --- | ---: | ---: | ---: |
| \`scan/chat-4k\` | 1.8 µs | 3.6 µs | 1,234 |

## match

| bench | median | p99 | runs |
| --- | ---: | ---: | ---: |
| \`match/64\` | 240 ns | 480 ns | 1,234 |`);
});

test('a line that is no result is refused with its number', () => {
  expect(() => readResults(`${result('a/b', 1)}\nnot json\n`)).toThrow('line 2 is no benchmark result');
});

test('only the part between the marks is replaced', () => {
  const page = 'before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n';
  const renewed = renew(page, 'new');
  expect(renewed).toBe('before\n<!-- measured: begin -->\n\nnew\n\n<!-- measured: end -->\nafter\n');
  expect(() => renew('no marks', 'new')).toThrow(/needs the marks/);
});

test('times are written in the unit that reads best, with three digits', () => {
  expect([9.3, 1234, 56_789_000].map(timeText)).toEqual(['9.3 ns', '1.23 µs', '56.8 ms']);
});

test('whole pickers stand beside each other with their ratio', () => {
  const own = { picker: 'pointsman', scenario: 'chat: CPU', value: 30, unit: 'µs' } as const;
  const peer = { ...own, picker: 'llm-d-router', value: 300 };
  const rate = { ...own, scenario: 'chat', value: 3_000, unit: '/s' } as const;
  const alone = { ...own, scenario: 'start', value: 412.4, unit: 'ms' } as const;
  expect(
    processTable([own, peer, rate, { ...rate, picker: 'llm-d-router', value: 300 }, alone]),
  ).toBe(`| | Pointsman | llm-d-router | ratio |
| --- | ---: | ---: | ---: |
| chat: CPU | 30 µs | 300 µs | 10.0 × |
| chat | 3,000/s | 300/s | 10.0 × |
| start | 412 ms | – | – |`);
});
