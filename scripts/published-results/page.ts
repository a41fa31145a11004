// The text of docs/published-results.md.
import type { RunSummary } from '../../dist/tools/simulator/suite/run-summary.js';
import type { RunResult } from '../../dist/tools/simulator/suite/suite-run.js';
import { wrapped } from '../adaptation-results/page.ts';
import { mean, table, unique } from '../adaptation-results/tables.ts';
import type { Claim, PolicyFigures } from './claims.ts';

export interface Replay {
  readonly claim: Claim;
  readonly runs: readonly RunResult[];
}

/** Seeds of the page; a command of the page that names none has as many. */
export const SEEDS = 5;

const INTRODUCTION = `
Results that others have published, replayed on the simulated fleet of [simulation.md](simulation.md) by the
rules that they name, beside the default and learned costs. Engines, traffic and loads are theirs as far as
they say them; a note says what is not. Figures are means over the seeds; TTFT in milliseconds. Each is one
command, which prints its chapter. \`npm run published-results -- --traces <folder>\` runs all and writes this
page anew; the folder holds mooncake-conversation.jsonl of kvcache-ai/Mooncake (FAST25-release).`;

/** The page, of runs of a commit; a replay without runs is named with what it misses. */
export function publishedPage(replays: readonly Replay[], commit: string): string {
  const run = replays.filter(({ runs }) => runs.length > 0);
  const overview = `## At a glance\n\nRuns of commit ${commit}.\n\n${glance(run)}`;
  return wrapped(
    `${['# Published results, replayed', INTRODUCTION.trim(), overview, ...replays.map(chapter)].join('\n\n')}\n`,
  );
}

/** Every published figure beside that of the replay. */
function glance(replays: readonly Replay[]): string {
  const rows = replays.flatMap(({ claim, runs }) => {
    const of = (policy: string) => figuresOf(runs, policy);
    return claim.figures.map(({ what, published, here }) => [claim.workload, what, published, here(of)]);
  });
  return table(['replay', 'figure', 'published', 'here'], rows);
}

/** The text of one replay. */
export function chapter({ claim, runs }: Replay): string {
  const head = `## ${claim.title}`;
  const published = `Published: ${claim.published}`;
  if (runs.length === 0) return [head, published, `${claim.note} Not run for this page.`].join('\n\n');
  const seeds = new Set(runs.map(({ seed }) => seed)).size;
  const counted = seeds === SEEDS ? '' : ` --seeds ${seeds}`;
  const traces = claim.trace === true ? '--traces <folder> ' : '';
  const command = `npm run published-results -- ${traces}--only "${claim.workload}"${counted}`;
  const shell = ['<!-- not run: minutes of simulation -->', '```sh', command, '```'].join('\n');
  const note = `${claim.note} ${seeds === 1 ? 'One seed' : `${seeds} seeds`}:`;
  return [head, published, note, shell, figureTable(runs)].join('\n\n');
}

function figuresOf(runs: readonly RunResult[], policy: string): PolicyFigures {
  const of = (read: (summary: RunSummary) => number) =>
    mean(runs.filter((run) => run.policy === policy).map(({ summary }) => read(summary)));
  return {
    ttft: of(({ ttft }) => ttft.mean),
    ttftP90: of(({ ttft }) => ttft.p90),
    ttftP99: of(({ ttft }) => ttft.p99),
    e2e: of(({ e2e }) => e2e.mean),
    hits: of(({ hitRatio }) => hitRatio),
    imbalance: of(({ imbalance }) => imbalance),
  };
}

/** A row for every policy, with its mean TTFT as a factor on the one that is slowest. */
function figureTable(runs: readonly RunResult[]): string {
  const rows = unique(runs.map(({ policy }) => policy)).map((policy) => ({ policy, ...figuresOf(runs, policy) }));
  const slowest = Math.max(...rows.map(({ ttft }) => ttft));
  const sorted = rows
    .sort((a, b) => b.ttft - a.ttft)
    .map(({ policy, ttft, ttftP90, ttftP99, e2e, hits, imbalance }) => [
      policy,
      ttft.toFixed(0),
      `${(slowest / ttft).toFixed(2)} ×`,
      ttftP90.toFixed(0),
      ttftP99.toFixed(0),
      e2e.toFixed(0),
      `${(100 * hits).toFixed(1)} %`,
      imbalance.toFixed(2),
    ]);
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
