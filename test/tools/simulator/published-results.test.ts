import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { loadSuite } from '../../../dist/tools/simulator/suite/load-suite.js';
import type { RunResult } from '../../../dist/tools/simulator/suite/suite-run.js';
import { businessRamp } from '../../../scripts/published-results/business-ramp.ts';
import { CLAIMS } from '../../../scripts/published-results/claims.ts';
import { chapter, publishedPage } from '../../../scripts/published-results/page.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const PAGE = `${root}docs/published-results.md`;
const COMMIT = '0123abcd';
const replayed = (...args: readonly string[]) =>
  spawnSync(process.execPath, [`${root}scripts/published-results.ts`, ...args], { encoding: 'utf8' });
const suite = loadSuite(`${root}examples/simulation/published.yaml`);

describe('published results', () => {
  test.each(CLAIMS)('a published result has its traffic and rules in the suite: $title', ({ workload, policies }) => {
    expect(suite.workloads.map(({ name }) => name)).toContain(workload);
    for (const policy of policies) expect(suite.policies.map(({ name }) => name)).toContain(policy);
  });

  const run = (policy: string, ttft: number, seed = 1): RunResult => {
    const summary = {
      ttft: { mean: ttft, p90: ttft, p99: ttft },
      e2e: { mean: ttft },
      hitRatio: 0.5,
      imbalance: 1,
    };
    return { workload: 'sglang', policy, seed, summary } as unknown as RunResult;
  };
  const claimOf = (name: string) => CLAIMS.find(({ workload }) => workload === name)!;

  test('a published result is shown with the slowest rule first, and each as a factor on it', () => {
    const page = publishedPage([{ claim: CLAIMS[0]!, runs: [run('smg', 100), run('round-robin', 290)] }], COMMIT);
    expect(page).toContain(
      '| round-robin | 290 | 1.00 × | 290 | 290 | 290 | 50.0 % | 1.00 |\n| smg | 100 | 2.90 × | 100 |',
    );
  });

  test('a published figure is shown beside that of the replay at the head of the page, with the commit', () => {
    const runs = [run('round-robin', 290), run('dynamo', 100), run('dynamo', 100, 2), run('round-robin', 310, 2)];
    const page = publishedPage([{ claim: claimOf('dynamo'), runs }], COMMIT);
    expect(page).toContain('Runs of commit 0123abcd.');
    expect(page).toContain('| dynamo | TTFT mean, `round-robin` to `dynamo` | 3 × | 3.00 × |');
  });

  test('a published result that was not run says so', () => {
    expect(publishedPage([{ claim: CLAIMS[0]!, runs: [] }], COMMIT)).toContain('Not run for this page.');
  });

  test('a published result is made by the command that stands beside it, with as many seeds', () => {
    const five = [1, 2, 3, 4, 5].map((seed) => run('smg', 100, seed));
    expect(chapter({ claim: CLAIMS[0]!, runs: five })).toMatch(
      /5 seeds:\n\n<!-- not run: .* -->\n```sh\nnpm run published-results -- --only "sglang"\n```/,
    );
    expect(chapter({ claim: CLAIMS[0]!, runs: [run('smg', 100)] })).toContain('--only "sglang" --seeds 1\n');
    expect(chapter({ claim: claimOf('mooncake'), runs: five })).toContain('--traces <folder> --only "mooncake"\n');
  });

  test('a replay of one published result is printed without a trace, and leaves the page as it is', () => {
    const before = readFileSync(PAGE, 'utf8');
    const { stdout, stderr, status } = replayed('--only', 'sglang', '--seeds', '1', '--jobs', '1');
    expect([status, stderr]).toEqual([0, 'sglang: 4 runs\n']);
    expect(stdout).toMatch(/^## SGLang/);
    expect(readFileSync(PAGE, 'utf8')).toBe(before);
  }, 60_000);

  test('a number of seeds that is none is refused', () => {
    const { stderr, status } = replayed('--only', 'sglang', '--seeds', 'few');
    expect(stderr).toContain('--seeds: expected a whole number from 1 to 9999, got "few"');
    expect(status).toBe(1);
  }, 60_000);

  test('the traffic of llm-d is 750 prompts with 150 beginnings, which rises from 3 to 60 requests a second', () => {
    const lines = businessRamp()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { timestamp_ms: number; block_ids: number[]; prompt_tokens: number });
    expect(new Set(lines.map(({ block_ids: [first] }) => first)).size).toBe(150);
    expect(new Set(lines.map(({ block_ids: ids }) => ids.at(-1))).size).toBe(750);
    const within = (from: number, to: number) =>
      lines.filter(({ timestamp_ms: at }) => at >= from && at < to).length / ((to - from) / 1e3);
    expect(within(0, 30_000)).toBeLessThan(10);
    expect(within(270_000, 300_000)).toBeGreaterThan(50);
    // 73 % of eight caches of 307,328 tokens are published.
    const blocks = new Set(lines.flatMap(({ block_ids: ids }) => ids));
    expect((blocks.size * 1216) / (8 * 307_328)).toBeCloseTo(0.742, 3);
  });

  test('a published result is not replayed without its trace, which the refusal names', () => {
    const { stderr, status } = replayed();
    expect(stderr).toMatch(/--traces: name the folder with mooncake-conversation\.jsonl/);
    expect(status).toBe(1);
  }, 60_000);
});
