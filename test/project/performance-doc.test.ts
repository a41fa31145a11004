import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { timeText } from '../../bench/bench.ts';
import { attackTable } from '../../bench/figures/attacks.ts';
import { lockTables, modelledTimes } from '../../bench/figures/commit-lock.ts';
import { overloadTable } from '../../bench/figures/overload.ts';
import { poolTable } from '../../bench/figures/pools.ts';
import { scrapingTable } from '../../bench/figures/scraping.ts';
import { chapters, chapterTexts } from '../../scripts/performance-chapters.ts';
import { inLines, missingText, processTable, readResults, renew, tables } from '../../scripts/performance-doc.ts';
import { measuredCommit, ResultFolder } from '../../scripts/performance-results.ts';

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

test('the fullest endpoint is told in times of an even share, and the less it has the better', () => {
  const own = { picker: 'pointsman', scenario: 'in turn, default weights', value: 1.5, unit: '×' } as const;
  const table = processTable([own, { ...own, picker: 'llm-d-router', value: 3 }]);
  expect(table).toContain('| in turn, default weights | 1.5 × | 3 × | 2.0 × |');
  const spread = chapters.filter(({ name }) => name.startsWith('spread'));
  expect(spread.map(({ name, joins }) => [name, joins])).toEqual([
    ['spread', undefined],
    ['spread-llm-d-router', 'spread'],
  ]);
});

test('decisions, matches and masks by the size of a pool stand beside the time of 64 endpoints', () => {
  const rows = [
    ...[result('decide/chat-4k/8', 900), result('decide/chat-4k/64', 1_000), result('decide/chat-4k/10240', 9_500)],
    ...[result('match/64-blocks-64ep-1M', 500), result('match/64-blocks-10240ep-1M', 1_000)],
    // Times of an operation are for each endpoint.
    ...[result('operations/filter-mask/64', 10), result('operations/filter-mask/10240', 2)],
  ].map((line) => JSON.parse(line));
  const table = poolTable(rows);
  expect(table).toContain('| 8 | 900 ns | 0.90 × | – | – | – | – |');
  expect(table).toContain('| 64 | 1 µs | 1.00 × | 500 ns | 1.00 × | 640 ns | 1.00 × |');
  expect(table).toContain('| 10,240 | 9.5 µs | 9.50 × | 1 µs | 2.00 × | 20.5 µs | 32.00 × |');
  expect(() => poolTable(rows.slice(2))).toThrow('a decision and its release: there is no row of 64 endpoints');
});

/** Lines of a report of the locks. */
function lockLines(cores: number) {
  const figures = {
    'held-commit': { us: 0.2 },
    'held-index': { us: 0.3 },
    'lines-changed': { decide: 7, release: 6 },
    'one-thread': { us: 2, cores },
    'two-threads': { us: [2.5, 3.9, 4.1], lineNs: [90, 100, 300], coreShares: [1, 0.8, 0.9], timesOne: 1 },
    'threads-4': { timesOne: 1.5 },
    'threads-8': { timesOne: 1.4 },
    exchange: { us: 180 },
    ...Object.fromEntries(
      [4, 16, 64].map((shards) => [
        `model-${shards}`,
        { commitBusy: shards / 900, commitWaitUs: 0.1, indexBusy: shards / 50, indexWaitUs: null },
      ]),
    ),
  };
  return Object.entries(figures).map(([what, figure]) => ({ name: `commit-lock/64/${what}`, ...figure }));
}

test('the model of more shards names the measured exchange that it is of', () => {
  const text = lockTables(lockLines(2));
  expect(text).toContain('| an exchange of 4 KB on a shard among 64 endpoints, µs of CPU time (measured) | 180 |');
  expect(text).toContain('| 64 shards: commit lock busy, wait for it | 7 %, 0.1 µs |');
  expect(text).toContain('| 64 shards: index lock busy, wait for it | 128 % asked for, waits grow |');
});

test('rounds of two threads are counted by whether they make more decisions than one, beside the model', () => {
  const text = lockTables(lockLines(2));
  expect(text).toContain('| rounds in which two make fewer than one (of those with a core each) | 1 of 3 (1 of 2) |');
  expect(text).toContain('| two threads make, times one | 1 |\n| the same, by the model below | 1.96 |');
  expect(text).toContain(
    "| 8 threads on this machine's cores, times one | 1.4 |\n| the same, by the model below | 1.96 |",
  );
});

test('threads that only decide make by the model as many decisions as the lock that is held longest allows', () => {
  const held = { oneUs: 1, heldUs: [0.1, 0.2] };
  expect(modelledTimes({ ...held, threads: 1, cores: 64 })).toBe(1);
  expect(modelledTimes({ ...held, threads: 64, cores: 64 })).toBe(5);
  expect(modelledTimes({ ...held, threads: 64, cores: 2 })).toBe(modelledTimes({ ...held, threads: 2, cores: 2 }));
});

