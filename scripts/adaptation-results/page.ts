// The text of docs/adaptation-results.md.
import { adaptationSpeed } from '../../dist/tools/simulator/suite/adaptation-speed.js';
import { compareCapacity } from '../../dist/tools/simulator/suite/capacity-comparison.js';
import { compare } from '../../dist/tools/simulator/suite/comparison.js';
import type { SavedRuns } from '../../dist/tools/simulator/suite/saved-runs.js';
import type { Suite } from '../../dist/tools/simulator/suite/schema.js';
import { type RunResult, runsOf, type SuiteFolders } from '../../dist/tools/simulator/suite/suite-run.js';
import type { Chapter } from './chapters.ts';
import { goalVerdict } from './goal.ts';
import { guardVerdict } from './switching.ts';
import { facts, type Results, unique } from './tables.ts';

/** Seeds that every table should have. */
const SEEDS_WANTED = 5;

export type RunnableChapter = Omit<Chapter, 'suite'> & { readonly suite: Suite };

export interface Sources {
  readonly kept: SavedRuns;
  readonly folders: SuiteFolders;
  readonly commit: string;
  /** What the page says of runs that are of another commit; '' = nothing. */
  readonly note: string;
  readonly form: { readonly name: string; readonly seeds: number; readonly traces: boolean };
}

const INTRODUCTION = `What the learned costs of [adaptation.md](adaptation.md) are worth on the simulated fleet of
[simulation.md](simulation.md): eight Qwen3-32B servers (two H100 each) unless a table says otherwise, the
picker's own core and adapter, traffic from public traces and seeded generators. Cost = TTFT / 2 s + time
per output token / 60 ms, mean over the requests after a warm-up; lower is better. \`learned\` decides by
marginal cost from the first request (\`mode: always\`), \`guarded\` is \`mode: auto\`, the reference is the
default configuration (queue 2, KV 2, prefix 3).

The goal: on every workload, at every load from 60 to 110 %, a cost no higher than the default's, at most 3
% above that of the best simple rule in hindsight, and a TTFT p99 not above the default's.`;

const READING = `## How to read it

Every comparison is in pairs: all policies of a seed meet the same requests and the same noise of the
engines. A change is the mean of the paired log ratios, with its 95 % bootstrap interval. **✗**: a part of
the goal is missed by the whole interval; **?**: by the mean, but not by the whole interval (a single seed
has none). **tie**: the interval lies within ±2 %. **win**, **loss**: it lies on one side, and the paired
t-test agrees after Holm's correction for the number of workloads. **open**: neither; more seeds would tell.
*Best rule*: the one with the lowest cost of those of the chapter that learn nothing, chosen in hindsight
for each workload and load. *Uncapped* costs lack the bound of 20 targets on each time of a request. **▲**:
a TTFT p99 of 1.5 times the reference's or more, whatever the mean.

No real GPU was measured. Simulator and cost model share the form "prefill is linear in tokens, decoding in
the KV cache"; the last chapter asks what is left when the simulator has measured tables instead.
[adaptation.md](adaptation.md) has runs through a real Envoy.`;

/** The page; chapters without a single run are left out, and named at its beginning. */
export function pageOf(chapters: readonly RunnableChapter[], sources: Sources): string {
  const parts = chapters.map((chapter) => ({ chapter, results: resultsOf(chapter.suite, sources) }));
  const shown = parts.filter(({ results }) => results.runs.length > 0);
  const goal = parts.find(({ chapter }) => chapter.name === 'goal')!.results;
  const guard = parts.find(({ chapter }) => chapter.name === 'guard')!.results;
  const fleets = parts.find(({ chapter }) => chapter.name === 'fleets')!.results;
  return wrapped(
    `${[
      '# Learned costs, measured',
      INTRODUCTION,
      '## Where the goal does not hold',
      ...(goal.runs.length > 0 ? [goalVerdict(goal)] : ['Nothing has been run that could say it.']),
      ...(fleets.runs.length > 0 ? [`Other fleets: ${lowerFirst(goalVerdict(fleets))}`] : []),
      ...(guard.runs.length > 0 ? [guardVerdict(guard)] : []),
      '## What was run',
      whatWasRun(parts, sources),
      READING,
      ...shown.map(({ chapter, results }) => chapterText(chapter, results)),
    ].join('\n\n')}\n`,
  );
}

