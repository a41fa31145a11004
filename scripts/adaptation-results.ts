// Makes docs/adaptation-results.md anew, the whole page from runs of the program that is built:
//   npm run adaptation-results -- --traces FOLDER [--runs FILE] [--jobs 2] [--minutes 60] [--seeds 5] [--short]
//     [--chapters NAME,NAME] [--page FILE] [--note TEXT] [--estimate]
//
// The processor time of what is missing is printed first. Every run is kept in the file of --runs under a hash of the
// program, traffic, fleet, policy and seed: work that was stopped goes on, and runs of another program are not used.
// The page says the text of --note behind the commit: what else its rows are from.
// FOLDER holds the public traces that examples/simulation/goal.yaml names; without them their workloads are left out.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { SavedRuns } from '../dist/tools/simulator/suite/saved-runs.js';
import type { SuiteFolders } from '../dist/tools/simulator/suite/suite-run.js';
import { cellsOf, ExpectedWork, missingCells, runCells } from './adaptation-results/cells.ts';
import { CHAPTERS } from './adaptation-results/chapters.ts';
import { pageOf } from './adaptation-results/page.ts';
import { FORMS, suiteOf } from './adaptation-results/suites.ts';

const root = resolve(import.meta.dirname, '..');

function options() {
  const { values } = parseArgs({
    options: {
      traces: { type: 'string' },
      runs: { type: 'string', default: 'adaptation-runs.jsonl' },
      jobs: { type: 'string', default: '2' },
      minutes: { type: 'string', default: '100000' },
      seeds: { type: 'string' },
      chapters: { type: 'string' },
      page: { type: 'string', default: join(root, 'docs/adaptation-results.md') },
      note: { type: 'string', default: '' },
      short: { type: 'boolean', default: false },
      estimate: { type: 'boolean', default: false },
    },
  });
  const number = (flag: 'jobs' | 'minutes', most: number) => {
    const value = Number(values[flag]);
    if (value > 0 && value <= most) return value;
    throw new Error(`--${flag}: expected a number above 0 and of at most ${most}, got "${values[flag]}"`);
  };
  const form = values.short ? FORMS.short : FORMS.whole;
  const seeds = values.seeds === undefined ? form.seeds : Number(values.seeds);
  if (!Number.isInteger(seeds) || seeds < 1) throw new Error(`--seeds: expected a whole number, got "${values.seeds}"`);
  const known = CHAPTERS.map(({ name }) => name);
  const names = values.chapters?.split(',') ?? known;
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new Error(`--chapters: there is no chapter "${unknown}": the page has ${known.join(', ')}`);
  }
  return {
    ...values,
    form: { ...form, seeds },
    names,
    jobs: number('jobs', 2),
    minutes: number('minutes', 100_000),
  };
}

function commit(): string {
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const rooms = ['src', 'tools', 'assembly', 'examples/simulation'];
  return (
    git('rev-parse', '--short=8', 'HEAD') + (git('status', '--porcelain', '--', ...rooms) === '' ? '' : ' and changes')
  );
}

const hours = (seconds: number) => `${(seconds / 3600).toFixed(1)} h`;

const flags = options();
const traces = flags.traces === undefined ? undefined : resolve(flags.traces);
if (traces !== undefined && !existsSync(traces)) throw new Error(`--traces: there is no folder ${traces}`);
if (traces === undefined)
  console.error('adaptation-results: without --traces the workloads of public traces are left out');
const suitesFolder = join(root, 'examples/simulation');
const folders: SuiteFolders = { suite: suitesFolder, traces: traces ?? suitesFolder };
const chapters = CHAPTERS.map((chapter) => ({
  ...chapter,
  suite: suiteOf(chapter, flags.form, folders, traces !== undefined),
}));

const kept = new SavedRuns(flags.runs);
const expected = new ExpectedWork(folders);
const cells = cellsOf(chapters);
for (const cell of cells) {
  const found = kept.find(cell.suite, cell.run, folders);
  if (found !== undefined) expected.note(cell, found);
}
const missing = missingCells(cells, flags.names, {
  keyOf: ({ suite, run }) => kept.keyOf(suite, run, folders),
  has: ({ suite, run }) => kept.find(suite, run, folders) !== undefined,
});
for (const { name, suite } of chapters) {
  const own = missing.filter(({ chapter }) => chapter === name);
  const seconds = own.reduce((sum, cell) => sum + expected.secondsOf(cell), 0);
  console.log(`${name}: ${own.length} runs are missing, about ${hours(seconds)} of a processor (${suite.seeds} seeds)`);
}
const total = missing.reduce((sum, cell) => sum + expected.secondsOf(cell), 0);
console.log(`all: ${missing.length} runs, about ${hours(total)} of a processor (jobs: ${flags.jobs})`);

if (!flags.estimate) {
  let done = 0;
  await runCells(missing, {
    folders,
    kept,
    jobs: flags.jobs,
    untilMs: performance.now() + flags.minutes * 60_000,
    done: ({ chapter, run }, { tookMs }) => {
      done++;
      const seconds = (tookMs / 1e3).toFixed(1);
      console.log(
        `${done}/${missing.length} ${chapter}: ${run.workload}, ${run.policy}, seed ${run.seed}: ${seconds} s`,
      );
    },
  });
  const form = { name: flags.short ? 'short' : 'whole', seeds: flags.form.seeds, traces: traces !== undefined };
  const before = existsSync(flags.page) ? readFileSync(flags.page, 'utf8') : '';
  const page = pageOf(chapters, { kept, folders, commit: commit(), note: flags.note, form });
  if (page !== before) writeFileSync(flags.page, page);
  console.log(`${flags.page}: ${page.split('\n').length} lines`);
}
