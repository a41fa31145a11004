// Makes docs/published-results.md anew: published results of others, replayed on the simulated fleet.
//   npm run published-results -- --traces FOLDER [--runs FILE] [--jobs 2] [--seeds 5] [--only NAME,NAME] [--page FILE]
// With --only the chapters of these results are printed, and the page stays as it is unless --page names a file.
// With --runs every run is kept in that file. FOLDER holds mooncake-conversation.jsonl, which one result needs.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { loadSuite, narrowed } from '../dist/tools/simulator/suite/load-suite.js';
import { SavedRuns } from '../dist/tools/simulator/suite/saved-runs.js';
import { sweep } from '../dist/tools/simulator/suite/sweep.js';
import { businessRamp } from './published-results/business-ramp.ts';
import { CLAIMS, type Claim } from './published-results/claims.ts';
import { chapter, publishedPage, type Replay, SEEDS } from './published-results/page.ts';

const root = resolve(import.meta.dirname, '..');
/** Published conversations of Mooncake. */
const TRACE = 'mooncake-conversation.jsonl';
const { values } = parseArgs({
  options: {
    traces: { type: 'string' },
    runs: { type: 'string' },
    jobs: { type: 'string', default: '2' },
    seeds: { type: 'string', default: String(SEEDS) },
    only: { type: 'string' },
    page: { type: 'string' },
  },
});
const known = CLAIMS.map(({ workload }) => workload);
const only = values.only?.split(',') ?? known;
const unknown = only.find((name) => !known.includes(name));
if (unknown !== undefined) throw new Error(`--only: there is no result "${unknown}": there are ${known.join(', ')}`);

const trace = values.traces === undefined ? undefined : resolve(values.traces, TRACE);
const claims = CLAIMS.filter(({ workload }) => only.includes(workload));
if (claims.some(({ trace: needed }) => needed) && (trace === undefined || !existsSync(trace))) {
  throw new Error(`--traces: name the folder with ${TRACE} (kvcache-ai/Mooncake, FAST25-release)`);
}
const [seeds, jobs] = [wholeNumber('seeds', values.seeds), wholeNumber('jobs', values.jobs)];

const traces = mkdtempSync(join(tmpdir(), 'pointsman-published-'));
try {
  if (trace !== undefined) symlinkSync(trace, join(traces, TRACE));
  writeFileSync(join(traces, 'business-ramp.jsonl'), businessRamp());
  const suites = join(root, 'examples/simulation');
  const whole = loadSuite(join(suites, 'published.yaml'));
  const kept = values.runs === undefined ? undefined : new SavedRuns(values.runs);
  const found: Replay[] = [];
  for (const claim of claims) {
    const suite = narrowed(whole, { policies: claim.policies, workloads: [claim.workload], seeds });
    const runs = await sweep(suite, { suite: suites, traces }, { jobs, kept, progress: () => {} });
    console.error(`${claim.workload}: ${runs.length} runs`);
    found.push({ claim, runs });
  }
  tell(found);
} finally {
  rmSync(traces, { recursive: true });
}

/** Writes the page, or prints the chapters that were asked for. */
function tell(found: readonly Replay[]): void {
  if (values.only !== undefined && values.page === undefined) {
    console.log(found.map((replay) => chapter(replay)).join('\n\n'));
    return;
  }
  const runsOf = (claim: Claim) => found.find((replay) => replay.claim === claim)?.runs ?? [];
  const replays = CLAIMS.map((claim) => ({ claim, runs: runsOf(claim) }));
  writeFileSync(values.page ?? join(root, 'docs/published-results.md'), publishedPage(replays, commit()));
}

function wholeNumber(name: string, text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new Error(`--${name}: expected a whole number from 1 to 9999, got "${text}"`);
}

function commit(): string {
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const changes = git('status', '--porcelain', '--', 'src', 'tools', 'assembly', 'examples/simulation');
  return `${git('rev-parse', '--short=8', 'HEAD')}${changes === '' ? '' : ' and changes'}`;
}
