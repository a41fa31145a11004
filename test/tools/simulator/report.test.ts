import { describe, expect, test } from 'vitest';
import { htmlReport } from '../../../dist/tools/simulator/report/html-report.js';
import { percent, ticks } from '../../../dist/tools/simulator/report/svg.js';
import { compare } from '../../../dist/tools/simulator/suite/comparison.js';
import { suiteSchema } from '../../../dist/tools/simulator/suite/schema.js';
import { runOne, runsOf } from '../../../dist/tools/simulator/suite/suite-run.js';

const suite = suiteSchema.parse({
  fleet: { hardware: 'llama-8b-h100', endpoints: 2 },
  workloads: [
    { name: 'a <b>', kind: 'separate', rate: 10, seconds: 10, output: { mean: 20 } },
    { name: 'c', kind: 'chat', rate: 5, seconds: 10, turns: 2 },
    {
      name: 'shift',
      kind: 'sequence',
      parts: [
        { workload: 'a <b>', seconds: 10 },
        { workload: 'c', seconds: 10 },
      ],
    },
    { name: 'old numbers', kind: 'variant', of: 'c', fleet: { metrics: { scrapeMs: 5000 } } },
  ],
  policies: [{ name: 'default' }, { name: 'round-robin' }, { name: 'lmetric' }, { name: 'learned' }],
  warmup: { requests: 0 },
  seeds: 2,
});
const folders = { suite: '.', traces: '.' };
const results = runsOf(suite).map((cell) => runOne(suite, cell, folders));
const page = htmlReport('Test & report', suite, results, compare(results, suite));