/** Columns of a line of the page outside of tables. */
const WIDTH_MAX = 140;

/** Fills the lines of the paragraphs of a text, and breaks those of lists; rows of tables, headings and code stay. */
export function wrapped(text: string): string {
  const filled = text
    .split('\n\n')
    .map((part) => (/^(\||#|- |```|<!--)/m.test(part) ? part : part.replaceAll('\n', ' ')));
  const broken = filled
    .join('\n\n')
    .split('\n')
    .flatMap((line) => {
      if (line.startsWith('|')) return [line];
      const lines: string[] = [];
      for (const word of line.split(' ')) {
        const last = lines.at(-1);
        if (last !== undefined && [...last].length + 1 + [...word].length <= WIDTH_MAX)
          lines.push(`${lines.pop()} ${word}`);
        else lines.push(lines.length > 0 && line.startsWith('- ') ? `  ${word}` : word);
      }
      return lines;
    });
  return broken.join('\n');
}

const lowerFirst = (text: string) => `${text.slice(0, 1).toLowerCase()}${text.slice(1)}`;

/** The finished runs of a suite: of every workload the seeds that all of its policies have. */
function resultsOf(suite: Suite, { kept, folders }: Sources): Results {
  const cells = runsOf(suite);
  const found = cells.flatMap((cell) => kept.find(suite, cell, folders) ?? []);
  const count = new Map<string, number>();
  for (const { workload, seed } of found) {
    count.set(`${workload} ${seed}`, (count.get(`${workload} ${seed}`) ?? 0) + 1);
  }
  const runs: readonly RunResult[] = found.filter(
    ({ workload, seed }) => count.get(`${workload} ${seed}`) === suite.policies.length,
  );
  return {
    suite,
    runs,
    comparisons: runs.length === 0 ? [] : compare(runs, suite),
    capacities: suite.capacity === undefined || runs.length === 0 ? [] : compareCapacity(runs, suite),
    speeds: suite.policies.flatMap(({ name }) =>
      adaptationSpeed(runs, suite, name).map((speed) => ({ policy: name, ...speed })),
    ),
  };
}

function whatWasRun(
  parts: readonly { readonly chapter: RunnableChapter; readonly results: Results }[],
  { commit, note, form }: Sources,
): string {
  const short =
    form.name === 'short'
      ? ' in the short form (half of the time of traffic, fewer seeds): a look, not the measurement'
      : '';
  const traces = form.traces
    ? ''
    : ' The workloads of public traces (W1, W5) are left out: their files were not there.';
  const rows = parts.map(({ chapter: { title, suite }, results: { runs } }) => {
    const cells = runsOf(suite).length;
    const wanted = unique(suite.run ?? suite.workloads.map(({ name }) => name));
    const seeds = wanted.map(
      (name) => new Set(runs.filter(({ workload }) => workload === name).map((run) => run.seed)).size,
    );
    const few = seeds.filter((count) => count < SEEDS_WANTED).length;
    const [least, most] = [Math.min(...seeds), Math.max(...seeds)];
    const range = least === most ? least : `${least} to ${most}`;
    return `| ${title} | ${runs.length} of ${cells} | ${range} | ${few} of ${wanted.length} |`;
  });
  return [
    `Commit ${commit}, by \`npm run adaptation-results\`${short}.${traces}${note === '' ? '' : ` ${note}`}`,
    ['| chapter | runs | seeds | workloads with less than five seeds |', '| --- | --- | --- | --- |', ...rows].join(
      '\n',
    ),
  ].join('\n\n');
}

function chapterText({ title, text, file, tables }: RunnableChapter, results: Results): string {
  const source = `Suite: [${file}](../examples/simulation/${file}); ${facts(results)}`;
  return [`## ${title}`, text.trim(), source, ...tables.map((make) => make(results))].join('\n\n');
}
