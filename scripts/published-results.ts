// Makes docs/published-results.md anew: published results of others, replayed on the simulated fleet.
//   npm run published-results -- --traces FOLDER [--runs FILE] [--jobs 2] [--seeds 3] [--only NAME,NAME]
// Every run is kept in the file of --runs; FOLDER holds mooncake-conversation.jsonl.
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { loadSuite, narrowed } from '../dist/tools/simulator/suite/load-suite.js';
import { SavedRuns } from '../dist/tools/simulator/suite/saved-runs.js';
import { sweep } from '../dist/tools/simulator/suite/sweep.js';
import { businessRamp } from './published-results/business-ramp.ts';
import { CLAIMS } from './published-results/claims.ts';
import { publishedPage } from './published-results/page.ts';

const root = resolve(import.meta.dirname, '..');
const { values } = parseArgs({
  options: {
    traces: { type: 'string' },
    runs: { type: 'string', default: 'published-runs.jsonl' },
    jobs: { type: 'string', default: '2' },
    seeds: { type: 'string', default: '3' },
    only: { type: 'string' },
    page: { type: 'string', default: join(root, 'docs/published-results.md') },
  },
});
if (values.traces === undefined || !existsSync(join(values.traces, 'mooncake-conversation.jsonl'))) {
  throw new Error('--traces: name the folder with mooncake-conversation.jsonl (kvcache-ai/Mooncake, FAST25-release)');
}
const known = CLAIMS.map(({ workload }) => workload);
const only = values.only?.split(',') ?? known;
const unknown = only.find((name) => !known.includes(name));
if (unknown !== undefined) throw new Error(`--only: there is no result "${unknown}": there are ${known.join(', ')}`);

const traces = mkdtempSync(join(tmpdir(), 'pointsman-published-'));
try {
  symlinkSync(resolve(values.traces, 'mooncake-conversation.jsonl'), join(traces, 'mooncake-conversation.jsonl'));
  writeFileSync(join(traces, 'business-ramp.jsonl'), businessRamp());
  const suites = join(root, 'examples/simulation');
  const whole = loadSuite(join(suites, 'published.yaml'));
  const kept = new SavedRuns(values.runs);
  const found = [];
  for (const claim of CLAIMS) {
    const part = { policies: claim.policies, workloads: [claim.workload], seeds: Number(values.seeds) };
    const suite = narrowed(whole, part);
    const folders = { suite: suites, traces };
    const progress = () => {};
    const runs = only.includes(claim.workload)
      ? await sweep(suite, folders, { jobs: Number(values.jobs), kept, progress })
      : [];
    console.log(`${claim.workload}: ${runs.length} runs`);
    found.push({ claim, runs });
  }
  writeFileSync(values.page, publishedPage(found));
} finally {
  rmSync(traces, { recursive: true });
}
