import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { aiperfResult, GENERATORS, inferencePerfResult } from '../../scripts/outside-benchmarks/generators.ts';
import { type OutsideRun, outsidePage } from '../../scripts/outside-benchmarks/page.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const NAME = 'inference-perf, shared_prefix';

const run = (arm: string, number: number, ttftMean: number, failed = 0): OutsideRun => ({
  generator: NAME,
  arm,
  run: number,
  ttftMean,
  ttftP99: 3 * ttftMean,
  hits: 0.845,
  requests: 180,
  failed,
});

describe('benchmarks of others', () => {
  test('a benchmark of others is shown with the median of each picker, its range, and all that failed', () => {
    const name = 'Pointsman, default';
    const page = outsidePage([run(name, 1, 50), run(name, 2, 90, 2), run(name, 3, 60, 1)]);
    expect(page).toContain('| Pointsman, default | 60 | 50 to 90 | 180 | 84.5 % | 3 | 3 |');
  });

  test('a benchmark of others lists the pickers in one order, and none without a run', () => {
    const page = outsidePage([run('Pointsman, learned', 1, 50), run('llm-d-router', 1, 60)]);
    expect(page).toMatch(/\| llm-d-router \|.*\n\| Pointsman, learned \|/);
    expect(page).not.toContain('| Pointsman, default |');
  });

  test('the page of benchmarks of others says first where a picker is behind llm-d-router, by the medians', () => {
    const runs = [run('llm-d-router', 1, 60), run('Pointsman, default', 1, 65), run('Pointsman, learned', 1, 58)];
    const page = outsidePage(runs.map((each, i) => ({ ...each, hits: [0.907, 0.908, 0.899][i]! })));
    const [head] = page.split('\n## ');
    expect(head).toContain(`- ${NAME}, Pointsman, default: TTFT mean 65 ms (60)\n`);
    expect(head).toContain(`- ${NAME}, Pointsman, learned: hits 89.9 % (90.7 %)\n`);
  });

  test('the page of benchmarks of others says that no picker is behind where none is', () => {
    const page = outsidePage([run('llm-d-router', 1, 60), run('Pointsman, default', 1, 60)]);
    expect(page).toContain('nowhere behind llm-d-router');
  });

  test('a benchmark of others that was not run says so', () => {
    const page = outsidePage([]);
    for (const { name } of GENERATORS) expect(page).toContain(`## ${name}`);
    expect(page.match(/Not run for this page\./g)).toHaveLength(GENERATORS.length);
  });

  test('the summary of aiperf is read in milliseconds, without its key of failures as none', () => {
    const summary = { time_to_first_token: { avg: 68.25, p99: 301.5, unit: 'ms' }, request_count: { avg: 241 } };
    expect(aiperfResult(summary)).toEqual({ ttftMean: 68.25, ttftP99: 301.5, requests: 241, failed: 0 });
    expect(aiperfResult({ ...summary, error_request_count: { avg: 3 } }).failed).toBe(3);
  });

  test('the summary of inference-perf is read in seconds', () => {
    const latency = { time_to_first_token: { mean: 0.054, p99: 0.26 } };
    const summary = { successes: { count: 178, latency }, failures: { count: 2 } };
    expect(inferencePerfResult(summary)).toEqual({ ttftMean: 54, ttftP99: 260, requests: 178, failed: 2 });
  });

  test.each([
    [[], /--tokenizer: name a folder with the tokenizer\.json of a model/],
    [['--tokenizer', `${root}test/fixtures-that-are-not-there`], /--tokenizer: name a folder/],
  ])(
    'benchmarks of others are not run with the flags %j, and the refusal names the flag',
    (flags, said) => {
      const script = `${root}scripts/outside-benchmarks.ts`;
      const { stderr, status } = spawnSync(process.execPath, [script, ...flags], { encoding: 'utf8' });
      expect(stderr).toMatch(said);
      expect(status).toBe(1);
    },
    60_000,
  );
});