test('a hostile peer stands beside its control, with the median and the range of the rounds', () => {
  const line = { name: 'attacks', attack: 'rapid-reset', sent: 900, failed: 1, unanswered: 2, refusals: 0 };
  const memory = { rssBeforeMb: 210, rssAfterMb: 215 };
  const ages = (p99: number) => ({ placedMs: { p50: 1, p99, max: 9 }, coldMs: { p50: 2, p99: 7 * p99, max: 90 } });
  const picker = [9, 4, 5].map((p99) => ({ ...line, ...memory, ...ages(p99), of: 'picker' }));
  const control = [2, 3, 4].map((p99) => ({ ...line, ...memory, ...ages(p99), of: 'sink' }));
  expect(attackTable([...control, ...picker, { ...picker[0]!, attack: 'none', of: 'none' }])).toContain(
    '| rapid-reset | 1 (1–1) | 5 (4–9) | 3 (2–4) | 35 (28–63) | 21 (14–28) | 9 of 2700 | 5 (5–5) |\n' +
      '| none | 1 | 9 | – | 63 | – | 3 of 900 | 5 |',
  );
});

test('a pool without traffic has no interval of endpoints with traffic', () => {
  const line = { name: 'informer', core_share: 0.247, scrapes_per_second: 1_203.4, quiet_ms: 812.3, faults: 0 };
  const table = scrapingTable([
    { ...line, busy: 0, busy_ms: 50 },
    { ...line, busy: 50, busy_ms: 61.7 },
  ]);
  expect(table).toContain('| 0 | 25 % | 1,203 | – | 812 ms | 0 |\n| 50 | 25 % | 1,203 | 62 ms | 812 ms | 0 |');
});

test('the load right behind an overload has a row of its own', () => {
  const ages = (p99: number) => ({ p50: 1, p99, max: 99 });
  const line = { name: 'overload', picker: 'pointsman', load: 3, share: 0.98, rssMb: 290, refused: 9, unanswered: 0 };
  const eased = { sent: 2_000, refusals: 3, placedMs: ages(7) };
  const easedTo = { multiple: 0.5, seconds: 2 };
  expect(overloadTable([{ ...line, placedMs: ages(60), refusedMs: ages(5), eased, easedTo }])).toContain(
    '| 290 MB |\n| pointsman | 0.5 ×, the 2 s right after it | 99.9 % of what was sent | 1 / 7 / 99 ms | – | – | – |',
  );
});

test('results of chapters are kept by commit, and none is read at another one', () => {
  const root = mkdtempSync(join(tmpdir(), 'results-'));
  try {
    const noise = { p50: 1, p99: 2, load: 0 };
    new ResultFolder(root, 'aaa').write('cold', { noise: [noise, noise], rows: [1] });
    expect(new ResultFolder(root, 'aaa').read('cold')?.rows).toEqual([1]);
    expect(new ResultFolder(root, 'bbb').read('cold')).toBeUndefined();
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('a page has no figures of files that differ from the commit', () => {
  const root = mkdtempSync(join(tmpdir(), 'measured-'));
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: root });
  try {
    git('init', '-q');
    mkdirSync(join(root, 'src'));
    mkdirSync(join(root, 'docs'));
    writeFileSync(join(root, 'src/a.ts'), '1');
    git('add', '.');
    git('commit', '-q', '-m', 'a');
    const commit = measuredCommit(root);
    expect(commit).toMatch(/^[0-9a-f]{7,}$/);
    writeFileSync(join(root, 'docs/a.md'), 'words');
    git('add', '.');
    git('commit', '-q', '-m', 'b');
    expect(measuredCommit(root), 'a change of documents is no other commit').toBe(commit);
    writeFileSync(join(root, 'src/a.ts'), '2');
    expect(() => measuredCommit(root)).toThrow(/commit these first\nM? ?.*src\/a\.ts/);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('both pickers of a chapter stand in one table, although each was measured by itself', () => {
  const row = { scenario: 'a scenario', value: 10, unit: 'ms' } as const;
  const results = ['warm', 'warm-llm-d-router'].map((name, at) => ({
    chapter: chapters.find((chapter) => chapter.name === name)!,
    result: { rows: [{ ...row, picker: ['pointsman', 'llm-d-router'][at], value: [10, 40][at] }] },
  }));
  const texts = chapterTexts(results);
  expect(texts).toHaveLength(1);
  expect(texts[0]).toContain('| a scenario | 10 ms | 40 ms | 4.0 × |');
});

test('a page names the chapters that its commit has no results of', () => {
  expect(missingText([])).toBe('');
  expect(missingText(['overload'])).toContain('`npm run performance -- overload`');
});

test('words of a chapter are broken at 140 columns, and none is lost', () => {
  const words = Array.from({ length: 60 }, (_, i) => `word-${i}`).join(' ');
  const lines = inLines(words).split('\n');
  expect(lines.length).toBeGreaterThan(2);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(140);
  expect(lines.join(' ')).toBe(words);
});

test('every chapter of the page has a name of its own', () => {
  const names = chapters.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
