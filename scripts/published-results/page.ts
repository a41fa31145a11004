// The text of docs/published-results.md.
import type { RunSummary } from '../../dist/tools/simulator/suite/run-summary.js';
import type { RunResult } from '../../dist/tools/simulator/suite/suite-run.js';
import { wrapped } from '../adaptation-results/page.ts';
import { mean, table, unique } from '../adaptation-results/tables.ts';
import type { Claim } from './claims.ts';

export interface Replay {
  readonly claim: Claim;
  readonly runs: readonly RunResult[];
}

const INTRODUCTION = `
Results that others have published, replayed on the simulated fleet of [simulation.md](simulation.md) by the
rules that they name, beside the default and learned costs. Engines, traffic and loads are theirs as far as
they say them; a note says what is not. Figures are means over the seeds; TTFT in milliseconds. Each is one
command; without \`--only\` all are run and this page is written anew.`;

/** The page; a replay without runs is named with what it misses. */
export function publishedPage(replays: readonly Replay[]): string {
  return wrapped(`${['# Published results, replayed', INTRODUCTION.trim(), ...replays.map(chapter)].join('\n\n')}\n`);
}

function chapter({ claim, runs }: Replay): string {
  const head = `## ${claim.title}`;
  const published = `Published: ${claim.published}`;
  if (runs.length === 0) return [head, published, `${claim.note} Not run for this page.`].join('\n\n');
  const seeds = new Set(runs.map(({ seed }) => seed)).size;
  const command = `npm run published-results -- --traces <folder> --only "${claim.workload}"`;
  const note = `${claim.note} ${seeds === 1 ? 'One seed' : `${seeds} seeds`}: \`${command}\`.`;
  return [head, published, note, figures(runs)].join('\n\n');
}

/** A row for every policy, with its mean TTFT as a factor on the one that is slowest. */
function figures(runs: readonly RunResult[]): string {
  const of = (policy: string, read: (summary: RunSummary) => number) =>
    mean(runs.filter((run) => run.policy === policy).map(({ summary }) => read(summary)));
  const policies = unique(runs.map(({ policy }) => policy));
  const slowest = Math.max(...policies.map((policy) => of(policy, ({ ttft }) => ttft.mean)));
  const rows = policies.map((policy) => ({
    ttft: of(policy, ({ ttft }) => ttft.mean),
    cells: [
      policy,
      of(policy, ({ ttft }) => ttft.mean).toFixed(0),
      `${(slowest / of(policy, ({ ttft }) => ttft.mean)).toFixed(2)} ×`,
      of(policy, ({ ttft }) => ttft.p90).toFixed(0),
      of(policy, ({ ttft }) => ttft.p99).toFixed(0),
      of(policy, ({ e2e }) => e2e.mean).toFixed(0),
      `${(100 * of(policy, ({ hitRatio }) => hitRatio)).toFixed(1)} %`,
      of(policy, ({ imbalance }) => imbalance).toFixed(2),
    ],
  }));
  const sorted = rows.sort((a, b) => b.ttft - a.ttft).map(({ cells }) => cells);
  const head = [
    'rule',
    'TTFT mean',
    'better than the slowest',
    'TTFT p90',
    'TTFT p99',
    'end to end',
    'hits',
    'imbalance',
  ];
  return table(head, sorted);
}
