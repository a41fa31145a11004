import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { loadSuite } from '../../../dist/tools/simulator/suite/load-suite.js';
import type { RunResult } from '../../../dist/tools/simulator/suite/suite-run.js';
import { businessRamp } from '../../../scripts/published-results/business-ramp.ts';
import { CLAIMS } from '../../../scripts/published-results/claims.ts';
import { publishedPage } from '../../../scripts/published-results/page.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const suite = loadSuite(`${root}examples/simulation/published.yaml`);

describe('published results', () => {
  test.each(CLAIMS)('a published result has its traffic and rules in the suite: $title', ({ workload, policies }) => {
    expect(suite.workloads.map(({ name }) => name)).toContain(workload);
    for (const policy of policies) expect(suite.policies.map(({ name }) => name)).toContain(policy);
  });

  test('a published result is shown with the slowest rule first, and each as a factor on it', () => {
    const run = (policy: string, ttft: number): RunResult => {
      const summary = {
        ttft: { mean: ttft, p90: ttft, p99: ttft },
        e2e: { mean: ttft },
        hitRatio: 0.5,
        imbalance: 1,
      };
      return { workload: 'sglang', policy, seed: 1, summary } as unknown as RunResult;
    };
    const page = publishedPage([{ claim: CLAIMS[0]!, runs: [run('smg', 100), run('round-robin', 290)] }]);
    expect(page).toContain(
      '| round-robin | 290 | 1.00 × | 290 | 290 | 290 | 50.0 % | 1.00 |\n| smg | 100 | 2.90 × | 100 |',
    );
  });

  test('a published result that was not run says so', () => {
    expect(publishedPage([{ claim: CLAIMS[0]!, runs: [] }])).toContain('Not run for this page.');
  });

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
    const script = `${root}scripts/published-results.ts`;
    const { stderr, status } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
    expect(stderr).toMatch(/--traces: name the folder with mooncake-conversation\.jsonl/);
    expect(status).toBe(1);
  }, 60_000);
});