describe('the report of a suite', () => {
  test('the report of a suite is one page that loads nothing', () => {
    expect(page).toMatch(/^<!doctype html>/);
    expect(page).not.toMatch(/<script|<link|src=|url\(|https?:/);
  });

  test('the report of a suite escapes what the suite says', () => {
    expect(page).toContain('Test &amp; report');
    expect(page).toContain('a &lt;b&gt;');
    expect(page).not.toContain('a <b>');
  });

  test('the report of a suite shows every workload and policy, the shift over time, and the variant', () => {
    for (const name of ['shift', 'old numbers', 'default', 'round-robin', 'lmetric']) expect(page).toContain(name);
    expect(page).toContain('When traffic shifts: shift');
    expect(page).toContain('The same traffic under other conditions: c');
  });

  test('the report of a suite shows what decided while a policy learned', () => {
    expect(page).toContain('What decided under learned');
    expect(page).toMatch(/<path d="M[^"]*Z" fill="var\(--c0\)" fill-opacity=".8"><title>context/);
  });

  test('the report of a suite has a best policy in every row, and no number that is none', () => {
    expect(page.match(/<td class="best"/g)!.length).toBeGreaterThanOrEqual(4);
    expect(page).not.toMatch(/NaN|undefined|Infinity/);
  });

  test('the report of a suite says how often each policy won, how soon it adapted, and how far a variant ranks as its base does', () => {
    expect(page).toContain('<th>wins</th><th>ties</th><th>open</th><th>losses</th><th>slow tails ▲</th>');
    expect(page).toContain('reached after');
    expect(page).toMatch(/Rank agreement of the policies with c .*old numbers -?[01]\.\d\d/);
  });

  test('the report of a suite shows cost and uncapped cost, and marks slow tails', () => {
    expect(page).toContain('<th>cost</th><th>uncapped</th><th>TTFT mean</th>');
    const slower = results.map((run) => {
      const { ttft } = run.summary;
      const p99 = run.policy === 'lmetric' ? 3 * ttft.p99 : ttft.p99;
      return { ...run, summary: { ...run.summary, ttft: { ...ttft, p99 } } };
    });
    const comparisons = compare(slower, suite);
    const slow = comparisons.filter(({ slowTail }) => slowTail);
    expect(slow.length).toBeGreaterThan(0);
    const marks = htmlReport('tails', suite, slower, comparisons).match(/<b title="slow tail">▲<\/b>/g);
    // In the table of who is best where, in that of first tokens, and among all pairs.
    expect(marks).toHaveLength(3 * slow.length);
  });

  test('the report of a suite shows every seed as a dot', () => {
    const dots = page.match(/<circle [^>]*r="2.6"/g)!;
    // Three policies beside the reference on four workloads: two seeds and one p99, for wide and for narrow screens.
    expect(dots).toHaveLength(2 * (24 + 12));
  });

  test('the report of a suite of a search for capacity shows what each policy carries, and no costs', () => {
    const searching = suiteSchema.parse({ ...suite, run: ['c'], capacity: { from: 0.5, to: 2, steps: 1 } });
    const found = runsOf(searching).map((cell) => runOne(searching, cell, folders));
    const carried = htmlReport('capacity', searching, found, compare(found, searching));
    expect(carried).toContain('How much load each policy carries');
    expect(carried).not.toContain('Who is best where');
    expect(carried).not.toMatch(/NaN|undefined|Infinity/);
  });

  test('the report of a suite shows TTFT and its p99 without a click, with changes of both signs', () => {
    const open = page.replace(/<details>.*?<\/details>/gs, '');
    expect(open).toContain('<th>TTFT mean</th><th>TTFT p99</th><th>p99 change</th>');
    const figure = /<svg[^>]*aria-label="Change of the TTFT p99".*?<\/svg>/s.exec(open)![0];
    expect(figure).toMatch(/>−\d+ %</);
    expect(figure).toMatch(/>\+\d+ %</);
  });

  test('the report of a suite has every figure for a wide and for a narrow screen', () => {
    const [wide, narrow] = ['1080', '346'].map(
      (width) => page.match(new RegExp(`viewBox="0 0 ${width} `, 'g'))!.length,
    );
    expect([wide! > 4, narrow]).toEqual([true, wide]);
    expect(page).toMatch(/@media \(max-width:760px\)\{\.wide\{display:none\}\.narrow\{display:block\}/);
  });

  test('the report of a suite says – where nothing was found or served, and never −100 % of nothing', () => {
    const nothing = { mean: 0, p50: 0, p90: 0, p99: 0 };
    const idle = results.map((run) => {
      const { requests } = run.summary;
      const times = { ttft: nothing, tpot: nothing, e2e: nothing };
      return { ...run, summary: { ...run.summary, ...times, lost: requests, hitRatio: 0, overBelief: null } };
    });
    const text = htmlReport('idle', suite, idle, compare(idle, suite));
    expect(text).not.toMatch(/−100 %|NaN|undefined|Infinity/);
    expect(text).toMatch(/<td>–<\/td><td>–<\/td><td>–<\/td>/);
  });

  test('a run in which nothing was cached says nothing of how far the index is off', () => {
    const alone = { ...suite, run: ['a <b>'], warmup: { seconds: 0, requests: 0 } };
    const { summary } = runOne(alone, { workload: 'a <b>', policy: 'default', seed: 1 }, folders);
    expect([summary.hitRatio, summary.overBelief]).toEqual([0, null]);
  });

  test('the report of a suite is for light and dark readers', () => {
    expect(page).toContain('prefers-color-scheme:dark');
  });

  test.each([
    [0.034, '+3.4 %'],
    [-0.12, '−12 %'],
    [0.0001, '±0.0 %'],
  ])('the report of a suite writes %d as %s', (share, text) => {
    expect(percent(share)).toBe(text);
  });

  test('the report of a suite puts ticks on round numbers', () => {
    expect(ticks(0, 0.9, 4).map((t) => Number(t.toFixed(6)))).toEqual([0, 0.5]);
    expect(ticks(0, 1000, 5)).toEqual([0, 200, 400, 600, 800, 1000]);
  });
});
